//! An address of the net, a file or a version in, its parts by name out.
//!
//! Never leaves a sign inside an address unspoken: it may be typed again from what is heard.

use super::super::numbers::{cardinal, spelled};
use super::token::{Cursor, Here, Said, value};

/// Schemes and how they are said; those of web pages are not.
const SCHEMES: [(&str, &str); 6] = [
    ("file://", "file"),
    ("ftp://", "F T P"),
    ("http://", ""),
    ("https://", ""),
    ("mailto:", "mail to"),
    ("ssh://", "S S H"),
];

/// States and districts of the post.
const STATES: [&str; 51] = [
    "AK", "AL", "AR", "AZ", "CA", "CO", "CT", "DC", "DE", "FL", "GA", "HI", "IA", "ID", "IL", "IN", "KS",
    "KY", "LA", "MA", "MD", "ME", "MI", "MN", "MO", "MS", "MT", "NC", "ND", "NE", "NH", "NJ", "NM", "NV",
    "NY", "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VA", "VT", "WA", "WI", "WV", "WY",
];

/// Signs inside an address.
const SIGNS: [(char, &str); 20] = [
    ('!', "exclamation mark"),
    ('#', "hash"),
    ('$', "dollar"),
    ('%', "percent"),
    ('&', "and"),
    ('(', "parenthesis"),
    (')', "parenthesis"),
    ('*', "asterisk"),
    ('+', "plus"),
    (',', "comma"),
    ('-', "dash"),
    ('.', "dot"),
    ('/', "slash"),
    (':', "colon"),
    (';', "semicolon"),
    ('=', "equals"),
    ('?', "question mark"),
    ('@', "at"),
    ('\\', "backslash"),
    ('~', "tilde"),
];

/// Parts of addresses that are said letter by letter.
const SPELLED: [&str; 26] = [
    "ai", "cc", "co2", "css", "csv", "eu", "exe", "fm", "htm", "html", "io", "js", "md", "mp3", "pdf", "php",
    "png", "py", "rs", "ts", "tv", "uk", "us", "usr", "www", "xml",
];

/// Endings that make `name.ending` a file or a host.
const ENDINGS: [&str; 46] = [
    "ai", "app", "au", "bat", "ca", "ch", "co", "com", "cpp", "css", "csv", "de", "dev", "doc", "docx",
    "edu", "eu", "exe", "fr", "gif", "gov", "htm", "html", "info", "io", "jpg", "js", "json", "md", "mil",
    "net", "nl", "org", "pdf", "png", "py", "rs", "sh", "toml", "ts", "txt", "uk", "wav", "xml", "yaml",
    "zip",
];

pub fn read(here: &Here) -> Option<Said> {
    let core = here.part.core;
    if !core.contains(['.', ':', '@', '/', '\\']) {
        if let Some(words) = zip(here).or_else(|| hash(core)) {
            return Some(Said::one(words));
        }
        let number = core.strip_prefix(['v', 'V'])?;
        let digits = !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit());
        return digits.then(|| Said::one(format!("version {}", cardinal(number))));
    }
    dotted_numbers(core)
        .or_else(|| hardware(core))
        .or_else(|| linked(core))
        .or_else(|| file(here))
        .map(Said::one)
}

/// `192.168.0.1:80`, `10.0.0.0/8`, `v1.2.3-rc1`, `1.2.3`; numbers grouped by stops are a number's business.
fn dotted_numbers(core: &str) -> Option<String> {
    let mut rest = Cursor(core);
    let version = rest.any(&['v', 'V']).is_some();
    let mut parts = vec![rest.digits(1, 9)?];
    while rest.eat(".").is_some() {
        parts.push(rest.digits(1, 9)?);
    }
    (version || parts.len() > 2).then_some(())?;
    let host = !version && parts.len() == 4 && parts.iter().all(|part| value(part).is_some_and(|n| n < 256));
    let joint = if host { " dot " } else { " point " };
    let mut words: Vec<String> = parts.iter().map(|part| cardinal(part)).collect();
    if version {
        words = vec![format!("version {}", words.join(joint))];
    }
    let words = words.join(joint);
    if rest.end().is_some() {
        return Some(words);
    }
    (host && rest.0.starts_with([':', '/']) || rest.0.starts_with(['-', '+'])).then_some(())?;
    Some(format!("{words} {}", signs_and_words(rest.0)))
}

/// `MN 55101`.
fn zip(here: &Here) -> Option<String> {
    let digits = here.part.core;
    (digits.len() == 5 && digits.bytes().all(|c| c.is_ascii_digit())).then_some(())?;
    here.before().filter(|before| STATES.contains(&before.core)).map(|_| spelled(digits))
}

