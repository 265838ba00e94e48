//! A request message in, what it asks of which voice out, or the reason why it cannot be served.
//!
//! Never ignores a value: one that is not served is refused with the value and its limit.

use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tonic::metadata::MetadataMap;

use super::pb;
use crate::assembly::Silences;
use crate::codec::{AudioFormat, Encoding};
use crate::engine::{ChunkSizes, DEFAULT_SEED, StreamRequest};
use crate::error::{Error, Excerpt, Result};
use crate::repertoire::ServedVoice;
use crate::synthesizer::Script;
use crate::text::{DateOrder, Lexicon, Markup, Reading};

pub const SAMPLE_RATES_HZ: RangeInclusive<u32> = crate::codec::SAMPLE_RATES_HZ;
pub use crate::assembly::MAX_SILENCE_MS;
pub use crate::engine::SPEAKING_RATES;
pub const MAX_CHUNK_FRAMES: u32 = 512;
const MAX_ID_BYTES: usize = 128;
/// `grpc-timeout` has eight digits at most.
const MAX_TIMEOUT_DIGITS: usize = 8;

/// The encodings that are served.
pub const ENCODINGS: [(Encoding, pb::AudioEncoding); 4] = [
    (Encoding::PcmS16Le, pb::AudioEncoding::PcmS16le),
    (Encoding::PcmF32Le, pb::AudioEncoding::PcmF32le),
    (Encoding::MuLaw, pb::AudioEncoding::Mulaw),
    (Encoding::WavS16, pb::AudioEncoding::WavS16),
];

/// What the protocol calls `encoding`.
pub fn named(encoding: Encoding) -> pb::AudioEncoding {
    let known = ENCODINGS.iter().find(|(own, _)| *own == encoding);
    known.map_or(pb::AudioEncoding::Unspecified, |(_, named)| *named)
}

/// How a request wants to be spoken and delivered.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub stream: StreamRequest,
    pub reading: Reading,
    pub format: AudioFormat,
    pub silences: Silences,
}

/// What `content` asks to speak.
pub fn script(
    content: Option<pb::synthesize_request::Content>,
    voice: &ServedVoice,
    max_text_bytes: usize,
) -> Result<Script> {
    use pb::synthesize_request::Content;
    let Some(content) = content else {
        return refuse("neither text nor phonemes nor SSML is given".to_owned());
    };
    let (Content::Text(text) | Content::Phonemes(text) | Content::Ssml(text)) = &content;
    check_text_bytes(text.len(), max_text_bytes)?;
    match content {
        Content::Text(text) => Ok(Script::Text(text)),
        Content::Phonemes(_) if !voice.spells_ipa => {
            let name = Excerpt(&voice.name);
            refuse(format!("voice `{name}` spells in characters: phonemes cannot be given"))
        }
        Content::Phonemes(phonemes) => Ok(Script::Phonemes(phonemes)),
        Content::Ssml(ssml) => Ok(Script::Ssml(ssml)),
    }
}

/// Holds the length of a text against the server's limit.
pub fn check_text_bytes(bytes: usize, limit: usize) -> Result<()> {
    if bytes > limit {
        return refuse(format!("the text has {bytes} bytes, the limit is {limit}: send it in parts"));
    }
    Ok(())
}

impl Wanted {
    /// What `config` asks of `voice`.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a value that is not served.
    pub fn new(config: &pb::SynthesisConfig, voice: &ServedVoice, deadline: Option<Instant>) -> Result<Self> {
        use pb::synthesis_config::Speaker;
        let speaker = match &config.speaker {
            None => voice.speakers.named(None)?,
            Some(Speaker::SpeakerName(name)) => voice.speakers.named(Some(name))?,
            Some(Speaker::SpeakerEmbedding(embedding)) => voice.speakers.values(embedding.values.clone())?,
        };
        let stream = StreamRequest {
            speaker,
            seed: config.seed.unwrap_or(DEFAULT_SEED),
            chunk_sizes: chunk_sizes(config.first_chunk_frames, config.max_chunk_frames)?,
            speaking_rate: speaking_rate(config.speaking_rate)?,
            deadline,
        };
        for (name, silence_ms) in [
            ("lead_silence_ms", config.lead_silence_ms),
            ("tail_silence_ms", config.tail_silence_ms),
            ("sentence_silence_ms", config.sentence_silence_ms.unwrap_or(0)),
        ] {
            within(name, silence_ms, 0..=MAX_SILENCE_MS)?;
        }
        let sample_rate_hz = match config.sample_rate_hz {
            0 => voice.synthesizer.sample_rate_hz(),
            asked => within("sample_rate_hz", asked, SAMPLE_RATES_HZ)?,
        };
        Ok(Self {
            stream,
            reading: reading(config, voice)?,
            format: AudioFormat { encoding: encoding(config.encoding)?, sample_rate_hz },
            silences: Silences {
                lead_ms: config.lead_silence_ms,
                tail_ms: config.tail_silence_ms,
                sentence_ms: config.sentence_silence_ms,
            },
        })
    }
}

