//! A JSON object a line in, clips out: Hugging Face `metadata.jsonl`, NeMo manifests.

use std::path::Path;

use serde_json::{Map, Value};

use super::{BadLine, Clip, Format, Listed, SPEAKERS, TEXTS};

pub fn read(text: &str, root: &Path) -> Listed {
    let (mut clips, mut bad_lines, mut format) = (vec![], vec![], Format::NeMo);
    for (index, row) in text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()) {
        let line = index + 1;
        match clip(row, line, root) {
            Ok((clip, found)) => {
                format = found;
                clips.push(clip);
            }
            Err(reason) => bad_lines.push(BadLine { line, reason }),
        }
    }
    Ok((format, clips, bad_lines))
}

fn clip(row: &str, line: usize, root: &Path) -> Result<(Clip, Format), String> {
    let object: Map<String, Value> = serde_json::from_str(row).map_err(|e| format!("no JSON object: {e}"))?;
    let field = |names: &[&str]| {
        names.iter().find_map(|name| match object.get(*name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
    };
    let (file, format) = match (field(&["audio_filepath"]), field(&["file_name"])) {
        (Some(file), _) => (file, Format::NeMo),
        (None, Some(file)) => (file, Format::AudioFolder),
        (None, None) => return Err("neither `audio_filepath` nor `file_name` is there".to_owned()),
    };
    let text = field(&TEXTS).ok_or_else(|| format!("none of {} is there", TEXTS.join(", ")))?;
    Ok((Clip { line, audio: root.join(file), text, speaker: field(&SPEAKERS) }, format))
}
