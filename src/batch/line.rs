//! One JSONL line in, one [`Job`] or its [`Refusal`] out.
//!
//! Never looks at a voice, a file or another line.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::assembly::{MAX_SILENCE_MS, Silences};
use crate::codec::{Encoding, SAMPLE_RATES_HZ};
use crate::engine::SPEAKING_RATES;
use crate::error::{Error, Excerpt};
use crate::precision::cast;
use crate::synthesizer::Script;
use crate::text::{DateOrder, Markup};

/// The longest line that is read, in bytes: the longest text, with every byte escaped as `\u0000`.
pub const MAX_LINE_BYTES: usize = 6 * crate::text::MAX_TEXT_BYTES + (64 << 10);

/// Names that are understood, ours first.
const FIELDS: [&str; 21] = [
    "text",
    "phonemes",
    "ssml",
    "id",
    "output",
    "voice",
    "speaker",
    "speaker_id",
    "speaker_embedding",
    "seed",
    "speaking_rate",
    "encoding",
    "sample_rate_hz",
    "lead_silence_ms",
    "tail_silence_ms",
    "sentence_silence_ms",
    "lexicon",
    "markup",
    "date_order",
    "output_file",
    "uttid",
];
/// What GLM-TTS calls a text.
const SYN_TEXT: &str = "syn_text";
/// What GLM-TTS clones a voice from.
const PROMPT_FIELDS: [&str; 2] = ["prompt_text", "prompt_speech"];

/// Why a line is not spoken: a stable name and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: &'static str,
    pub message: String,
}

impl Refusal {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Who of a voice speaks.
#[derive(Debug, Clone, PartialEq)]
pub enum SpeakerChoice {
    Default,
    Name(String),
    /// The number of a speaker in the order of their names, from 0.
    Number(u64),
    /// [speaker_embedding_dim], as it was given
    Embedding(Vec<f32>),
}

/// What one line asks for. `None` leaves a thing to the command line.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: Option<String>,
    pub output: Option<String>,
    pub script: Script,
    pub voice: Option<String>,
    pub speaker: SpeakerChoice,
    pub seed: Option<u64>,
    pub speaking_rate: Option<f32>,
    pub encoding: Option<Encoding>,
    pub sample_rate_hz: Option<u32>,
    pub silences: Silences,
    pub lexicon: Option<String>,
    pub markup: Option<Markup>,
    pub date_order: Option<DateOrder>,
}

/// The fields of an object in their order, duplicates included.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A line's fields while they are taken.
struct Taken(Vec<(String, Value)>);

impl Taken {
    fn value(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(field, _)| field == name)?;
        // Null says as much as nothing.
        Some(self.0.swap_remove(at).1).filter(|value| !value.is_null())
    }

    fn string(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, "a string", &other)),
        }
    }

    fn whole(&mut self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = match &value {
            Value::Number(number) if number.is_f64() => {
                return Err(wrong_type(name, "a whole number", &value));
            }
            Value::Number(number) => number.as_u64().filter(|number| range.contains(number)),
            other => return Err(wrong_type(name, "a whole number", other)),
        };
        let (low, high) = (range.start(), range.end());
        let refuse = || Refusal::new("out_of_range", format!("{name} {value} is not in {low} to {high}"));
        number.map(Some).ok_or_else(refuse)
    }

    /// As [`Self::whole`], of 32 bits.
    fn whole_u32(&mut self, name: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, Refusal> {
        let (low, high) = range.into_inner();
        let number = self.whole(name, u64::from(low)..=u64::from(high))?;
        Ok(number.and_then(|number| u32::try_from(number).ok()))
    }

    /// The string of the one of `names` that is given.
    fn one_of(&mut self, names: &[&str]) -> Result<Option<(usize, String)>, Refusal> {
        let mut found: Option<(usize, String)> = None;
        for (at, name) in names.iter().enumerate() {
            let Some(text) = self.string(name)? else { continue };
            if let Some((before, _)) = found {
                let before = names.get(before).copied().unwrap_or_default();
                let reason = format!("{before} and {name} are both given: one is enough");
                return Err(Refusal::new("conflicting_fields", reason));
            }
            found = Some((at, text));
        }
        Ok(found)
    }
}

