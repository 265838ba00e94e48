//! The bytes of a torch zip file (`pytorch_model.bin`) in, where each tensor's bytes lie out.
//!
//! The archive holds `<name>/data.pkl`, one entry `<name>/data/<key>` a storage, `<name>/byteorder` and
//! `<name>/version` (`torch/csrc/jit/serialization`, `caffe2/serialize`). Entries are stored, so a contiguous
//! tensor is a range of the file and is not copied. Never inflates anything, never runs anything.

use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;
use std::ops::Range;

use zip::{CompressionMethod, ZipArchive};

use super::bounds::Checked;
use super::pickle::{self, Placed};
use crate::precision::Dtype;

const MAX_ENTRIES: usize = 1 << 16;
/// `kMaxSupportedFileFormatVersion` of `caffe2/serialize/versions.h`.
const MAX_VERSION: u32 = 10;

/// A tensor of the archive.
pub struct Found {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Bytes,
}

/// Row-major bytes: a range of the file, or gathered from a strided storage.
pub enum Bytes {
    InFile(Range<usize>),
    Gathered(Vec<u8>),
}

/// Every tensor of the archive by name.
///
/// # Errors
/// What about the archive, the pickle or a tensor's place does not hold.
pub fn read(file: &[u8]) -> Checked<BTreeMap<String, Found>> {
    let mut archive = Archive::open(file)?;
    if let Some(order) = archive.entry("byteorder")?
        && order != b"little"
    {
        return Err(format!("byteorder is `{}`: only `little` is supported", order.escape_ascii()));
    }
    if let Some(version) = archive.entry("version")? {
        let text = std::str::from_utf8(version).unwrap_or_default().trim();
        if !text.parse::<u32>().is_ok_and(|version| version <= MAX_VERSION) {
            return Err(format!("archive version `{}` is not 0 to {MAX_VERSION}", version.escape_ascii()));
        }
    }
    let pickle = archive.entry("data.pkl")?.ok_or("data.pkl is missing")?;
    // A stride of 0 can ask for more than there is; what is copied may not exceed the file.
    let mut budget = file.len();
    let mut tensors = BTreeMap::new();
    for (name, placed) in pickle::state_dict(pickle)? {
        let found =
            archive.tensor(placed, &mut budget).map_err(|reason| format!("tensor `{name}`: {reason}"))?;
        tensors.insert(name, found);
    }
    Ok(tensors)
}

struct Archive<'a> {
    file: &'a [u8],
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// Index and place of each entry, named without the archive's own folder.
    entries: HashMap<String, (usize, Range<usize>)>,
    /// Entries whose checksum held.
    verified: Vec<bool>,
}

impl<'a> Archive<'a> {
    fn open(file: &'a [u8]) -> Checked<Self> {
        let mut zip =
            ZipArchive::new(Cursor::new(file)).map_err(|error| format!("not a sound zip: {error}"))?;
        let count = zip.len();
        if count > MAX_ENTRIES {
            return Err(format!("zip of {count} entries is above the limit of {MAX_ENTRIES}"));
        }
        let mut found = Vec::new();
        let mut total = 0_usize;
        for index in 0..count {
            // Raw, because a compressed entry is to be named, not inflated.
            let entry = zip.by_index_raw(index).map_err(|error| format!("not a sound zip: {error}"))?;
            let name = entry.name().map_err(|error| format!("not a sound zip: {error}"))?.into_owned();
            if entry.encrypted() || entry.compression() != CompressionMethod::Stored {
                return Err(format!(
                    "entry `{name}` is compressed or encrypted: torch stores its entries plain"
                ));
            }
            let start = entry.data_start().and_then(|start| usize::try_from(start).ok());
            let size = usize::try_from(entry.size()).ok().filter(|_| entry.size() == entry.compressed_size());
            let range = start.zip(size).and_then(|(start, size)| Some(start..start.checked_add(size)?));
            let range = range
                .filter(|range| file.get(range.clone()).is_some())
                .ok_or_else(|| format!("entry `{name}` reaches beyond the end of the file"))?;
            total = total.saturating_add(range.len());
            found.push((name, range));
        }
        if total > file.len() {
            return Err(format!(
                "the entries have {total} bytes and the whole file {}: they overlap",
                file.len()
            ));
        }
        let folder = folder(&found)?;
        let entries = found
            .into_iter()
            .enumerate()
            .filter_map(|(index, (name, range))| {
                Some((name.strip_prefix(&folder)?.to_string(), (index, range)))
            })
            .collect();
        Ok(Self { file, zip, entries, verified: vec![false; count] })
    }

