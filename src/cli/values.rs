//! The text of an option in, its value out, or a refusal that names the rule.
//!
//! Never looks at a second option.

use std::time::Duration;

use crate::error::{Error, Excerpt, Result};
use crate::repertoire::VoiceSource;
use crate::runtime::Accelerator;
use crate::telemetry::LogFormat;
use crate::tempo::SPEAKING_RATES;
use crate::text::{DateOrder, MAX_TEXT_BYTES, Markup};

/// `DIR`, or `NAME=DIR`; a name has no `/`, so that a directory may hold a `=`.
pub fn parse_voice(text: &str) -> Result<VoiceSource> {
    let (name, directory) = match text.split_once('=') {
        Some((name, directory)) if !name.contains('/') => (Some(name.to_owned()), directory),
        _ => (None, text),
    };
    if directory.is_empty() || name.as_deref() == Some("") {
        return Err(Error::InvalidRequest(format!("voice `{}` is not DIR or NAME=DIR", Excerpt(text))));
    }
    Ok(VoiceSource { name, directory: Some(directory.into()) })
}

pub fn parse_text_bytes(text: &str) -> Result<usize> {
    let bytes = text.parse().ok().filter(|bytes| (1..=MAX_TEXT_BYTES).contains(bytes));
    bytes.ok_or_else(|| Error::InvalidRequest(format!("`{text}` is not in 1..={MAX_TEXT_BYTES}")))
}

/// A number and `ms`, `s` or `m`.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let refuse = || Error::InvalidRequest(format!("`{text}` is no time such as 500ms, 10s or 2m"));
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u32 = text.strip_suffix(unit).and_then(|digits| digits.parse().ok()).ok_or_else(refuse)?;
    match unit {
        "ms" => Ok(Duration::from_millis(number.into())),
        "s" => Ok(Duration::from_secs(number.into())),
        "m" => Ok(Duration::from_secs(u64::from(number) * 60)),
        _ => Err(refuse()),
    }
}

/// A time that something is waited for, which cannot be none.
pub fn parse_wait(text: &str) -> Result<Duration> {
    let wait = parse_duration(text)?;
    match wait.is_zero() {
        true => Err(Error::InvalidRequest(format!("`{text}` is too short: at least 1ms is needed"))),
        false => Ok(wait),
    }
}

pub fn parse_log_format(text: &str) -> Result<LogFormat> {
    match text {
        "human" => Ok(LogFormat::Human),
        "json" => Ok(LogFormat::Json),
        _ => Err(Error::InvalidRequest(format!("log format `{text}` is not human or json"))),
    }
}

pub fn parse_speaking_rate(text: &str) -> Result<f32> {
    let (low, high) = SPEAKING_RATES.into_inner();
    let rate = text.parse().ok().filter(|rate| SPEAKING_RATES.contains(rate));
    rate.ok_or_else(|| Error::InvalidRequest(format!("a speaking rate must be {low} to {high}")))
}

pub fn parse_markup(text: &str) -> Result<Markup> {
    text.parse()
}

pub fn parse_date_order(text: &str) -> Result<DateOrder> {
    text.parse()
}

#[cfg(feature = "finetune")]
pub fn parse_betas(text: &str) -> Result<[f32; 2]> {
    let pair = text.split_once(',').and_then(|(a, b)| Some([a.trim().parse().ok()?, b.trim().parse().ok()?]));
    pair.ok_or_else(|| {
        Error::InvalidRequest(format!("`{}` is not two numbers such as 0.9,0.98", Excerpt(text)))
    })
}

pub fn parse_device(text: &str) -> Result<Accelerator> {
    let refuse = || Error::InvalidRequest(format!("device `{text}` is not cpu, cuda or cuda:N"));
    match text.split_once(':') {
        None if text == "cpu" => Ok(Accelerator::Cpu),
        None if text == "cuda" => Ok(Accelerator::Cuda(0)),
        Some(("cuda", id)) => id.parse().map(Accelerator::Cuda).map_err(|_| refuse()),
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voices_have_names_of_their_own_or_given_ones() {
        let check = |text: &str, name: Option<&str>, directory: &str| {
            let expected = VoiceSource { name: name.map(str::to_owned), directory: Some(directory.into()) };
            assert_eq!(parse_voice(text).unwrap(), expected);
        };
        check("joe=voices/joe", Some("joe"), "voices/joe");
        check("voices/joe", None, "voices/joe");
        check("/a=b/c", None, "/a=b/c");
        check("x=/a=b", Some("x"), "/a=b");
        for text in ["", "joe=", "=dir"] {
            assert!(parse_voice(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        let cases = [("0ms", 0), ("250ms", 250), ("10s", 10_000), ("2m", 120_000)];
        for (text, ms) in cases {
            assert_eq!(parse_duration(text).unwrap(), Duration::from_millis(ms));
        }
        for text in ["", "10", "s", "-1s", "1.5s", "1h", "99999999999s"] {
            assert!(parse_duration(text).is_err() && parse_wait(text).is_err(), "{text}");
        }
        assert!(parse_wait("0s").is_err() && parse_wait("1ms").is_ok());
    }

    #[test]
    fn devices_are_told_apart() {
        let cases =
            [("cpu", Accelerator::Cpu), ("cuda", Accelerator::Cuda(0)), ("cuda:3", Accelerator::Cuda(3))];
        for (text, expected) in cases {
            assert_eq!(parse_device(text).unwrap(), expected);
        }
        for text in ["", "gpu", "cuda:", "cuda:x", "cpu:0", "CUDA"] {
            assert!(parse_device(text).is_err(), "{text}");
        }
    }
}
