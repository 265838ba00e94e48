//! f32 samples in, 16-bit samples and WAV files out.
//!
//! The first place behind the vocoder where audio is narrowed. Never clips without counting.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use hound::{SampleFormat, WavSpec, WavWriter};
use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Rounds samples in −1..1 to 16 bits, and counts those that lay outside.
#[derive(Debug, Default)]
pub struct Quantizer {
    clipped: u64,
}

impl Quantizer {
    /// `sample · 32767`, rounded to nearest and held within 16 bits; what is not a number becomes silence.
    pub fn quantize(&mut self, sample: f32) -> i16 {
        if !(-1.0..=1.0).contains(&sample) {
            self.clipped += 1;
        }
        (sample * f32::from(i16::MAX)).round() as i16
    }

    /// How many samples lay outside −1..1 so far.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }
}

/// A mono 16-bit WAV file that appears under its name when it is complete, and not before.
pub struct WavFile {
    path: PathBuf,
    quantizer: Quantizer,
    writer: WavWriter<BufWriter<File>>,
    /// Takes the file's name at the end; `None` for what is no regular file, such as a device.
    unfinished: Option<NamedTempFile>,
}

impl WavFile {
    /// Opens a file that will be called `path`.
    ///
    /// # Errors
    /// [`Error::Io`] when its directory is missing or cannot be written to.
    pub fn create(path: &Path, sample_rate_hz: u32) -> Result<Self> {
        let io = |e| Error::io(path, e);
        let (file, unfinished) = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(Error::io(path, std::io::ErrorKind::IsADirectory.into()));
            }
            Ok(found) if !found.is_file() => (OpenOptions::new().write(true).open(path).map_err(io)?, None),
            _ => {
                let unfinished = unfinished_beside(path).map_err(io)?;
                (unfinished.reopen().map_err(io)?, Some(unfinished))
            }
        };
        let spec = WavSpec {
            channels: 1,
            sample_rate: sample_rate_hz,
            bits_per_sample: 16,
            sample_format: SampleFormat::Int,
        };
        let writer = WavWriter::new(BufWriter::new(file), spec).map_err(|e| Error::io(path, wav_fault(e)))?;
        Ok(Self { path: path.to_path_buf(), quantizer: Quantizer::default(), writer, unfinished })
    }

    pub fn write(&mut self, samples: &[f32]) -> Result<()> {
        for &sample in samples {
            let sample = self.quantizer.quantize(sample);
            self.writer.write_sample(sample).map_err(|e| Error::io(&self.path, wav_fault(e)))?;
        }
        Ok(())
    }

    /// Completes the header and gives the file its name. -> samples that were clipped
    pub fn finish(self) -> Result<u64> {
        let Self { path, quantizer, writer, unfinished } = self;
        writer.finalize().map_err(|e| Error::io(&path, wav_fault(e)))?;
        if let Some(unfinished) = unfinished {
            unfinished.persist(&path).map_err(|e| Error::io(&path, e.error))?;
        }
        Ok(quantizer.clipped())
    }
}

/// A hidden file in the directory of `path`, with the permissions that a new file would have.
fn unfinished_beside(path: &Path) -> std::io::Result<NamedTempFile> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mezzavoce-").suffix(".wav");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}

fn wav_fault(error: hound::Error) -> std::io::Error {
    match error {
        hound::Error::IoError(error) => error,
        other => std::io::Error::other(other),
    }
}

/// Writes samples as headerless signed 16-bit little-endian.
pub struct RawWriter<W> {
    quantizer: Quantizer,
    output: W,
}

impl<W: Write> RawWriter<W> {
    pub fn new(output: W) -> Self {
        Self { quantizer: Quantizer::default(), output }
    }

    /// Writes and flushes, so that a player hears the chunk now.
    pub fn write(&mut self, samples: &[f32]) -> std::io::Result<()> {
        let bytes: Vec<u8> = samples.iter().flat_map(|&s| self.quantizer.quantize(s).to_le_bytes()).collect();
        self.output.write_all(&bytes)?;
        self.output.flush()
    }

    pub fn clipped(&self) -> u64 {
        self.quantizer.clipped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_nearest_and_counts_what_clips() {
        let mut quantizer = Quantizer::default();
        let cases = [(0.0, 0), (1.0, 32767), (-1.0, -32767), (0.4 / 32767.0, 0), (0.6 / 32767.0, 1)];
        for (sample, expected) in cases {
            assert_eq!(quantizer.quantize(sample), expected);
        }
        assert_eq!(quantizer.clipped(), 0);
        for (sample, expected) in [(1.5, 32767), (-1.5, -32768), (f32::NAN, 0)] {
            assert_eq!(quantizer.quantize(sample), expected);
        }
        assert_eq!(quantizer.clipped(), 3);
    }

    #[test]
    fn a_file_appears_complete_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.wav");
        let mut file = WavFile::create(&path, 22_050).unwrap();
        file.write(&[0.0, 0.5]).unwrap();
        assert!(!path.exists());
        file.write(&[-0.5]).unwrap();
        file.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize, bytes.len() - 8);
        let mut reader = hound::WavReader::new(&bytes[..]).unwrap();
        assert_eq!(reader.spec().sample_rate, 22_050);
        let samples: Vec<i16> = reader.samples().map(Result::unwrap).collect();
        assert_eq!(samples, [0, 16384, -16384]);
    }

    #[test]
    fn an_abandoned_file_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = WavFile::create(&directory.path().join("a.wav"), 22_050).unwrap();
        file.write(&[0.0; 100]).unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nowhere").join("a.wav");
        let error = WavFile::create(&path, 22_050).err().unwrap();
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
}
