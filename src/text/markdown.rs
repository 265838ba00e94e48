//! A line of Markdown in, the line as it is read out.
//!
//! Stripped are: the marks of headings, quotes, list items and fences at the start of a line with the language of a
//! fence, and the target of a link. Emphasis is taken away where words are read, sign by sign.
//!
//! Never removes a word that a rule above does not name.

/// A link's target is looked for this far, so that a flood of `](` stays linear.
const MAX_LINK_CHARACTERS: usize = 512;

/// Headings, quotes, list markers and rules at the start of a line.
pub fn strip_line_markup(line: &str) -> &str {
    let mut line = line.trim_start();
    if let Some(language) = line.strip_prefix("```").or_else(|| line.strip_prefix("~~~")) {
        let language = language.trim_matches(['`', '~', ' ', '\t']);
        return if language.contains(char::is_whitespace) { language } else { "" };
    }
    loop {
        let stripped = line.trim_start_matches('#').trim_start_matches('>');
        let marked = ["- ", "* ", "+ "].iter().find_map(|marker| line.strip_prefix(marker));
        let next = match marked {
            Some(rest) => rest,
            None if stripped.len() < line.len() && stripped.starts_with([' ', '>']) => stripped,
            None => return line,
        };
        line = next.trim_start();
    }
}

/// `[docs](https://example.org)` and `![docs](...)` as "docs".
pub fn strip_links(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(middle) = rest.find("](") {
        let (label, target) =
            (rest.get(..middle).unwrap_or_default(), rest.get(middle + 2..).unwrap_or_default());
        let open = label.rfind('[');
        let close = target
            .char_indices()
            .take(MAX_LINK_CHARACTERS)
            .find(|(_, c)| matches!(c, ')' | ' '))
            .and_then(|(at, c)| (c == ')').then_some(at));
        match (open, close) {
            (Some(open), Some(close)) => {
                let before = label.get(..open).unwrap_or_default();
                out.push_str(before.strip_suffix('!').unwrap_or(before));
                out.push_str(label.get(open + 1..).unwrap_or_default());
                rest = target.get(close + 1..).unwrap_or_default();
            }
            _ => {
                out.push_str(label);
                out.push_str("](");
                rest = target;
            }
        }
    }
    out.push_str(rest);
}
