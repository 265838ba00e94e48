//! A table of commas with a header in, clips out: the `metadata.csv` of a Hugging Face audiofolder.
//!
//! Fields may be quoted (RFC 4180).

use std::path::Path;

use super::{Clip, Format, Listed, Row, SPEAKERS, TEXTS};

const FILE: &str = "file_name";

/// Whether `text` begins with such a header.
pub fn has_header(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.split(',').any(|column| column.trim().trim_matches('"') == FILE)
}

pub fn read(text: &str, root: &Path) -> Listed {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| e.to_string())?.clone();
    let column = |names: &[&str]| names.iter().find_map(|name| header.iter().position(|h| h.trim() == *name));
    let file = column(&[FILE]).ok_or_else(|| format!("no column is called `{FILE}`"))?;
    let words = column(&TEXTS).ok_or("no column holds the text: `text` or `transcription`")?;
    let speaker = column(&SPEAKERS);
    let row = |record: csv::StringRecord| -> Row {
        let line = record.position().map_or(0, |position| line(text, position));
        let field = |at: usize| record.get(at).map(str::trim);
        let clip = match (field(file), field(words)) {
            (None | Some(""), _) => Err(format!("`{FILE}` is empty")),
            (_, None) => Err(format!("{} columns, the text is column {}", record.len(), words + 1)),
            (_, Some(text)) if text.contains('\n') => {
                Err(format!("its text goes over {} lines: is a quote not closed?", text.lines().count()))
            }
            (Some(file), Some(text)) => Ok(Clip {
                line,
                audio: root.join(file),
                span: None,
                text: text.to_owned(),
                speaker: speaker.and_then(field).filter(|name| !name.is_empty()).map(str::to_owned),
            }),
        };
        (line, clip)
    };
    let rows = reader.records().map(|record| record.map(row).map_err(|e| e.to_string()));
    Ok((Format::AudioFolder, rows.collect::<Result<_, _>>()?))
}

/// The line of a record, from 1 on; the reader's position is before the ends of lines that come first.
fn line(text: &str, position: &csv::Position) -> usize {
    let rest = text.get(position.byte() as usize..).unwrap_or_default();
    let blank = rest.chars().take_while(|c| matches!(c, '\r' | '\n'));
    position.line() as usize + blank.filter(|c| *c == '\n').count()
}
