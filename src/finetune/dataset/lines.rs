//! A JSON object a line in, clips out: Hugging Face `metadata.jsonl`, NeMo manifests.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Clip, Format, Listed, SPEAKERS, Span, TEXTS, prevailing};
use crate::error::Excerpt;
use crate::finetune::unique_json;

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
    let object = match unique_json::read(row) {
        Ok(Value::Object(object)) => object,
        Ok(other) => return Err(format!("`{}` is no JSON object", Excerpt(&other.to_string()))),
        Err(e) => return Err(format!("no JSON object: {e}")),
    };
    let (file, format) = match (first_of(&object, &["audio_filepath"]), first_of(&object, &["file_name"])) {
        (Some(file), _) => (file, Format::NeMo),
        (None, Some(file)) => (file, Format::AudioFolder),
        (None, None) => return Err("neither `audio_filepath` nor `file_name` is there".to_owned()),
    };
    let file = written(file)?;
    if file.is_empty() {
        return Err("the name of the recording is empty".to_owned());
    }
    let text = first_of(&object, &TEXTS).ok_or_else(|| format!("none of {} is there", TEXTS.join(", ")))?;
    let speaker = match first_of(&object, &SPEAKERS) {
        // A speaker may be an index.
        Some((_, Value::Number(number))) => Some(number.to_string()),
        Some(field) => Some(written(field)?.to_owned()).filter(|name| !name.is_empty()),
        None => None,
    };
    let span = if format == Format::NeMo { span(&object)? } else { None };
    Ok((Clip { line, audio: root.join(file), span, text: written(text)?.to_owned(), speaker }, format))
}

/// The first of `names` that `object` has, and what it holds; null holds nothing.
fn first_of<'a>(object: &'a Map<String, Value>, names: &[&'a str]) -> Option<(&'a str, &'a Value)> {
    let mut fields = names.iter().filter_map(|name| Some((*name, object.get(*name)?)));
    fields.find(|(_, value)| !value.is_null())
}

fn written<'a>((name, value): (&str, &'a Value)) -> Result<&'a str, String> {
    let reason = || format!("`{name}` is {}: a text in quotes is needed", Excerpt(&value.to_string()));
    value.as_str().map(str::trim).ok_or_else(reason)
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
