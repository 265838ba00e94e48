//! An audio file in, its samples as the voice wants them out: one channel, f32, at the voice's rate.
//!
//! WAV, FLAC, MP3 and OGG, all of it or a part. Channels are averaged. Never gives less than the file promises: one that
//! ends in the middle, or before the part does, is refused.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use symphonia::core::codecs::audio::well_known::CODEC_ID_MP3;
use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, SeekMode, SeekTo, Track, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;
use symphonia::core::units::{Time, TimeBase, Timestamp};

use super::dataset::Span;
use crate::error::{Error, Result};
use crate::resample::Resampler;

/// A recording above this is no clip: an hour at 48 kHz.
const MAX_FRAMES: usize = 48_000 * 3600;
/// So many samples at full scale in a row are a flat top; fewer are the peak of a recording that was made loud.
const FLAT_TOP: usize = 3;
/// Full scale where the file does not say in how many bits: that of 16.
const DEFAULT_BITS: u32 = 16;
/// By so much may a part end after the recording: listings are rounded.
const SLACK_SECONDS: f64 = 0.1;

/// What was recorded.
#[derive(Debug, Clone)]
pub struct Recording {
    /// f32, one channel, at the rate that was asked for
    pub samples: Vec<f32>,
    /// The file's own.
    pub sample_rate_hz: u32,
    pub channels: usize,
    /// Samples of the file in flat tops at full scale.
    pub clipped: usize,
    /// It goes on after the limit, where `samples` end.
    pub goes_on: bool,
}

impl Recording {
    /// Reads `path`, or the part `span` of it, at `sample_rate_hz`, up to `limit_seconds`.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a file that is missing, no audio, damaged, empty or too long, and for a part that
    /// is not in it; [`Error::Io`] when it cannot be read.
    pub fn load(path: &Path, sample_rate_hz: u32, span: Option<Span>, limit_seconds: f64) -> Result<Self> {
        let refuse = |reason: String| Error::InvalidRequest(format!("{}: {reason}", path.display()));
        let file = File::open(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => refuse("there is no such file".to_owned()),
            _ => Error::io(path, e),
        })?;
        let mut hint = Hint::new();
        if let Some(extension) = path.extension() {
            hint.with_extension(&extension.to_string_lossy());
        }
        let decoded = decode(file, &hint, span, limit_seconds).map_err(refuse)?;
        let samples = resampled(decoded.mono, decoded.sample_rate_hz, sample_rate_hz)?;
        Ok(Self {
            samples,
            sample_rate_hz: decoded.sample_rate_hz,
            channels: decoded.tops.len(),
            clipped: decoded.clipped,
            goes_on: decoded.goes_on,
        })
    }
}

/// What of a file was decoded so far.
#[derive(Default)]
struct Decoded {
    mono: Vec<f32>,
    sample_rate_hz: u32,
    clipped: usize,
    /// By channel, how many samples at full scale came last.
    tops: Vec<usize>,
    goes_on: bool,
}

impl Decoded {
    /// Takes whole frames of `channels` samples.
    fn take(&mut self, interleaved: &[f32], channels: usize, full_scale: f32) {
        self.tops.resize(channels, 0);
        for frame in interleaved.chunks_exact(channels) {
            for (top, sample) in self.tops.iter_mut().zip(frame) {
                *top = if sample.abs() >= full_scale { *top + 1 } else { 0 };
                self.clipped += match *top {
                    FLAT_TOP => FLAT_TOP,
                    length => usize::from(length > FLAT_TOP),
                };
            }
            self.mono.push(frame.iter().sum::<f32>() / channels as f32);
        }
    }
}