    /// The bytes of an entry, once their checksum holds.
    fn entry(&mut self, name: &str) -> Checked<Option<&'a [u8]>> {
        let Some(range) = self.range(name)? else { return Ok(None) };
        Ok(self.file.get(range))
    }

    fn range(&mut self, name: &str) -> Checked<Option<Range<usize>>> {
        let Some((index, range)) = self.entries.get(name) else { return Ok(None) };
        if let Some(verified) = self.verified.get_mut(*index).filter(|verified| !**verified) {
            let mut entry = self.zip.by_index(*index).map_err(|error| format!("entry `{name}`: {error}"))?;
            std::io::copy(&mut entry, &mut std::io::sink())
                .map_err(|error| format!("entry `{name}`: {error}"))?;
            *verified = true;
        }
        Ok(Some(range.clone()))
    }

    fn tensor(&mut self, placed: Placed, budget: &mut usize) -> Checked<Found> {
        let Placed { storage, offset, shape, strides } = placed;
        let width = storage.dtype.size_bytes();
        let entry = format!("data/{}", storage.key);
        let range = self.range(&entry)?.ok_or_else(|| format!("its storage `{entry}` is missing"))?;
        if storage.elements.checked_mul(width) != Some(range.len()) {
            let (elements, dtype, found) = (storage.elements, storage.dtype, range.len());
            return Err(format!("its storage `{entry}` of {elements} {dtype:?} has {found} bytes"));
        }
        let too_large = || format!("shape {shape:?} overflows");
        let count =
            shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size)).ok_or_else(too_large)?;
        // The last element's index bounds all the others: sizes and strides are not negative.
        let mut last = offset;
        for (&size, &stride) in shape.iter().zip(&strides) {
            let reach = size.saturating_sub(1).checked_mul(stride).ok_or_else(too_large)?;
            last = last.checked_add(reach).ok_or_else(too_large)?;
        }
        if count == 0 {
            return Ok(Found { dtype: storage.dtype, shape, bytes: Bytes::Gathered(Vec::new()) });
        }
        if last >= storage.elements {
            let elements = storage.elements;
            return Err(format!(
                "shape {shape:?} with strides {strides:?} from {offset} leaves its storage of {elements} elements"
            ));
        }
        let bytes = if contiguous(&shape, &strides) {
            let start = range.start + offset * width;
            Bytes::InFile(start..start + count * width)
        } else {
            let length = count.checked_mul(width).filter(|length| length <= budget);
            *budget -=
                length.ok_or_else(|| format!("shape {shape:?} repeats elements beyond the file's size"))?;
            let storage = self.file.get(range).unwrap_or_default();
            Bytes::Gathered(gather(storage, width, offset, &shape, &strides))
        };
        Ok(Found { dtype: storage.dtype, shape, bytes })
    }
}

/// `<name>/` of the one `<name>/data.pkl`.
fn folder(entries: &[(String, Range<usize>)]) -> Checked<String> {
    let mut folders = entries.iter().filter_map(|(name, _)| {
        let folder = name.strip_suffix("data.pkl")?;
        folder.strip_suffix('/').filter(|name| !name.contains('/')).map(|_| folder)
    });
    let folder = match (folders.next(), folders.next()) {
        (Some(folder), None) => folder.to_string(),
        (None, _) => return Err("a zip without `<name>/data.pkl`: not written by torch.save".into()),
        (Some(_), Some(_)) => return Err("a zip with more than one data.pkl".into()),
    };
    let code = format!("{folder}code/");
    if entries.iter().any(|(name, _)| name.starts_with(&code)) {
        return Err("a TorchScript archive, which is a program: save its state dict instead".into());
    }
    Ok(folder)
}

fn contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        if size != 1 && stride != expected {
            return false;
        }
        expected *= size;
    }
    true
}

/// Elements in row-major order; every index lies in the storage, as the caller has made sure.
fn gather(storage: &[u8], width: usize, offset: usize, shape: &[usize], strides: &[usize]) -> Vec<u8> {
    let count: usize = shape.iter().product();
    let mut bytes = Vec::with_capacity(count * width);
    for flat in 0..count {
        let mut rest = flat;
        let mut at = offset;
        for (&size, &stride) in shape.iter().zip(strides).rev() {
            at += rest % size * stride;
            rest /= size;
        }
        bytes.extend_from_slice(storage.get(at * width..(at + 1) * width).unwrap_or_default());
    }
    bytes
}