/// Reads `bytes`, one line without its end; a byte order mark is the caller's to take away.
///
/// # Errors
/// A [`Refusal`], and the id of the line where it could still be told.
pub fn parse(bytes: &[u8], allow_unknown: bool) -> Result<Job, (Refusal, Option<String>)> {
    let alone = |refusal| (refusal, None);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        alone(Refusal::new("not_utf8", format!("the line is not UTF-8 from byte {at} on")))
    })?;
    let Fields(fields) = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            let found = serde_json::from_str::<Value>(text).map_or("something else", |value| kind(&value));
            return alone(Refusal::new("not_an_object", format!("the line is {found}, not a JSON object")));
        }
        alone(Refusal::new("not_json", format!("the line is not JSON: {}", Excerpt(&error.to_string()))))
    })?;
    let named = |(name, value): &(String, Value)| match (name.as_str(), value) {
        ("id" | "uttid", Value::String(id)) => Some(id.clone()),
        _ => None,
    };
    let id = fields.iter().find_map(named);
    job(fields, allow_unknown).map_err(|refusal| (refusal, id))
}

fn job(fields: Vec<(String, Value)>, allow_unknown: bool) -> Result<Job, Refusal> {
    check_names(&fields, allow_unknown)?;
    let mut taken = Taken(fields);
    for name in PROMPT_FIELDS {
        let empty = |value: &Value| value.as_str().is_some_and(str::is_empty);
        if taken.value(name).is_some_and(|value| !empty(&value)) {
            let reason = format!(
                "{name} asks to clone a voice from a recording: voices here speak with a speaker embedding and cannot use \
                 a prompt; take it away, or make an embedding of the recording and name it with --speaker"
            );
            return Err(Refusal::new("unsupported_field", reason));
        }
    }
    let script = match taken.one_of(&["text", "phonemes", "ssml", SYN_TEXT])? {
        Some((1, text)) => Script::Phonemes(text),
        Some((2, text)) => Script::Ssml(text),
        Some((_, text)) => Script::Text(text),
        None => {
            let reason = "none of text, phonemes, ssml (or syn_text) is given";
            return Err(Refusal::new("missing_text", reason));
        }
    };
    let id = taken.one_of(&["id", "uttid"])?.map(|(_, id)| id);
    let output = taken.one_of(&["output", "output_file"])?.map(|(_, output)| output);
    let speaker = speaker(&mut taken)?;
    let speaking_rate = speaking_rate(taken.value("speaking_rate"))?;
    let valued = |error: Error| Refusal::new("out_of_range", error.to_string());
    let encoding = taken.string("encoding")?.map(|name| name.parse()).transpose().map_err(valued)?;
    let sample_rate_hz = taken.whole_u32("sample_rate_hz", SAMPLE_RATES_HZ)?;
    let mut silence = |name: &str| taken.whole_u32(name, 0..=MAX_SILENCE_MS);
    let silences = Silences {
        lead_ms: silence("lead_silence_ms")?.unwrap_or(0),
        tail_ms: silence("tail_silence_ms")?.unwrap_or(0),
        sentence_ms: silence("sentence_silence_ms")?,
    };
    let (lexicon, markup, date_order) =
        (taken.string("lexicon")?, taken.string("markup")?, taken.string("date_order")?);
    let markup = markup.map(|name| name.parse()).transpose().map_err(valued)?;
    let date_order = date_order.map(|name| name.parse()).transpose().map_err(valued)?;
    if matches!(script, Script::Phonemes(_))
        && (lexicon.is_some() || markup.is_some() || date_order.is_some())
    {
        let reason = "lexicon, markup and date_order say how text is read: phonemes are spoken as they are";
        return Err(Refusal::new("conflicting_fields", reason));
    }
    Ok(Job {
        id,
        output,
        script,
        voice: taken.string("voice")?,
        speaker,
        seed: taken.whole("seed", 0..=u64::MAX)?,
        speaking_rate,
        encoding,
        sample_rate_hz,
        silences,
        lexicon,
        markup,
        date_order,
    })
}

