//! f32 samples at the voice's rate in, bytes of a requested encoding and rate out, as they come.
//!
//! Every run of bytes is a whole number of samples, a WAV header apart. Never clips without counting, and never
//! says another rate than it sends.

mod encoding;

use std::ops::RangeInclusive;

use audio_codec_algorithms::encode_ulaw;

pub use encoding::Encoding;

use crate::error::{Error, Result};
use crate::pcm::Quantizer;
use crate::resample::{Resampler, output_len};

/// The sample rates that can be asked for.
pub const SAMPLE_RATES_HZ: RangeInclusive<u32> = 8_000..=48_000;
/// What a WAV header says of a length that nobody knows yet.
const OPEN_SIZE: u32 = u32::MAX;
/// Bytes of a WAV header behind its RIFF size.
const HEADER_REST: u64 = 36;

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
pub fn wav_header(sample_rate_hz: u32, length: Option<u64>) -> Result<[u8; 44]> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const VOICE_HZ: u32 = 22_050;

    fn encoder(encoding: Encoding, sample_rate_hz: u32, known: Option<u64>) -> AudioEncoder {
        AudioEncoder::new(VOICE_HZ, AudioFormat { encoding, sample_rate_hz }, known).unwrap()
    }

    fn samples(n: usize) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * 0.05).sin() * 0.9).collect()
    }

    /// The value of a G.711 µ-law byte: sign, exponent and mantissa, all inverted, with a bias of 33 quarter
    /// steps (ITU-T G.711, table 2a, scaled to 16 bits).
    fn mu_law(byte: u8) -> i32 {
        let byte = i32::from(!byte);
        let magnitude = (((byte & 15) * 8 + 132) << ((byte >> 4) & 7)) - 132;
        if byte & 128 == 0 { magnitude } else { -magnitude }
    }

    fn encoded_mu_law(sample: i16) -> u8 {
        let mut encoder = encoder(Encoding::MuLaw, VOICE_HZ, None);
        encoder.push(&[f32::from(sample) / f32::from(i16::MAX)]).unwrap()[0]
    }

    #[test]
    fn mu_law_is_that_of_g711() {
        let cases = [
            (0, 0xff),
            (8, 0xfe),
            (1000, 0xce),
            (-1000, 0x4e),
            (32_767, 0x80),
            (-32_767, 0x00),
            (32_124, 0x80),
            (-32_124, 0x00),
        ];
        for (sample, byte) in cases {
            assert_eq!(encoded_mu_law(sample), byte, "{sample}");
        }
    }

    #[test]
    fn mu_law_is_off_by_half_a_step_at_most() {
        for sample in (-32_600..=32_600_i16).step_by(37) {
            let byte = encoded_mu_law(sample);
            let half_step = 4 << ((!byte >> 4) & 7);
            // The encoder drops two bits before it rounds, which moves a sample by 3 at most.
            let error = (mu_law(byte) - i32::from(sample)).abs();
            assert!(error <= half_step + 3, "{sample} comes back as {}", mu_law(byte));
        }
    }

    /// All bytes of `n` samples, pushed `portion` at a time; every run of bytes must be whole samples.
    fn encoded(encoder: &mut AudioEncoder, n: usize, portion: usize) -> Vec<u8> {
        let width = encoder.encoding.bytes_per_sample();
        let mut bytes = Vec::new();
        for samples in samples(n).chunks(portion) {
            let run = encoder.push(samples).unwrap();
            assert_eq!(run.len() % width, 0);
            bytes.extend(run);
        }
        bytes.extend(encoder.finish().unwrap());
        bytes
    }

    #[test]
    fn every_encoding_at_every_rate_has_all_samples_however_they_come() {
        for encoding in Encoding::ALL {
            for sample_rate_hz in [8_000, 22_050, 44_100] {
                let mut whole = encoder(encoding, sample_rate_hz, None);
                let bytes = encoded(&mut whole, 3001, 3001);
                let expected = output_len(3001, VOICE_HZ, sample_rate_hz);
                let header = if encoding == Encoding::WavS16 { 44 } else { 0 };
                assert_eq!(whole.samples(), expected);
                assert_eq!(bytes.len(), header + expected as usize * encoding.bytes_per_sample());
                for portion in [1, 500] {
                    let mut cut = encoder(encoding, sample_rate_hz, None);
                    assert!(encoded(&mut cut, 3001, portion) == bytes, "{encoding} in portions of {portion}");
                }
            }
        }
    }

    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn a_wav_of_known_length_tells_it_and_the_rate() {
        let bytes = encoded(&mut encoder(Encoding::WavS16, 8_000, Some(3001)), 3001, 700);
        assert_eq!(u32_at(&bytes, 4) as usize, bytes.len() - 8);
        assert_eq!(u32_at(&bytes, 40) as usize, bytes.len() - 44);
        let reader = hound::WavReader::new(&bytes[..]).unwrap();
        assert_eq!((reader.spec().sample_rate, reader.spec().channels), (8_000, 1));
        assert_eq!(reader.into_samples::<i16>().count() as u64, output_len(3001, VOICE_HZ, 8_000));
    }

    #[test]
    fn a_wav_of_unknown_length_leaves_its_sizes_open() {
        let bytes = encoded(&mut encoder(Encoding::WavS16, VOICE_HZ, None), 10, 3);
        assert_eq!((u32_at(&bytes, 4), u32_at(&bytes, 40)), (u32::MAX, u32::MAX));
        assert_eq!(bytes.len(), 44 + 20);
        assert_eq!(bytes.windows(4).filter(|window| window == b"RIFF").count(), 1);
    }

    #[test]
    fn a_wav_without_samples_is_a_header() {
        let bytes = encoder(Encoding::WavS16, VOICE_HZ, Some(0)).finish().unwrap();
        assert_eq!((bytes.len(), u32_at(&bytes, 40)), (44, 0));
    }

    #[test]
    fn a_length_that_was_told_wrong_is_reported() {
        let mut encoder = encoder(Encoding::WavS16, VOICE_HZ, Some(4));
        encoder.push(&[0.0; 3]).unwrap();
        let error = encoder.finish().unwrap_err();
        assert!(error.to_string().contains("3 samples were encoded where 4"), "{error}");
    }

    #[test]
    fn clipping_is_counted_and_floats_are_not_clipped() {
        let loud = [1.5, -0.5, -2.0];
        let mut s16 = encoder(Encoding::PcmS16Le, VOICE_HZ, None);
        s16.push(&loud).unwrap();
        assert_eq!(s16.clipped(), 2);
        let mut f32s = encoder(Encoding::PcmF32Le, VOICE_HZ, None);
        assert_eq!(f32s.push(&loud).unwrap(), loud.map(f32::to_le_bytes).concat());
        assert_eq!(f32s.clipped(), 0);
    }

    #[test]
    fn what_cannot_be_encoded_is_refused_with_the_limits() {
        let refused = |encoding, sample_rate_hz, known| {
            AudioEncoder::new(VOICE_HZ, AudioFormat { encoding, sample_rate_hz }, known)
                .err()
                .unwrap()
                .to_string()
        };
        for rate in [0, 7_999, 48_001, u32::MAX] {
            let message = refused(Encoding::MuLaw, rate, None);
            assert!(message.contains(&format!("{rate} Hz: it must be 8000 to 48000")), "{message}");
        }
        let message = refused(Encoding::WavS16, VOICE_HZ, Some(1 << 31));
        assert!(message.contains("2147483629 at most"), "{message}");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for encoding in Encoding::ALL {
            assert_eq!(encoding.to_string().parse::<Encoding>().unwrap(), encoding);
        }
        let message = "opus".parse::<Encoding>().unwrap_err().to_string();
        assert!(message.contains("s16le, f32le, mulaw, wav"), "{message}");
    }
}
