//! Numbers and pictures of a run in, a file that TensorBoard reads out.
//!
//! The format is a few fields of tensorflow's `event.proto` and `summary.proto` in the frames of a TFRecord, whose
//! checksums are masked CRC-32C. Written out here since the crate that does it stands on releases of `protobuf` and
//! `image` of years ago. A run that goes on opens a new file, which tells TensorBoard to forget what the earlier one
//! said of later steps. Never buffers past a call.

use std::fs::{File, create_dir_all};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message;

use crate::error::{Error, Result};

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(string, optional, tag = "3")]
    file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
    #[prost(message, optional, tag = "7")]
    session_log: Option<SessionLog>,
}

#[derive(Clone, PartialEq, Message)]
struct SessionLog {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// `SessionLog.START`: events of this step and later ones that other files hold are void.
const START: i32 = 1;

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
    #[prost(message, optional, tag = "4")]
    image: Option<Image>,
}

#[derive(Clone, PartialEq, Message)]
struct Image {
    #[prost(int32, tag = "1")]
    height: i32,
    #[prost(int32, tag = "2")]
    width: i32,
    /// 3 is RGB.
    #[prost(int32, tag = "3")]
    colorspace: i32,
    #[prost(bytes = "vec", tag = "4")]
    encoded_image_string: Vec<u8>,
}

/// A file of events.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Begins a file in `directory` for a run that goes on after `step`, 0 for one that begins.
    ///
    /// # Errors
    /// [`Error::Io`] when the disk refuses.
    pub fn create(directory: &Path, step: u64) -> Result<Self> {
        create_dir_all(directory).map_err(|e| Error::io(directory, e))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Two runs may begin in one second; the name must sort by time.
        let name = format!(
            "events.out.tfevents.{:010}.{:09}.{}",
            now.as_secs(),
            now.subsec_nanos(),
            std::process::id()
        );
        let path = directory.join(name);
        let file = File::create_new(&path).map_err(|e| Error::io(&path, e))?;
        let mut events = Self { path, file };
        events.write(Event { file_version: Some("brain.Event:2".to_owned()), ..Event::default() }, 0)?;
        if step > 0 {
            events.write(
                Event { session_log: Some(SessionLog { status: START }), ..Event::default() },
                step + 1,
            )?;
        }
        Ok(events)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The numbers of one step by their names: `/` groups them.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn scalars(&mut self, step: u64, scalars: &[(&str, f32)]) -> Result<()> {
        let value = scalars.iter().map(|(tag, value)| Value {
            tag: (*tag).to_owned(),
            simple_value: Some(*value),
            image: None,
        });
        self.summary(step, value.collect())
    }

    /// A picture, encoded as PNG.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn image(&mut self, step: u64, tag: &str, [width, height]: [u32; 2], png: Vec<u8>) -> Result<()> {
        let side = |pixels: u32| i32::try_from(pixels).unwrap_or(i32::MAX);
        let image =
            Image { height: side(height), width: side(width), colorspace: 3, encoded_image_string: png };
        self.summary(step, vec![Value { tag: tag.to_owned(), simple_value: None, image: Some(image) }])
    }

    fn summary(&mut self, step: u64, value: Vec<Value>) -> Result<()> {
        self.write(Event { summary: Some(Summary { value }), ..Event::default() }, step)
    }

    fn write(&mut self, event: Event, step: u64) -> Result<()> {
        let wall_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        let record = record(&Event { wall_time, step, ..event }.encode_to_vec());
        // In one call, so that a kill leaves whole records but for the last.
        self.file.write_all(&record).map_err(|e| Error::io(&self.path, e))
    }
}

/// A TFRecord: length, its checksum, the data, its checksum.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked_crc(&length), data, &masked_crc(data)].concat()
}

fn masked_crc(data: &[u8]) -> [u8; 4] {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(path: &Path) -> Vec<Event> {
        let bytes = std::fs::read(path).unwrap();
        let mut rest = bytes.as_slice();
        let mut events = Vec::new();
        while let Some((header, after)) = rest.split_at_checked(12) {
            let length = u64::from_le_bytes(header[..8].try_into().unwrap()) as usize;
            let (data, tail) = after.split_at(length);
            assert_eq!(header[8..], masked_crc(&header[..8]));
            assert_eq!(tail[..4], masked_crc(data));
            events.push(Event::decode(data).unwrap());
            rest = &tail[4..];
        }
        assert!(rest.is_empty());
        events
    }

    #[test]
    fn a_record_is_framed_as_tensorflow_does() {
        // The first record of every event file that tensorflow 2 and tensorboardX write, but for its wall time.
        let event = Event { file_version: Some("brain.Event:2".to_owned()), ..Event::default() };
        let data = event.encode_to_vec();
        assert_eq!(data, b"\x1a\x0dbrain.Event:2");
        // `masked_crc32c` of tensorboard's own stub.
        assert_eq!(u32::from_le_bytes(masked_crc(b"123456789")), 0xc78a_b0e5);
        assert_eq!(record(&data).len(), data.len() + 16);
    }

    #[test]
    fn a_run_that_goes_on_voids_what_was_said_of_later_steps() {
        let directory = tempfile::tempdir().unwrap();
        let mut fresh = EventFile::create(directory.path(), 0).unwrap();
        fresh.scalars(1, &[("loss/total", 2.5), ("learning_rate", 1e-4)]).unwrap();
        fresh.image(1, "attention", [3, 2], vec![1, 2, 3]).unwrap();
        let found = events(fresh.path());
        assert_eq!(found.len(), 3);
        let values = &found[1].summary.as_ref().unwrap().value;
        assert_eq!(
            (found[1].step, values[0].tag.as_str(), values[0].simple_value),
            (1, "loss/total", Some(2.5))
        );
        assert_eq!(found[2].summary.as_ref().unwrap().value[0].image.as_ref().unwrap().width, 3);
        assert!(found[1].wall_time > 1.7e9);

        let resumed = EventFile::create(directory.path(), 7).unwrap();
        let start = &events(resumed.path())[1];
        assert_eq!((start.step, start.session_log.as_ref().unwrap().status), (8, START));
        assert!(resumed.path() > fresh.path(), "files are read in the order of their names");
    }
}
