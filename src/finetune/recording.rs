//! An audio file in, its samples as the voice wants them out: one channel, f32, at the voice's rate.
//!
//! WAV, FLAC, MP3 and OGG. Channels are averaged. Never cuts a file short: one that ends in the middle is refused.

use std::fs::File;
use std::path::Path;

use symphonia::core::codecs::audio::AudioDecoderOptions;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;

use crate::error::{Error, Result};
use crate::resample::Resampler;

/// A recording above this is no clip: an hour at 48 kHz.
const MAX_FRAMES: usize = 48_000 * 3600;

/// What was recorded.
#[derive(Debug, Clone)]
pub struct Recording {
    /// f32, one channel, at the rate that was asked for
    pub samples: Vec<f32>,
    /// The file's own.
    pub sample_rate_hz: u32,
    pub channels: usize,
    /// Samples of the file at or beyond full scale.
    pub clipped: usize,
}

impl Recording {
    /// Reads `path` at `sample_rate_hz`.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a file that is no audio, damaged, empty or too long, [`Error::Io`] when it cannot
    /// be read.
    pub fn load(path: &Path, sample_rate_hz: u32) -> Result<Self> {
        let refuse = |reason: String| Error::InvalidRequest(format!("{}: {reason}", path.display()));
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let stream = MediaSourceStream::new(Box::new(file), Default::default());
        let mut hint = Hint::new();
        if let Some(extension) = path.extension() {
            hint.with_extension(&extension.to_string_lossy());
        }
        let mut format = symphonia::default::get_probe()
            .probe(&hint, stream, FormatOptions::default(), MetadataOptions::default())
            .map_err(|e| refuse(format!("not WAV, FLAC, MP3 or OGG: {e}")))?;
        let track =
            format.default_track(TrackType::Audio).ok_or_else(|| refuse("it holds no audio".to_owned()))?;
        let parameters = track.codec_params.as_ref().and_then(|parameters| parameters.audio());
        let parameters = parameters.ok_or_else(|| refuse("it does not say how it is coded".to_owned()))?;
        let mut decoder = symphonia::default::get_codecs()
            .make_audio_decoder(parameters, &AudioDecoderOptions::default())
            .map_err(|e| refuse(format!("its coding is not supported: {e}")))?;
        let track_id = track.id;

        let (mut mono, mut interleaved) = (Vec::new(), Vec::<f32>::new());
        let (mut rate, mut channels, mut clipped) = (0, 0, 0);
        let damaged = |e| refuse(format!("damaged: {e}"));
        while let Some(packet) = format.next_packet().map_err(damaged)? {
            if packet.track_id != track_id {
                continue;
            }
            let decoded = decoder.decode(&packet).map_err(damaged)?;
            let (own_rate, own_channels) = (decoded.spec().rate(), decoded.num_planes());
            if own_channels == 0 || rate != 0 && rate != own_rate {
                return Err(refuse("its rate or channels change on the way".to_owned()));
            }
            (rate, channels) = (own_rate, own_channels);
            decoded.copy_to_vec_interleaved(&mut interleaved);
            clipped += interleaved.iter().filter(|sample| sample.abs() >= 1.0 - f32::EPSILON).count();
            mono.extend(
                interleaved.chunks_exact(channels).map(|frame| frame.iter().sum::<f32>() / channels as f32),
            );
            if mono.len() > MAX_FRAMES {
                return Err(refuse(format!("longer than {MAX_FRAMES} samples: cut it into sentences")));
            }
        }
        if mono.is_empty() {
            return Err(refuse("it holds no sample".to_owned()));
        }
        if let Some(index) = mono.iter().position(|sample| !sample.is_finite()) {
            return Err(refuse(format!("sample {index} is {}", mono[index])));
        }
        let samples = resampled(mono, rate, sample_rate_hz)?;
        Ok(Self { samples, sample_rate_hz: rate, channels, clipped })
    }
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