/// How `config` wants its text read.
fn reading(config: &pb::SynthesisConfig, voice: &ServedVoice) -> Result<Reading> {
    let markup = match pb::Markup::try_from(config.markup) {
        Ok(pb::Markup::Unspecified | pb::Markup::Strip) => Markup::Strip,
        Ok(pb::Markup::Speak) => Markup::Speak,
        Ok(pb::Markup::Keep) => Markup::Keep,
        Err(_) => {
            return refuse(format!("markup {} is none of STRIP = 1, SPEAK = 2, KEEP = 3", config.markup));
        }
    };
    let date_order = match pb::DateOrder::try_from(config.date_order) {
        Ok(pb::DateOrder::Unspecified | pb::DateOrder::MonthFirst) => DateOrder::MonthFirst,
        Ok(pb::DateOrder::DayFirst) => DateOrder::DayFirst,
        Err(_) => {
            return refuse(format!(
                "date_order {} is none of MONTH_FIRST = 1, DAY_FIRST = 2",
                config.date_order
            ));
        }
    };
    let lexicon = match config.custom_dictionary.as_str() {
        "" => None,
        text => Some(Arc::new(Lexicon::parse_custom_dictionary(text)?)),
    };
    let reading = Reading { markup, date_order, lexicon };
    voice.synthesizer.frontend().check_reading(&reading)?;
    Ok(reading)
}

/// Refuses what of `config` says how to read, since phonemes are not read.
pub fn check_phonemes(config: &pb::SynthesisConfig) -> Result<()> {
    let asked = [
        ("markup", config.markup != 0),
        ("date_order", config.date_order != 0),
        ("custom_dictionary", !config.custom_dictionary.is_empty()),
    ];
    match asked.iter().find(|(_, asked)| *asked) {
        Some((name, _)) => refuse(format!("{name} says how text is read: phonemes are spoken as they are")),
        None => Ok(()),
    }
}

fn encoding(number: i32) -> Result<Encoding> {
    let asked = match pb::AudioEncoding::try_from(number) {
        Ok(pb::AudioEncoding::Unspecified) => Some(Encoding::PcmS16Le),
        Ok(asked) => ENCODINGS.iter().find(|(_, named)| *named == asked).map(|(encoding, _)| *encoding),
        Err(_) => None,
    };
    let unknown = || {
        let known =
            ENCODINGS.map(|(_, named)| format!("{} = {}", named.as_str_name(), named as i32)).join(", ");
        Error::InvalidRequest(format!("encoding {number} is none of {known}"))
    };
    asked.ok_or_else(unknown)
}

fn speaking_rate(asked: f32) -> Result<f32> {
    match asked {
        0.0 => Ok(1.0),
        rate if SPEAKING_RATES.contains(&rate) => Ok(rate),
        rate => {
            let (low, high) = SPEAKING_RATES.into_inner();
            refuse(format!("speaking_rate {rate} is not in {low} to {high}"))
        }
    }
}

fn chunk_sizes(first: u32, max: u32) -> Result<ChunkSizes> {
    let default = ChunkSizes::default();
    let frames = |name, asked, default| match asked {
        0 => Ok(default),
        asked => within(name, asked, 1..=MAX_CHUNK_FRAMES).map(|frames| frames as usize),
    };
    let first_frames = frames("first_chunk_frames", first, default.first_frames)?;
    let max_frames = frames("max_chunk_frames", max, default.max_frames.max(first_frames))?;
    if max_frames < first_frames {
        return refuse(format!("max_chunk_frames {max_frames} is below first_chunk_frames {first_frames}"));
    }
    Ok(ChunkSizes { first_frames, max_frames })
}

fn within(name: &str, value: u32, range: RangeInclusive<u32>) -> Result<u32> {
    if range.contains(&value) {
        return Ok(value);
    }
    refuse(format!("{name} {value} is not in {} to {}", range.start(), range.end()))
}

/// The id of a request: its own, that of its metadata, or a new one.
pub fn request_id(own: &str, metadata: &MetadataMap) -> Result<String> {
    let (place, bytes) = match metadata.get("x-request-id") {
        _ if !own.is_empty() => ("the field request_id", own.as_bytes()),
        Some(value) => ("the header x-request-id", value.as_bytes()),
        None => ("", b"".as_slice()),
    };
    let length = bytes.len();
    if length == 0 {
        return Ok(format!("{:016x}", RandomState::new().hash_one(0)));
    }
    if length > MAX_ID_BYTES {
        return refuse(format!("{place} has {length} bytes, the limit is {MAX_ID_BYTES}"));
    }
    match std::str::from_utf8(bytes) {
        Ok(id) if id.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') => Ok(id.to_owned()),
        _ => {
            let text = String::from_utf8_lossy(bytes);
            refuse(format!("{place}, `{}` ({length} bytes), is not printable ASCII", Excerpt(&text)))
        }
    }
}

