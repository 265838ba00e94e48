//! f32 samples in, 16-bit samples and WAV files out.
//!
//! The first place behind the vocoder where audio is narrowed. Never clips without counting, and never leaves
//! half a file under its final name.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Cursor, Write};
use std::path::{Path, PathBuf};

use hound::{SampleFormat, WavSpec, WavWriter};
use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Samples of the largest WAV file: its sizes are 32 bits wide, and the header takes 44 bytes.
const MAX_WAV_SAMPLES: u64 = (u32::MAX as u64 - 44) / 2;

/// Rounds samples in −1..1 to 16 bits, and counts those that lay outside.
#[derive(Debug, Default)]
pub struct Quantizer {
    clipped: u64,
}

impl Quantizer {
    /// `sample · 32767`, rounded to nearest and held within 16 bits.
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
    samples: u64,
    target: Target,
}

/// Where the file goes.
enum Target {
    /// A regular file, written beside its name, which it takes at the end.
    File { writer: WavWriter<BufWriter<File>>, unfinished: NamedTempFile },
    /// A pipe or a device, where nothing can be sought: collected, and written at the end.
    Stream { samples: Vec<i16>, spec: WavSpec, output: Box<dyn Write> },
}

impl WavFile {
    /// Opens a file that will be called `path`; `-` is stdout. A link stands for what it points to.
    ///
    /// # Errors
    /// [`Error::Io`] when `path` is a directory, or could not be written to.
    pub fn create(path: &Path, sample_rate_hz: u32) -> Result<Self> {
        let spec = WavSpec {
            channels: 1,
            sample_rate: sample_rate_hz,
            bits_per_sample: 16,
            sample_format: SampleFormat::Int,
        };
        let (target, path) = Self::open(path, spec).map_err(|e| Error::io(path, e))?;
        Ok(Self { path, quantizer: Quantizer::default(), samples: 0, target })
    }

    fn open(path: &Path, spec: WavSpec) -> io::Result<(Target, PathBuf)> {
        let stream = |output| Target::Stream { samples: Vec::new(), spec, output };
        if path == Path::new("-") {
            return Ok((stream(Box::new(io::stdout())), path.to_path_buf()));
        }
        let existing = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                let device = OpenOptions::new().write(true).open(path)?;
                return Ok((stream(Box::new(device)), path.to_path_buf()));
            }
            Ok(found) => Some(found),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) if path.is_symlink() => return Err(io::Error::other("a link that points to nothing")),
            Err(_) if path.as_os_str().to_string_lossy().ends_with(std::path::is_separator) => {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Err(_) => None,
        };
        let path = if existing.is_some() { path.canonicalize()? } else { path.to_path_buf() };
        let unfinished = unfinished_beside(&path, existing.as_ref())?;
        let writer = WavWriter::new(BufWriter::new(unfinished.reopen()?), spec).map_err(wav_fault)?;
        Ok((Target::File { writer, unfinished }, path))
    }

    /// # Errors
    /// [`Error::Io`] when the disk refuses, [`Error::InvalidRequest`] beyond the 4 GiB that a WAV file can hold.
    pub fn write(&mut self, samples: &[f32]) -> Result<()> {
        self.samples += samples.len() as u64;
        if self.samples > MAX_WAV_SAMPLES {
            let reason = format!("a WAV file holds {MAX_WAV_SAMPLES} samples at most; --raw has no limit");
            return Err(Error::InvalidRequest(reason));
        }
        for &sample in samples {
            let sample = self.quantizer.quantize(sample);
            match &mut self.target {
                Target::File { writer, .. } => {
                    writer.write_sample(sample).map_err(|e| Error::io(&self.path, wav_fault(e)))?;
                }
                Target::Stream { samples, .. } => samples.push(sample),
            }
        }
        Ok(())
    }

    /// Completes the header and gives the file its name. -> samples that were clipped
    pub fn finish(self) -> Result<u64> {
        let Self { path, quantizer, target, .. } = self;
        match target {
            Target::File { writer, unfinished } => writer
                .finalize()
                .map_err(wav_fault)
                .and_then(|()| unfinished.persist(&path).map(drop).map_err(|e| e.error)),
            Target::Stream { samples, spec, mut output } => wav_bytes(&samples, spec)
                .and_then(|bytes| output.write_all(&bytes))
                .and_then(|()| output.flush()),
        }
        .map_err(|e| Error::io(&path, e))?;
        Ok(quantizer.clipped())
    }
}

fn wav_bytes(samples: &[i16], spec: WavSpec) -> io::Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut bytes, spec).map_err(wav_fault)?;
    samples.iter().try_for_each(|&sample| writer.write_sample(sample)).map_err(wav_fault)?;
    writer.finalize().map_err(wav_fault)?;
    Ok(bytes.into_inner())
}

/// A hidden file in the directory of `path`, with the permissions of the file it replaces or of a new one.
fn unfinished_beside(path: &Path, existing: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Asked first, so that the error does not name a file that nobody asked for.
    std::fs::metadata(directory)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mezzavoce-").suffix(".wav");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory)?;
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions())?;
    }
    Ok(file)
}

fn wav_fault(error: hound::Error) -> io::Error {
    match error {
        hound::Error::IoError(error) => error,
        other => io::Error::other(other),
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
    pub fn write(&mut self, samples: &[f32]) -> io::Result<()> {
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
        for (sample, expected) in [(1.5, 32767), (-1.5, -32768)] {
            assert_eq!(quantizer.quantize(sample), expected);
        }
        assert_eq!(quantizer.clipped(), 2);
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

    #[cfg(unix)]
    #[test]
    fn a_link_stands_for_what_it_points_to() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target.wav"), directory.path().join("link.wav"));
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        WavFile::create(&link, 22_050).unwrap().finish().unwrap();
        assert!(link.is_symlink());
        assert!(std::fs::read(&target).unwrap().starts_with(b"RIFF"));
        std::fs::remove_file(&target).unwrap();
        let error = WavFile::create(&link, 22_050).err().unwrap();
        assert!(error.to_string().contains("points to nothing"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let file = NamedTempFile::new().unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
        WavFile::create(file.path(), 22_050).unwrap().finish().unwrap();
        assert_eq!(std::fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn a_device_stays_a_device_and_gets_true_sizes() {
        let mut file = WavFile::create(Path::new("/dev/null"), 22_050).unwrap();
        file.write(&[0.25; 3]).unwrap();
        file.finish().unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        let spec = WavSpec {
            channels: 1,
            sample_rate: 8_000,
            bits_per_sample: 16,
            sample_format: SampleFormat::Int,
        };
        let bytes = wav_bytes(&[1, 2, 3], spec).unwrap();
        assert_eq!(u32::from_le_bytes(bytes[40..44].try_into().unwrap()), 6);
    }

    #[test]
    fn names_that_cannot_be_files_are_refused_before_anything_is_spoken() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["x".repeat(300), "new.wav/".to_owned(), String::new()] {
            assert!(WavFile::create(&directory.path().join(&name), 22_050).is_err(), "{name}");
        }
    }

    #[test]
    fn a_missing_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nowhere").join("a.wav");
        let error = WavFile::create(&path, 22_050).err().unwrap();
        let message = error.to_string();
        assert!(message.contains("nowhere") && !message.contains(".mezzavoce-"), "{message}");
    }
}
