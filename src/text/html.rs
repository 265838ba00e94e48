//! An HTML tag or entity in, what it stands for out.
//!
//! A tag that begins a block breaks the line, any other is nothing; a comment is nothing; `<https://example.org>` and
//! `<joe@example.org>` are the address. Only elements of HTML are tags: `a < b` and `<T>` are not.
//!
//! Never takes away text between tags, and never looks further than [`MAX_TAG_CHARACTERS`].

/// The longest tag, in characters. What is longer is read as text.
pub const MAX_TAG_CHARACTERS: usize = 256;
const MAX_ENTITY_CHARACTERS: usize = 8;

/// Elements that end a line.
const BLOCKS: &[&str] = &[
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tr",
    "ul",
];

/// Elements inside a line.
const INLINE: &[&str] = &[
    "a", "abbr", "b", "big", "body", "button", "cite", "code", "del", "details", "dfn", "em", "font", "head",
    "html", "i", "iframe", "img", "input", "ins", "kbd", "label", "link", "mark", "meta", "q", "s", "samp",
    "script", "small", "span", "strike", "strong", "style", "sub", "sup", "svg", "tbody", "td", "tfoot",
    "th", "thead", "title", "tt", "u", "var", "video", "wbr",
];

const ENTITIES: &[(&str, &str)] = &[
    ("amp", "&"),
    ("apos", "'"),
    ("bull", " "),
    ("copy", "©"),
    ("deg", "°"),
    ("euro", "€"),
    ("gt", ">"),
    ("hellip", "..."),
    ("ldquo", "\""),
    ("lsquo", "'"),
    ("lt", "<"),
    ("mdash", "—"),
    ("nbsp", " "),
    ("ndash", "—"),
    ("pound", "£"),
    ("quot", "\""),
    ("rdquo", "\""),
    ("reg", "®"),
    ("rsquo", "'"),
    ("times", "×"),
    ("trade", " trademark "),
];

/// What the tag or entity stands for that `first` begins, and how many characters of `rest` it takes.
pub fn plain(first: char, rest: impl Iterator<Item = char>) -> Option<(String, usize)> {
    match first {
        '<' => tag(rest),
        _ => entity(rest),
    }
}

fn tag(rest: impl Iterator<Item = char>) -> Option<(String, usize)> {
    let mut inner = String::new();
    for (at, c) in rest.take(MAX_TAG_CHARACTERS).enumerate() {
        match c {
            '>' if !inner.starts_with("!--") || inner.ends_with("--") && inner.len() > 4 => {
                return stands_for(&inner).map(|plain| (plain, at + 1));
            }
            '<' | '\n' | '\r' => return None,
            '/' | '!' => inner.push(c),
            c if inner.is_empty() && !c.is_ascii_alphabetic() => return None,
            c => inner.push(c),
        }
    }
    None
}

fn stands_for(inner: &str) -> Option<String> {
    if inner.starts_with("!--") {
        return Some(String::new());
    }
    let mail =
        inner.split_once('@').is_some_and(|(_, host)| host.contains('.') && !host.contains(['@', '/']));
    let address = ["http://", "https://", "mailto:"].iter().any(|scheme| inner.starts_with(scheme));
    if (address || mail) && !inner.contains([' ', '=']) {
        return Some(inner.to_string());
    }
    let name = inner.trim_start_matches('/');
    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    let (name, attributes) = name.split_at_checked(end)?;
    let attributes = attributes.trim_end_matches('/').trim();
    (attributes.is_empty() || attributes.contains('=')).then_some(())?;
    let name = name.to_ascii_lowercase();
    let known = |table: &[&str]| table.contains(&name.as_str());
    if known(BLOCKS) { Some("\n".into()) } else { known(INLINE).then(String::new) }
}

fn entity(rest: impl Iterator<Item = char>) -> Option<(String, usize)> {
    let mut name = String::new();
    for c in rest.take(MAX_ENTITY_CHARACTERS + 1) {
        match c {
            ';' => {
                let count = name.len() + 1;
                let code = match name.strip_prefix('#') {
                    Some(digits) => match digits.strip_prefix(['x', 'X']) {
                        Some(hex) => u32::from_str_radix(hex, 16).ok(),
                        None => digits.parse().ok(),
                    },
                    None => None,
                };
                let named =
                    || ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, plain)| plain.to_string());
                let numbered = code.and_then(char::from_u32).filter(|c| !c.is_control()).map(String::from);
                return numbered.or_else(named).map(|plain| (plain, count));
            }
            c if c.is_ascii_alphanumeric() || (c == '#' && name.is_empty()) => name.push(c),
            _ => return None,
        }
    }
    None
}