fn decode(file: File, hint: &Hint, span: Option<Span>, limit_seconds: f64) -> Result<Decoded, String> {
    let stream = MediaSourceStream::new(Box::new(file), Default::default());
    let mut format = symphonia::default::get_probe()
        .probe(hint, stream, FormatOptions::default(), MetadataOptions::default())
        .map_err(|e| format!("not WAV, FLAC, MP3 or OGG: {e}"))?;
    let track = format.default_track(TrackType::Audio).ok_or("it holds no audio")?.clone();
    let parameters = track.codec_params.as_ref().and_then(|parameters| parameters.audio());
    let parameters = parameters.ok_or("it does not say how it is coded")?;
    let mut decoder = symphonia::default::get_codecs()
        .make_audio_decoder(parameters, &AudioDecoderOptions::default())
        .map_err(|e| format!("its coding is not supported: {e}"))?;
    let full_scale = full_scale(parameters);
    let begin = span.map_or(0.0, |span| span.offset_seconds);
    if begin > 0.0 && parameters.codec != CODEC_ID_MP3 {
        // An MP3 frame leans on those before it, and its place is only known by counting.
        seek(format.as_mut(), decoder.as_mut(), &track, begin);
    }
    let mut decoded = Decoded::default();
    let mut interleaved = Vec::<f32>::new();
    // Frames of the file before `mono`, and after which no more are wanted.
    let (mut skipped, mut wanted) = (0, usize::MAX);
    let mut position = None;
    while let Some(packet) = format.next_packet().map_err(|e| format!("damaged: {e}"))? {
        if packet.track_id != track.id {
            continue;
        }
        let buffer = match decoder.decode(&packet) {
            Ok(buffer) => buffer,
            // The first packet after a seek may lean on one that was not read.
            Err(_) if begin > 0.0 && decoded.mono.is_empty() && position.is_none() => continue,
            Err(e) => return Err(format!("damaged: {e}")),
        };
        let (rate, channels) = (buffer.spec().rate(), buffer.num_planes());
        let changed = decoded.sample_rate_hz != 0 && decoded.sample_rate_hz != rate
            || !decoded.tops.is_empty() && decoded.tops.len() != channels;
        if rate == 0 || channels == 0 || changed {
            return Err("its rate or channels change on the way".to_owned());
        }
        decoded.sample_rate_hz = rate;
        buffer.copy_to_vec_interleaved(&mut interleaved);
        let frames = interleaved.len() / channels;
        if frames == 0 {
            continue;
        }
        let at = *position.get_or_insert_with(|| frame_at(&track, packet.pts, rate));
        position = Some(at + frames);
        let start = frames_in(begin, rate);
        let duration = span.and_then(|span| span.duration_seconds);
        wanted = duration.map_or(usize::MAX, |seconds| frames_in(seconds, rate));
        let limit = frames_in(limit_seconds, rate).min(MAX_FRAMES);
        skipped = start;
        let from = start.saturating_sub(at).min(frames);
        let room = wanted.min(limit.saturating_add(1)).saturating_sub(decoded.mono.len());
        let to = (from + room).min(frames);
        decoded.take(&interleaved[from * channels..to * channels], channels, full_scale);
        if decoded.mono.len() > limit {
            decoded.mono.truncate(limit);
            decoded.goes_on = true;
            break;
        }
        if decoded.mono.len() >= wanted {
            break;
        }
    }
    finished(decoded, &track, span, skipped, wanted)
}

/// Refuses what was decoded where it is less than was promised, or no sound.
fn finished(
    decoded: Decoded,
    track: &Track,
    span: Option<Span>,
    skipped: usize,
    wanted: usize,
) -> Result<Decoded, String> {
    let frames = decoded.mono.len();
    let rate = f64::from(decoded.sample_rate_hz.max(1));
    if let (Some(span), false) = (span, decoded.goes_on) {
        let end = (skipped + frames) as f64 / rate;
        let missing = match span.duration_seconds {
            None => 0.0,
            Some(_) => wanted.saturating_sub(frames) as f64 / rate,
        };
        if frames == 0 || missing > SLACK_SECONDS {
            return Err(match frames {
                0 => format!("it ends before {} s, where the part begins", span.offset_seconds),
                _ => format!("it ends at {end:.2} s, {missing:.2} s before the part does"),
            });
        }
    }
    if frames == 0 {
        return Err("it holds no sample".to_owned());
    }
    if let (None, false, Some(promised)) = (span, decoded.goes_on, track.num_frames)
        && (frames as u64) < promised
    {
        return Err(format!("it ends after {frames} of {promised} samples"));
    }
    match decoded.mono.iter().position(|sample| !sample.is_finite()) {
        Some(index) => Err(format!("sample {index} is {}", decoded.mono[index])),
        None => Ok(decoded),
    }
}

/// Goes to `seconds` or before, or stays at the beginning where the file cannot be sought in.
fn seek(format: &mut dyn FormatReader, decoder: &mut dyn AudioDecoder, track: &Track, seconds: f64) {
    let Some(time) = Time::try_from_secs_f64(seconds) else { return };
    let to = SeekTo::Time { time, track_id: Some(track.id) };
    if format.seek(SeekMode::Accurate, to).is_ok() {
        decoder.reset();
    }
}

/// The frame of the file that `pts` means.
fn frame_at(track: &Track, pts: Timestamp, rate: u32) -> usize {
    let base = track.time_base.or_else(|| TimeBase::try_from_recip(rate));
    let time = base.and_then(|base| base.calc_time(pts)).map_or(0.0, |time| time.as_secs_f64());
    frames_in(time.max(0.0), rate)
}

fn frames_in(seconds: f64, rate: u32) -> usize {
    (seconds * f64::from(rate)).round() as usize
}

/// The largest sample that the file can hold on the positive side.
fn full_scale(parameters: &AudioCodecParameters) -> f32 {
    let bits = parameters.bits_per_sample.filter(|bits| (1..=64).contains(bits)).unwrap_or(DEFAULT_BITS);
    1.0 - 0.5_f32.powi(bits as i32 - 1)
}

fn resampled(samples: Vec<f32>, from_hz: u32, to_hz: u32) -> Result<Vec<f32>> {
    if from_hz == to_hz {
        return Ok(samples);
    }
    let mut resampler = Resampler::new(from_hz, to_hz)?;
    let mut output = resampler.push(&samples)?;
    output.extend(resampler.finish()?);
    Ok(output)
}