/// A UUID or a hash, digit by digit.
fn hash(core: &str) -> Option<String> {
    let groups: Vec<&str> = core.split('-').take(6).collect();
    let uuid = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
    let letters = core.bytes().any(|c| c.is_ascii_alphabetic());
    let digits = core.bytes().any(|c| c.is_ascii_digit());
    let long = groups.len() == 1 && (16..=128).contains(&core.len());
    let hex = core.bytes().all(|c| c.is_ascii_hexdigit() || c == b'-');
    (hex && letters && digits && (uuid || long)).then(|| {
        let spell = |group: &&str| {
            let names = group.chars().map(|c| match c.is_ascii_digit() {
                true => spelled(&c.to_string()),
                false => c.to_uppercase().to_string(),
            });
            names.collect::<Vec<_>>().join(" ")
        };
        groups.iter().map(spell).collect::<Vec<_>>().join(", ")
    })
}

/// `fe80::1` and `00:1a:2b:3c:4d:5e`, sign by sign.
fn hardware(core: &str) -> Option<String> {
    let groups = core.bytes().filter(|c| *c == b':').count() + 1;
    let hex = core.bytes().all(|c| c.is_ascii_hexdigit() || c == b':');
    let longest = core.split(':').map(str::len).max()?;
    let shape = core.contains("::") || groups == 8 || (groups == 6 && longest == 2);
    (hex && (3..=9).contains(&groups) && longest <= 4 && shape).then_some(())?;
    let names = core.chars().map(|c| match c {
        ':' => "colon".to_string(),
        digit if digit.is_ascii_digit() => spelled(&digit.to_string()),
        letter => letter.to_uppercase().to_string(),
    });
    Some(names.collect::<Vec<_>>().join(" "))
}

/// `https://example.org/a_b?c=1`, `www.example.org`, `example.org/x`, `joe.bloggs@mail.co.uk`.
fn linked(core: &str) -> Option<String> {
    let scheme = SCHEMES.iter().find_map(|(scheme, words)| {
        core.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme))?;
        Some((*words, core.get(scheme.len()..)?)).filter(|(_, rest)| !rest.is_empty())
    });
    if let Some((words, rest)) = scheme {
        return Some(format!("{words} {}", signs_and_words(rest)).trim().to_string());
    }
    let end = core.find(['/', ':', '?', '#']).unwrap_or(core.len());
    let host = core.get(..end)?;
    let (user, domain) = host.rsplit_once('@').map_or((None, host), |(user, domain)| (Some(user), domain));
    let label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-');
    let (_, ending) = domain.rsplit_once('.')?;
    domain.split('.').all(label).then_some(())?;
    ending.chars().all(char::is_alphabetic).then_some(())?;
    let known = domain.starts_with("www.") || ENDINGS.contains(&ending.to_ascii_lowercase().as_str());
    let shaped = match user {
        Some(user) => !user.is_empty() && user.chars().all(|c| c.is_alphanumeric() || "._%+-".contains(c)),
        None => known,
    };
    shaped.then(|| signs_and_words(core))
}

/// `/usr/local/bin`, `~/x`, `C:\Temp\x.txt`, `src/main.rs`, `file_name.rs`.
fn file(here: &Here) -> Option<String> {
    let core = here.part.core;
    let inner = |mark: char| core.matches(mark).count();
    let rooted =
        core.starts_with('/') || core.starts_with("~/") || core.starts_with("./") || core.starts_with("../");
    let drive = core.get(1..).is_some_and(|rest| rest.starts_with(":\\") || rest.starts_with(":/"));
    let ending = core.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let named = ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()));
    let path = (rooted && core.contains(char::is_alphanumeric) && (inner('/') > 1 || core.len() > 2))
        || (drive && core.starts_with(|c: char| c.is_ascii_alphabetic()))
        || (inner('\\') > 1 && core.contains(char::is_alphabetic))
        || (named && core.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c)));
    let shape = |c: char| c.is_alphanumeric() || "._-/\\:~+".contains(c);
    (path && core.chars().all(shape)).then(|| signs_and_words(core).replace(" underscore ", " "))
}

/// Words as they are, signs by name; a number of five digits and more digit by digit.
fn signs_and_words(address: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut rest = address;
    while let Some(c) = rest.chars().next() {
        let class = |x: char| if x.is_ascii_digit() { 1 } else { i32::from(!x.is_alphabetic()) * 2 };
        let run = match class(c) {
            2 => c.len_utf8(),
            kind => rest.find(|x| class(x) != kind).unwrap_or(rest.len()),
        };
        let (head, tail) = rest.split_at_checked(run).unwrap_or((rest, ""));
        words.push(match class(c) {
            1 if head.len() > 4 => spelled(head),
            1 => cardinal(head),
            2 if c == '_' => "underscore".into(),
            2 => SIGNS
                .iter()
                .find(|(sign, _)| *sign == c)
                .map_or(head.to_string(), |(_, name)| name.to_string()),
            _ if SPELLED.contains(&head.to_ascii_lowercase().as_str()) => {
                head.to_uppercase().chars().map(String::from).collect::<Vec<_>>().join(" ")
            }
            _ => head.to_string(),
        });
        rest = tail;
    }
    words.join(" ")
}