fn speaker(taken: &mut Taken) -> Result<SpeakerChoice, Refusal> {
    const EMBEDDING: &str = "speaker_embedding";
    let number = taken.whole("speaker_id", 0..=u64::from(u32::MAX))?;
    let named = match (taken.string("speaker")?, number) {
        // Piper's files may say both: the name is what they mean.
        (Some(name), _) => SpeakerChoice::Name(name),
        (None, Some(number)) => SpeakerChoice::Number(number),
        (None, None) => SpeakerChoice::Default,
    };
    let Some(value) = taken.value(EMBEDDING) else { return Ok(named) };
    if named != SpeakerChoice::Default {
        let reason = "speaker_embedding and a speaker are both given: one is enough";
        return Err(Refusal::new("conflicting_fields", reason));
    }
    let Value::Array(values) = value else {
        return Err(wrong_type(EMBEDDING, "an array of numbers", &value));
    };
    let number = |(at, value): (usize, &Value)| {
        let refuse = || wrong_type(&format!("{EMBEDDING}[{at}]"), "a number", value);
        value.as_f64().map(cast::f64_to_f32).ok_or_else(refuse)
    };
    values.iter().enumerate().map(number).collect::<Result<_, _>>().map(SpeakerChoice::Embedding)
}

fn speaking_rate(value: Option<Value>) -> Result<Option<f32>, Refusal> {
    let Some(value) = value else { return Ok(None) };
    let Some(rate) = value.as_f64() else { return Err(wrong_type("speaking_rate", "a number", &value)) };
    let rate = cast::f64_to_f32(rate);
    if !SPEAKING_RATES.contains(&rate) {
        let (low, high) = SPEAKING_RATES.into_inner();
        let reason = format!("speaking_rate {value} is not in {low} to {high}");
        return Err(Refusal::new("out_of_range", reason));
    }
    Ok(Some(rate))
}

/// Refuses fields that come twice, and those that nobody knows.
fn check_names(fields: &[(String, Value)], allow_unknown: bool) -> Result<(), Refusal> {
    let known = || FIELDS.into_iter().chain([SYN_TEXT]).chain(PROMPT_FIELDS);
    let mut seen = std::collections::HashSet::new();
    for (name, _) in fields {
        if !seen.insert(name.as_str()) {
            let reason = format!("the field `{}` comes twice", Excerpt(name));
            return Err(Refusal::new("duplicate_field", reason));
        }
        if allow_unknown || known().any(|known| known == name) {
            continue;
        }
        // Of a short name a few edits make anything.
        let near = (name.chars().count() / 3).clamp(1, 3);
        let nearest =
            known().map(|known| (edits(known, name), known)).min().filter(|(edits, _)| *edits <= near);
        let hint = nearest.map_or_else(String::new, |(_, known)| format!(", is `{known}` meant?"));
        let name = Excerpt(name);
        let reason =
            format!("no field is called `{name}`{hint} (--allow-unknown takes lines with other fields)");
        return Err(Refusal::new("unknown_field", reason));
    }
    Ok(())
}

/// Edits that make `a` of the beginning of `b` (Levenshtein); a name beyond any of ours is far from all.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().take(40).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut left = i + 1;
        let mut next = vec![left];
        for (to, pair) in b.iter().zip(row.windows(2)) {
            let [diagonal, above] = pair else { continue };
            left = (left + 1).min(above + 1).min(diagonal + usize::from(from != to));
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

fn wrong_type(name: &str, wanted: &str, found: &Value) -> Refusal {
    Refusal::new("wrong_type", format!("{name} is {}, {wanted} is needed", kind(found)))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction or an exponent",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
