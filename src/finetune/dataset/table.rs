//! A table in, clips out: LJSpeech and Piper of `|`, Hugging Face `metadata.csv` of commas with a header.

use std::path::Path;

use super::{BadLine, Clip, Format, Listed, SPEAKERS, TEXTS};

pub fn read(text: &str, root: &Path) -> Listed {
    let header = text.lines().next().unwrap_or_default();
    if header.split(',').any(|column| column.trim().trim_matches('"') == "file_name") {
        return audio_folder(text, root);
    }
    let (mut clips, mut bad_lines, mut format) = (vec![], vec![], Format::LjSpeech);
    for (index, row) in text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()) {
        let line = index + 1;
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        match clip(&columns, line, root) {
            Ok((clip, found)) => {
                format = found;
                clips.push(clip);
            }
            Err(reason) => bad_lines.push(BadLine { line, reason }),
        }
    }
    Ok((format, clips, bad_lines))
}

/// An id names a file in `wavs/`; what has an extension, or is there as it stands, names itself.
fn clip(columns: &[&str], line: usize, root: &Path) -> Result<(Clip, Format), String> {
    let (first, second, third) = match *columns {
        [first, second] => (first, second, None),
        [first, second, third] => (first, second, Some(third)),
        _ => return Err(format!("{} columns between `|`, 2 or 3 are needed", columns.len())),
    };
    let is_id = Path::new(first).extension().is_none_or(|extension| extension.len() > 4)
        && !root.join(first).is_file();
    if is_id {
        let audio = root.join("wavs").join(format!("{first}.wav"));
        let text = third.filter(|text| !text.is_empty()).unwrap_or(second).to_owned();
        return Ok((Clip { line, audio, text, speaker: None }, Format::LjSpeech));
    }
    let own = root.join(first);
    let audio = if own.is_file() { own } else { root.join("wavs").join(first) };
    let (speaker, text) = match third {
        Some(third) => (Some(second.to_owned()), third),
        None => (None, second),
    };
    Ok((Clip { line, audio, text: text.to_owned(), speaker }, Format::Piper))
}

fn audio_folder(text: &str, root: &Path) -> Listed {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| e.to_string())?.clone();
    let column = |names: &[&str]| names.iter().find_map(|name| header.iter().position(|h| h.trim() == *name));
    let file = column(&["file_name"]).ok_or("no column is called `file_name`")?;
    let words = column(&TEXTS).ok_or("no column holds the text: `text` or `transcription`")?;
    let speaker = column(&SPEAKERS);
    let (mut clips, mut bad_lines) = (vec![], vec![]);
    for record in reader.records() {
        let record = record.map_err(|e| e.to_string())?;
        let line = record.position().map_or(0, |position| position.line() as usize);
        match (record.get(file), record.get(words)) {
            (Some(file), Some(text)) => clips.push(Clip {
                line,
                audio: root.join(file),
                text: text.to_owned(),
                speaker: speaker.and_then(|at| record.get(at)).map(str::to_owned),
            }),
            _ => bad_lines.push(BadLine { line, reason: format!("{} columns", record.len()) }),
        }
    }
    Ok((Format::AudioFolder, clips, bad_lines))
}
