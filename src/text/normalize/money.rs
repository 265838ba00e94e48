//! The marks of a currency beside an amount in, the currency and the amount out.
//!
//! Never takes a code for a currency that no number stands beside.

use super::super::signs::{CURRENCIES, Currency};
use super::begins_number;
use super::token::Here;

/// More digits and marks than these are no amount.
const MAX_AMOUNT_BYTES: usize = 24;

/// The currency of a sign of one character.
pub fn of_sign(sign: char) -> Option<&'static Currency> {
    if sign.is_ascii() && sign != '$' {
        return None;
    }
    CURRENCIES.iter().find(|currency| currency.sign.chars().eq([sign]))
}

fn of_code(code: &str) -> Option<&'static Currency> {
    CURRENCIES.iter().find(|currency| currency.code == code)
}

/// An amount with its currency in letters: `USD 20`, `20 USD`, `USD20`, `20USD`, `US$20`, `HK$20`. -> the currency, the
/// amount, the words taken
pub fn lettered<'a>(here: &Here<'a>) -> Option<(&'static Currency, &'a str, usize)> {
    let core = here.part.core;
    let is_amount = |text: &str| begins_number(&text.chars().take(4).collect::<Vec<_>>());
    let letters = core.bytes().take_while(u8::is_ascii_uppercase).take(4).count();
    if letters > 0 {
        let (code, amount) = core.split_at_checked(letters)?;
        let signed = match (code, amount.strip_prefix('$')) {
            ("US", Some(amount)) => of_code("USD").map(|currency| (currency, amount)),
            ("CA", Some(amount)) => of_code("CAD").map(|currency| (currency, amount)),
            ("AU", Some(amount)) => of_code("AUD").map(|currency| (currency, amount)),
            (_, Some(amount)) => CURRENCIES
                .iter()
                .find(|currency| currency.sign.strip_suffix('$') == Some(code))
                .map(|currency| (currency, amount)),
            _ => of_code(code).map(|currency| (currency, amount)),
        };
        let (currency, amount) = signed?;
        if is_amount(amount) {
            return Some((currency, amount, 1));
        }
        let next = here
            .ahead(1)
            .filter(|next| amount.is_empty() && here.part.tail.is_empty() && next.open.is_empty())?;
        return is_amount(next.core).then_some((currency, next.core, 2));
    }
    is_amount(core).then_some(())?;
    // `$5.00 USD` names its currency twice.
    let core = match core.chars().next().filter(|sign| of_sign(*sign).is_some()) {
        Some(sign) => core.get(sign.len_utf8()..)?,
        None => core,
    };
    let code = core.len().checked_sub(3).and_then(|at| core.split_at_checked(at));
    if let Some((amount, currency)) = code.and_then(|(amount, code)| Some((amount, of_code(code)?))) {
        return amount.ends_with(|c: char| c.is_ascii_digit()).then_some((currency, amount, 1));
    }
    let next = here.ahead(1).filter(|next| here.part.tail.is_empty() && next.open.is_empty())?;
    let digits = core.ends_with(|c: char| c.is_ascii_digit());
    of_code(next.core).filter(|_| digits).map(|currency| (currency, core, 2))
}

/// An amount whose digits are grouped as other countries write them, with its sign: `€1.234,56`, `25,50 €`,
/// `₹1,00,000`. -> the currency, the amount in plain digits, the words taken
pub fn grouped(here: &Here) -> Option<(&'static Currency, String, usize)> {
    let core = here.part.core;
    let (first, last) = (core.chars().next()?, core.chars().next_back()?);
    let (currency, digits, taken) = if let Some(currency) = of_sign(first) {
        (currency, core.get(first.len_utf8()..)?, 1)
    } else if let Some(currency) = of_sign(last) {
        (currency, core.get(..core.len() - last.len_utf8())?, 1)
    } else {
        let next = here.ahead(1).filter(|next| here.part.tail.is_empty() && next.open.is_empty())?;
        if let Some((currency, amount)) = of_code(core).and_then(|code| Some((code, ungrouped(next.core)?))) {
            return Some((currency, amount, 2));
        }
        let mut sign = next.core.chars();
        let signed = sign.next().filter(|_| sign.as_str().is_empty()).and_then(of_sign);
        (signed.or_else(|| of_code(next.core))?, core, 2)
    };
    let euro = currency.code == "EUR";
    ungrouped(digits)
        .or_else(|| {
            digits
                .split_once('.')
                .filter(|(_, cents)| euro && cents.len() == 3)
                .map(|(a, b)| format!("{a}{b}"))
        })
        .or_else(|| {
            let (units, cents) = digits.split_once(',').filter(|(_, cents)| cents.len() == 2)?;
            Some(format!("{units}.{cents}"))
        })
        .filter(|plain| {
            plain.bytes().all(|c| c.is_ascii_digit() || c == b'.') && plain.len() < MAX_AMOUNT_BYTES
        })
        .map(|plain| (currency, plain, taken))
}

/// `1.234,56`, `1.000.000`, `1'234.50`, `1_000_000` and `12,34,567` in plain digits.
pub fn ungrouped(text: &str) -> Option<String> {
    if text.len() > MAX_AMOUNT_BYTES || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mark = text.chars().find(|c| !c.is_ascii_digit())?;
    let point = if mark == '.' { ',' } else { '.' };
    let (whole, fraction) = text.split_once(point).map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let groups: Vec<&str> = whole.split(mark).collect();
    let (head, rest) = groups.split_first()?;
    let (last, inner) = rest.split_last()?;
    let inner_digits = if mark == ',' { 2 } else { 3 };
    let shape = (1..=3).contains(&head.len())
        && last.len() == 3
        && inner.iter().all(|group| group.len() == inner_digits)
        && text.bytes().all(|c| c.is_ascii_digit() || mark == char::from(c) || point == char::from(c));
    let told = match mark {
        // One group and nothing else is a decimal, and grouped as here it is no business of this.
        '.' => !inner.is_empty() || fraction.is_some_and(|f| (1..=2).contains(&f.len())),
        ',' => !inner.is_empty() && head.len() <= 2,
        '\'' | '_' => true,
        _ => false,
    };
    (shape && told && !head.starts_with('0')).then(|| {
        let fraction = fraction.map_or(String::new(), |fraction| format!(".{fraction}"));
        format!("{}{fraction}", groups.concat())
    })
}

/// A count of hundredths: `"05"` as "cents", `"01"` as "penny".
pub fn hundredths(name: &str, count: &str) -> String {
    match (name, count) {
        (_, "01") => name.to_string(),
        ("penny", _) => "pence".to_string(),
        ("paisa", _) => "paise".to_string(),
        _ => format!("{name}s"),
    }
}
