//! The marks of a currency beside an amount in, the currency and the amount out.
//!
//! Never takes a code for a currency that no number stands beside.

use super::super::signs::{CURRENCIES, Currency};
use super::begins_number;
use super::token::Here;

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
    let code = core.len().checked_sub(3).and_then(|at| core.split_at_checked(at));
    if let Some((amount, currency)) = code.and_then(|(amount, code)| Some((amount, of_code(code)?))) {
        return amount.ends_with(|c: char| c.is_ascii_digit()).then_some((currency, amount, 1));
    }
    let next = here.ahead(1).filter(|next| here.part.tail.is_empty() && next.open.is_empty())?;
    let digits = core.ends_with(|c: char| c.is_ascii_digit());
    of_code(next.core).filter(|_| digits).map(|currency| (currency, core, 2))
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
