//! A JSON object a line in, clips out: Hugging Face `metadata.jsonl`, NeMo manifests.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Clip, Format, Listed, SPEAKERS, Span, TEXTS, prevailing};

pub fn read(text: &str, root: &Path) -> Listed {
    let mut formats = vec![];
    let rows = text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()).map(|(index, row)| {
        let line = index + 1;
        let clip = clip(row, line, root).map(|(clip, format)| {
            formats.push(format);
            clip
        });
        (line, clip)
    });
    let rows = rows.collect();
    Ok((prevailing(&formats).unwrap_or(Format::NeMo), rows))
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
    let span = if format == Format::NeMo { span(&object)? } else { None };
    Ok((Clip { line, audio: root.join(file), span, text, speaker: field(&SPEAKERS) }, format))
}

/// `offset` and `duration`, in seconds: the part of the file that holds the text.
fn span(object: &Map<String, Value>) -> Result<Option<Span>, String> {
    let seconds = |name: &str| match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0) {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(format!("`{name}` is {value}: seconds from 0 on are needed")),
        },
    };
    let (offset, duration) = (seconds("offset")?, seconds("duration")?);
    if duration == Some(0.0) {
        return Err("`duration` is 0".to_owned());
    }
    let span = Span { offset_seconds: offset.unwrap_or(0.0), duration_seconds: duration };
    Ok((offset.is_some() || duration.is_some()).then_some(span))
}
