//! A line of Markdown in, the line as it is read out.
//!
//! Stripped are: the marks of headings, quotes, list items and fences at the start of a line with the language of a
//! fence, lines that are rules, and the target and title of a link. Emphasis is taken away where words are read, sign by sign.
//!
//! Never removes a word that a rule above does not name.

/// A link's target is looked for this far, so that a flood of `](` stays linear.
const MAX_LINK_CHARACTERS: usize = 512;

/// Headings, quotes, list markers and rules at the start of a line.
pub fn strip_line_markup(line: &str) -> &str {
    let mut line = line.trim_start();
    if is_rule(line) {
        return "";
    }
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

/// Whether `line` underlines a heading or is a rule.
fn is_rule(line: &str) -> bool {
    let mark = line.chars().next().filter(|c| matches!(c, '=' | '-' | '*' | '_'));
    mark.is_some_and(|mark| line.len() > 2 && line.trim_end().chars().all(|c| c == mark || c == ' '))
}

/// Where `target)` or `target "title")` is closed.
fn end_of_target(target: &str) -> Option<usize> {
    let mut characters = target.char_indices().take(MAX_LINK_CHARACTERS);
    let (at, c) = characters.find(|(_, c)| matches!(c, ')' | ' '))?;
    if c == ')' {
        return Some(at);
    }
    let (_, quote) = characters.find(|(_, c)| *c != ' ').filter(|(_, c)| matches!(c, '"' | '\''))?;
    let mut before = ' ';
    characters.find_map(|(at, c)| (std::mem::replace(&mut before, c) == quote && c == ')').then_some(at))
}

/// `[docs](https://example.org)` and `![docs](...)` as "docs".
pub fn strip_links(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(middle) = rest.find("](") {
        let (label, target) =
            (rest.get(..middle).unwrap_or_default(), rest.get(middle + 2..).unwrap_or_default());
        let open = label.rfind('[');
        match (open, end_of_target(target)) {
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
