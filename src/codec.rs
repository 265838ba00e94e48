//! f32 samples at the voice's rate in, bytes of a requested encoding and rate out, as they come.
//!
//! Every run of bytes is a whole number of samples, a WAV header apart. Never clips without counting, and never
//! says another rate than it sends.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use audio_codec_algorithms::encode_ulaw;

use crate::error::{Error, Result};
use crate::pcm::Quantizer;
use crate::resample::{Resampler, output_len};

/// The sample rates that can be asked for.
pub const SAMPLE_RATES_HZ: RangeInclusive<u32> = 8_000..=48_000;
/// What a WAV header says of a length that nobody knows yet.
const OPEN_SIZE: u32 = u32::MAX;
/// Bytes of a WAV header behind its RIFF size.
const HEADER_REST: u64 = 36;

/// How a sample is written. One channel, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Signed 16-bit little-endian, without a header.
    PcmS16Le,
    /// 32-bit IEEE float little-endian, without a header, not clipped.
    PcmF32Le,
    /// 8-bit µ-law of ITU-T G.711, without a header.
    MuLaw,
    /// Signed 16-bit little-endian behind one WAV header.
    WavS16,
}

impl Encoding {
    pub const ALL: [Self; 4] = [Self::PcmS16Le, Self::PcmF32Le, Self::MuLaw, Self::WavS16];

    pub fn bytes_per_sample(self) -> usize {
        match self {
            Self::PcmS16Le | Self::WavS16 => 2,
            Self::PcmF32Le => 4,
            Self::MuLaw => 1,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::PcmS16Le => "s16le",
            Self::PcmF32Le => "f32le",
            Self::MuLaw => "mulaw",
            Self::WavS16 => "wav",
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|encoding| encoding.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::InvalidRequest(format!("encoding `{text}` is none of {names}"))
        })
    }
}

/// What a listener asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioFormat {
    pub encoding: Encoding,
    pub sample_rate_hz: u32,
}

/// The audio of one response on its way to bytes.
pub struct AudioEncoder {
    encoding: Encoding,
    resampler: Resampler,
    quantizer: Quantizer,
    /// Comes before the first sample, once.
    header: Option<[u8; 44]>,
    known_samples: Option<u64>,
    pushed: u64,
    samples: u64,
}

impl AudioEncoder {
    /// An encoder for audio of `voice_rate_hz`. `known_samples` is how many samples will be pushed, where that is
    /// known: then a WAV header has the true sizes; without it they are 0xFFFFFFFF, which readers of streams take
    /// for "to the end".
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a rate outside [`SAMPLE_RATES_HZ`], or more samples than a WAV header can say.
    pub fn new(voice_rate_hz: u32, format: AudioFormat, known_samples: Option<u64>) -> Result<Self> {
        let AudioFormat { encoding, sample_rate_hz } = format;
        if !SAMPLE_RATES_HZ.contains(&sample_rate_hz) {
            let (low, high) = SAMPLE_RATES_HZ.into_inner();
            return Err(Error::InvalidRequest(format!(
                "a sample rate of {sample_rate_hz} Hz: it must be {low} to {high} Hz"
            )));
        }
        let length = known_samples.map(|samples| output_len(samples, voice_rate_hz, sample_rate_hz));
        let header = match encoding {
            Encoding::WavS16 => Some(wav_header(sample_rate_hz, length)?),
            _ => None,
        };
        Ok(Self {
            encoding,
            resampler: Resampler::new(voice_rate_hz, sample_rate_hz)?,
            quantizer: Quantizer::default(),
            header,
            known_samples,
            pushed: 0,
            samples: 0,
        })
    }

    /// Takes samples of the voice's rate, any number. -> the bytes that are final, a header before the first
    pub fn push(&mut self, samples: &[f32]) -> Result<Vec<u8>> {
        self.pushed += samples.len() as u64;
        let resampled = self.resampler.push(samples)?;
        Ok(self.encode(&resampled))
    }

    /// Ends the audio. -> the bytes that are left
    ///
    /// # Errors
    /// [`Error::Internal`] when other than the known number of samples were pushed.
    pub fn finish(&mut self) -> Result<Vec<u8>> {
        if let Some(known) = self.known_samples
            && known != self.pushed
        {
            let pushed = self.pushed;
            return Err(Error::Internal(format!("{pushed} samples were encoded where {known} were told")));
        }
        let resampled = self.resampler.finish()?;
        Ok(self.encode(&resampled))
    }

    /// Samples encoded so far, at the output rate.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// How many samples lay outside −1..1 so far and were held within; 0 for [`Encoding::PcmF32Le`].
    pub fn clipped(&self) -> u64 {
        self.quantizer.clipped()
    }

    fn encode(&mut self, samples: &[f32]) -> Vec<u8> {
        self.samples += samples.len() as u64;
        let mut bytes = Vec::with_capacity(44 + samples.len() * self.encoding.bytes_per_sample());
        bytes.extend(self.header.take().into_iter().flatten());
        let quantizer = &mut self.quantizer;
        match self.encoding {
            Encoding::PcmS16Le | Encoding::WavS16 => {
                bytes.extend(samples.iter().flat_map(|&sample| quantizer.quantize(sample).to_le_bytes()));
            }
            Encoding::PcmF32Le => bytes.extend(samples.iter().flat_map(|sample| sample.to_le_bytes())),
            Encoding::MuLaw => {
                bytes.extend(samples.iter().map(|&sample| encode_ulaw(quantizer.quantize(sample))));
            }
        }
        bytes
    }
}

/// The header of a mono 16-bit PCM file of `length` samples.
fn wav_header(sample_rate_hz: u32, length: Option<u64>) -> Result<[u8; 44]> {
    let (riff, data) = match length {
        None => (OPEN_SIZE, OPEN_SIZE),
        Some(length) => {
            let data = length.saturating_mul(2);
            let size = u32::try_from(data.saturating_add(HEADER_REST)).map_err(|_| {
                let limit = (u64::from(u32::MAX) - HEADER_REST) / 2;
                Error::InvalidRequest(format!("{length} samples as WAV: a header can say {limit} at most"))
            })?;
            (size, size - HEADER_REST as u32)
        }
    };
    let fields: [&[u8]; 13] = [
        b"RIFF",
        &riff.to_le_bytes(),
        b"WAVE",
        b"fmt ",
        &16_u32.to_le_bytes(),
        &1_u16.to_le_bytes(),
        &1_u16.to_le_bytes(),
        &sample_rate_hz.to_le_bytes(),
        &(sample_rate_hz * 2).to_le_bytes(),
        &2_u16.to_le_bytes(),
        &16_u16.to_le_bytes(),
        b"data",
        &data.to_le_bytes(),
    ];
    let mut header = [0; 44];
    header.iter_mut().zip(fields.concat()).for_each(|(to, from)| *to = from);
    Ok(header)
}