/// The deadline that the `grpc-timeout` header sets to a request that arrived at `arrived`: up to eight digits and
/// a unit (gRPC over HTTP/2, "Requests").
pub fn deadline(metadata: &MetadataMap, arrived: Instant) -> Result<Option<Instant>> {
    let Some(header) = metadata.get("grpc-timeout") else { return Ok(None) };
    let text = String::from_utf8_lossy(header.as_bytes());
    let malformed = || {
        Error::InvalidRequest(format!("grpc-timeout `{}` is not up to 8 digits and a unit", Excerpt(&text)))
    };
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(malformed)?;
    if digits.is_empty() || digits.len() > MAX_TIMEOUT_DIGITS || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(malformed());
    }
    let number: u64 = digits.parse().map_err(|_| malformed())?;
    let timeout = match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return Err(malformed()),
    };
    // A deadline beyond what the clock can say is none.
    Ok(arrived.checked_add(timeout))
}

/// Refuses a request whose deadline has passed, or comes sooner than `voice` has ever begun to speak, or than it can
/// begin behind those that wait.
pub fn check_deadline(deadline: Option<Instant>, voice: &ServedVoice) -> Result<()> {
    let Some(deadline) = deadline else { return Ok(()) };
    let left = deadline.saturating_duration_since(Instant::now());
    let quickest = voice.quickest();
    if left.is_zero() {
        return Err(Error::DeadlineExceeded("the deadline has passed".to_owned()));
    }
    let wait = voice.synthesizer.engine().stats().expected_wait();
    if left < quickest.saturating_add(wait) && !wait.is_zero() {
        let reason = format!("{left:.1?} are left, others wait and speech would begin in {wait:.1?} or so");
        return Err(Error::DeadlineExceeded(reason));
    }
    if left < quickest {
        let reason = format!("{left:.1?} are left, speech has never begun in less than {quickest:.1?}");
        return Err(Error::DeadlineExceeded(reason));
    }
    Ok(())
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::InvalidRequest(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_told_apart() {
        assert_eq!(encoding(0).unwrap(), Encoding::PcmS16Le);
        for (expected, named) in ENCODINGS {
            assert_eq!(encoding(named as i32).unwrap(), expected);
        }
        for number in [-1, 5, i32::MAX] {
            let refusal = encoding(number).unwrap_err().to_string();
            assert!(refusal.contains(&number.to_string()) && refusal.contains("WAV_S16 = 4"), "{refusal}");
        }
    }

    #[test]
    fn speaking_rates_that_are_not_served_are_refused() {
        for (asked, expected) in [(0.0, 1.0), (0.5, 0.5), (2.0, 2.0)] {
            assert_eq!(speaking_rate(asked).unwrap(), expected);
        }
        for asked in [f32::NAN, f32::INFINITY, -1.0, 0.49, 2.01, 1e-40] {
            let refusal = speaking_rate(asked).unwrap_err().to_string();
            assert!(refusal.contains("0.5 to 2"), "{refusal}");
        }
    }

    #[test]
    fn chunk_sizes_fit_each_other() {
        let check = |first, max, expected: Option<(usize, usize)>| {
            let sizes = chunk_sizes(first, max).ok().map(|sizes| (sizes.first_frames, sizes.max_frames));
            assert_eq!(sizes, expected, "{first} {max}");
        };
        check(0, 0, Some((6, 96)));
        check(200, 0, Some((200, 200)));
        check(10, 10, Some((10, 10)));
        check(512, 512, Some((512, 512)));
        check(10, 9, None);
        check(0, 5, None);
        check(513, 0, None);
    }

    #[test]
    fn timeouts_are_read_as_the_protocol_writes_them() {
        let arrived = Instant::now();
        let read = |text: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().unwrap());
            deadline(&metadata, arrived).map(|deadline| deadline.map(|deadline| deadline - arrived))
        };
        let cases = [
            ("2H", Duration::from_secs(7200)),
            ("3M", Duration::from_secs(180)),
            ("0S", Duration::ZERO),
            ("99999999m", Duration::from_millis(99_999_999)),
            ("7u", Duration::from_micros(7)),
            ("8n", Duration::from_nanos(8)),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).unwrap(), Some(expected), "{text}");
        }
        for text in ["", "5", "m", "-1m", "1.5S", "999999999m", "1 S", "1s"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(deadline(&MetadataMap::new(), arrived).unwrap(), None);
    }
}
