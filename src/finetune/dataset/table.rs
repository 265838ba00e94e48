//! A table with a header in, clips out: the `metadata.csv` of a Hugging Face audiofolder.
//!
//! Fields stand between `,`, or between what the header has instead, and may be quoted (RFC 4180), on one line: a quote
//! that is not closed costs its own line alone. Never guesses what a row of more or fewer fields than the header means.

use std::path::Path;

use super::{Clip, Format, Listed, SPEAKERS, TEXTS};
use crate::error::Excerpt;

const FILE: &str = "file_name";
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];
const UNCLOSED: &str = "a quote is not closed on its line";

/// Whether `text` begins with such a header.
pub fn has_header(text: &str) -> bool {
    separator(text.lines().next().unwrap_or_default()).is_some()
}

/// What stands between the columns of a header.
fn separator(header: &str) -> Option<char> {
    let names_file = |by: &char| header.split(*by).any(|column| column.trim().trim_matches('"') == FILE);
    SEPARATORS.into_iter().find(names_file)
}

pub fn read(text: &str, root: &Path) -> Listed {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, first) = lines.next().unwrap_or_default();
    let by = separator(first).ok_or_else(|| format!("no column is called `{FILE}`"))?;
    let header = fields(first, by).map_err(|reason| format!("its header: {reason}"))?;
    let columns = Columns::new(&header)?;
    // The line whose quote is open.
    let mut open = None;
    let mut row = |line: usize, row: &str| {
        let closes = row.matches('"').count() % 2 == 1;
        let opened = open.take_if(|_| closes);
        let fields = fields(row, by);
        if opened.is_none() && fields.as_ref().is_err_and(|reason| reason == UNCLOSED) {
            open = Some(line);
        }
        match (fields, opened) {
            (Err(reason), _) => Err(reason),
            (Ok(_), Some(opened)) => Err(format!("it may belong to the quote that line {opened} opens")),
            (Ok(fields), None) => columns.clip(fields, line, root),
        }
    };
    let rows = lines.map(|(index, text)| (index + 1, row(index + 1, text))).collect();
    Ok((Format::AudioFolder, rows))
}

/// Where a header has what a clip needs.
struct Columns {
    count: usize,
    file: usize,
    text: usize,
    speaker: Option<usize>,
}

impl Columns {
    fn new(header: &[String]) -> Result<Self, String> {
        let place = |name: &str| header.iter().position(|column| column == name);
        let last = |name: &str| header.iter().rposition(|column| column == name);
        let twice = [FILE].into_iter().chain(TEXTS).chain(SPEAKERS).find(|name| place(name) != last(name));
        if let Some(name) = twice {
            return Err(format!("two columns are called `{name}`"));
        }
        let column = |names: &[&str]| names.iter().find_map(|name| place(name));
        Ok(Self {
            count: header.len(),
            file: column(&[FILE]).ok_or_else(|| format!("no column is called `{FILE}`"))?,
            text: column(&TEXTS)
                .ok_or_else(|| format!("no column holds the text: {} are looked for", TEXTS.join(", ")))?,
            speaker: column(&SPEAKERS),
        })
    }

    fn clip(&self, mut fields: Vec<String>, line: usize, root: &Path) -> Result<Clip, String> {
        if fields.len() != self.count {
            return Err(format!(
                "{} fields, the header has {}: a text with a separator in it stands in quotes",
                fields.len(),
                self.count
            ));
        }
        let mut field = |at: usize| fields.get_mut(at).map(std::mem::take).unwrap_or_default();
        let file = field(self.file);
        if file.is_empty() {
            return Err(format!("`{FILE}` is empty"));
        }
        let speaker = self.speaker.map(&mut field).filter(|name| !name.is_empty());
        Ok(Clip { line, audio: root.join(file), span: None, text: field(self.text), speaker })
    }
}

/// The fields of one line, without the spaces around them. A quote within a field that does not begin with one is a
/// part of it.
fn fields(line: &str, by: char) -> Result<Vec<String>, String> {
    let mut fields = vec![];
    let mut rest = line;
    loop {
        let Some(quoted) = rest.trim_start().strip_prefix('"') else {
            let (field, more) = rest.split_once(by).map_or((rest, None), |(field, more)| (field, Some(more)));
            fields.push(field.trim().to_owned());
            match more {
                Some(more) => rest = more,
                None => return Ok(fields),
            }
            continue;
        };
        let (field, after) = unquoted(quoted)?;
        fields.push(field.trim().to_owned());
        match after.trim_start_matches([' ', '\r']) {
            "" => return Ok(fields),
            after => match after.strip_prefix(by) {
                Some(more) => rest = more,
                None => {
                    return Err(format!(
                        "`{}` after a closing quote: a quote within quotes is written twice",
                        Excerpt(after)
                    ));
                }
            },
        }
    }
}

/// What stands before the closing quote, and what comes after it.
fn unquoted(quoted: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = quoted;
    while let Some((part, after)) = rest.split_once('"') {
        field.push_str(part);
        match after.strip_prefix('"') {
            Some(after) => {
                field.push('"');
                rest = after;
            }
            None => return Ok((field, after)),
        }
    }
    Err(UNCLOSED.to_owned())
}
