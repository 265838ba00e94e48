//! A checkpoint file in, named tensors out.
//!
//! `safetensors` or a torch zip, told apart by their first bytes. The file's bytes stay where they are (read
//! into memory, or part of the binary) and tensors are ranges of them. Never runs what a file holds, never
//! widens a tensor before it is asked for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use safetensors::{SafeTensorError, SafeTensors};

use super::bounds::Checked;
use super::names::{RUNNING_VAR, Required};
use super::torch_zip::{self, Bytes};
use crate::error::{Error, Result};
use crate::precision::{Dtype, cast};

/// The crate allows 100 MB of JSON, which would take gigabytes to parse; SpeechT5's has 60 kB.
const MAX_HEADER_BYTES: u64 = 4 << 20;

/// One named tensor: raw little-endian bytes, row-major, with their dtype and shape.
#[derive(Debug, Clone)]
pub struct Tensor<'a> {
    pub dtype: Dtype,
    pub shape: &'a [usize],
    pub data: &'a [u8],
}

struct Entry {
    dtype: Dtype,
    shape: Vec<usize>,
    place: Bytes,
}

/// Every tensor of one file, by name.
pub struct Checkpoint {
    path: PathBuf,
    file: Cow<'static, [u8]>,
    entries: BTreeMap<String, Entry>,
}

/// Without the bytes, which no log could hold.
impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoint").field("path", &self.path).field("tensors", &self.entries.len()).finish()
    }
}

impl Checkpoint {
    /// Reads the tensors of a whole file; `path` is for messages.
    ///
    /// # Errors
    /// `InvalidVoice` for a file that is neither format, is cut short, or contradicts itself.
    pub fn parse(path: &Path, file: Cow<'static, [u8]>) -> Result<Self> {
        let entries = if file.starts_with(b"PK\x03\x04") {
            torch_entries(&file)
        } else if let Some(foreign) = foreign(&file) {
            Err(format!("{foreign}: need safetensors or a torch zip"))
        } else {
            safetensors_entries(&file)
        };
        let entries = entries.map_err(|reason| Error::voice(path, reason))?;
        Ok(Self { path: path.to_path_buf(), file, entries })
    }

    /// The tensor called `name`; an error that names it when the checkpoint has none.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>> {
        let entry = self.entries.get(name);
        let Entry { dtype, shape, place } =
            entry.ok_or_else(|| self.error(format!("tensor `{name}` is missing")))?;
        let data = match place {
            Bytes::Gathered(bytes) => Some(bytes.as_slice()),
            Bytes::InFile(range) => self.file.get(range.clone()),
        };
        let data = data.ok_or_else(|| Error::Internal(format!("tensor `{name}` lies outside its file")))?;
        Ok(Tensor { dtype: *dtype, shape, data })
    }

    /// The values of `name` widened to f32 (narrowed from f64), in row-major order.
    ///
    /// # Errors
    /// `InvalidVoice` when there is no such tensor, or it is not of a floating dtype.
    pub fn f32(&self, name: &str) -> Result<Vec<f32>> {
        let tensor = self.floating(name)?;
        cast::to_f32(tensor.data, tensor.dtype)
    }

    /// As [`Checkpoint::f32`], with nothing rounded.
    pub(super) fn f64(&self, name: &str) -> Result<Vec<f64>> {
        let tensor = self.floating(name)?;
        cast::to_f64(tensor.data, tensor.dtype)
    }

    fn floating(&self, name: &str) -> Result<Tensor<'_>> {
        let tensor = self.tensor(name)?;
        if !FLOATING.contains(&tensor.dtype) {
            let found = tensor.dtype;
            return Err(self.error(format!("tensor `{name}` is {found:?}: need one of {FLOATING:?}")));
        }
        Ok(tensor)
    }

    /// Names in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The floating dtype that holds most elements; `F32` for a checkpoint that has none.
    pub fn stored_dtype(&self) -> Dtype {
        let mut elements: Vec<(Dtype, usize)> = FLOATING.map(|dtype| (dtype, 0)).to_vec();
        for Entry { dtype, shape, .. } in self.entries.values() {
            if let Some((_, count)) = elements.iter_mut().find(|(counted, _)| counted == dtype) {
                *count += shape.iter().product::<usize>();
            }
        }
        elements.into_iter().rev().max_by_key(|(_, count)| *count).map_or(Dtype::F32, |(dtype, _)| dtype)
    }

    /// Holds the checkpoint against what a model needs: presence, shape, a floating dtype, finite values, and
    /// variances that are not negative. Tensors beyond those are nobody's concern.
    pub(super) fn check(&self, required: &[Required]) -> Result<()> {
        for Required { name, shape } in required {
            let Some(entry) = self.entries.get(name) else {
                return Err(self.error(format!("tensor `{name}` of shape {shape:?} is missing")));
            };
            if entry.shape != *shape {
                let found = &entry.shape;
                return Err(self.error(format!(
                    "tensor `{name}` has shape {found:?} where config.json asks for {shape:?}"
                )));
            }
            let values = self.f32(name)?;
            if let Some((index, value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
                return Err(self.error(format!("tensor `{name}` holds {value} at index {index}")));
            }
            if name.ends_with(RUNNING_VAR)
                && let Some((index, value)) = values.iter().enumerate().find(|(_, value)| **value < 0.0)
            {
                return Err(self.error(format!("variance `{name}` is {value} at index {index}")));
            }
        }
        Ok(())
    }

    /// Replaces each required weight that is stored as a weight-norm pair by `g * v / |v|`, computed in f64, the
    /// norm taken over all dimensions but the first (`torch.nn.utils.weight_norm`, old and parametrized names).
    pub(super) fn fold_weight_norm(&mut self, required: &[Required]) -> Result<()> {
        for Required { name, .. } in required {
            let Some(module) = name.strip_suffix(".weight").filter(|_| !self.entries.contains_key(name))
            else {
                continue;
            };
            let pairs = [
                [format!("{module}.weight_g"), format!("{module}.weight_v")],
                [
                    format!("{module}.parametrizations.weight.original0"),
                    format!("{module}.parametrizations.weight.original1"),
                ],
            ];
            let found = pairs.iter().find(|pair| pair.iter().all(|name| self.entries.contains_key(name)));
            let Some([gain, direction]) = found else { continue };
            let entry = self.folded(gain, direction)?;
            self.entries.insert(name.clone(), entry);
        }
        Ok(())
    }

    fn folded(&self, gain: &str, direction: &str) -> Result<Entry> {
        let shape = self.tensor(direction)?.shape.to_vec();
        let (gains, directions) = (self.f64(gain)?, self.f64(direction)?);
        let rows = shape.first().copied().unwrap_or(1);
        if rows == 0 || directions.is_empty() || gains.len() != rows {
            let found = self.tensor(gain)?.shape;
            return Err(self.error(format!("`{gain}` of shape {found:?} does not fit a weight of {shape:?}")));
        }
        let row_length = directions.len() / rows;
        let mut bytes = Vec::with_capacity(directions.len() * size_of::<f32>());
        for (row, (values, gain)) in directions.chunks_exact(row_length).zip(gains).enumerate() {
            let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
            if norm == 0.0 {
                return Err(self.error(format!("`{direction}` has a zero norm in row {row}")));
            }
            bytes.extend(values.iter().flat_map(|value| cast::f64_to_f32(value / norm * gain).to_le_bytes()));
        }
        Ok(Entry { dtype: Dtype::F32, shape, place: Bytes::Gathered(bytes) })
    }

    fn error(&self, reason: String) -> Error {
        Error::voice(&self.path, reason)
    }
}

/// What weights may be stored in. Bytes of 8-bit floats mean nothing without their scales.
const FLOATING: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::F64];

fn torch_entries(file: &[u8]) -> Checked<BTreeMap<String, Entry>> {
    let entry =
        |found: torch_zip::Found| Entry { dtype: found.dtype, shape: found.shape, place: found.bytes };
    Ok(torch_zip::read(file)?.into_iter().map(|(name, found)| (name, entry(found))).collect())
}

/// The crate checks that the tensors cover the file without gap or overlap and that no product of a shape
/// overflows. Added here: a smaller header, and dtypes that nothing here can hold.
fn safetensors_entries(file: &[u8]) -> Checked<BTreeMap<String, Entry>> {
    let header_bytes = file.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    if let Some(bytes) = header_bytes.filter(|bytes| *bytes > MAX_HEADER_BYTES) {
        return Err(format!("not safetensors: a header of {bytes} bytes, the limit is {MAX_HEADER_BYTES}"));
    }
    let (header_bytes, metadata) = SafeTensors::read_metadata(file).map_err(|error| match error {
        SafeTensorError::MetadataIncompleteBuffer | SafeTensorError::InvalidHeaderLength => {
            format!("safetensors file of {} bytes is truncated, or has bytes to spare: {error}", file.len())
        }
        error => format!("not a sound safetensors file: {error}"),
    })?;
    let mut entries = BTreeMap::new();
    for (name, info) in metadata.tensors() {
        let dtype = dtype(info.dtype)
            .ok_or_else(|| format!("tensor `{name}` has the unsupported dtype {}", info.dtype))?;
        let base = header_bytes + size_of::<u64>();
        let place = Range { start: base + info.data_offsets.0, end: base + info.data_offsets.1 };
        entries.insert(name, Entry { dtype, shape: info.shape.clone(), place: Bytes::InFile(place) });
    }
    Ok(entries)
}

fn dtype(dtype: safetensors::Dtype) -> Option<Dtype> {
    use safetensors::Dtype as Stored;
    Some(match dtype {
        Stored::F64 => Dtype::F64,
        Stored::F32 => Dtype::F32,
        Stored::F16 => Dtype::F16,
        Stored::BF16 => Dtype::BF16,
        Stored::F8_E4M3 => Dtype::E4M3,
        Stored::F8_E5M2 => Dtype::E5M2,
        Stored::C64 => Dtype::C64,
        Stored::I64 => Dtype::I64,
        Stored::I32 => Dtype::I32,
        Stored::I16 => Dtype::I16,
        Stored::I8 => Dtype::I8,
        Stored::U8 => Dtype::U8,
        Stored::BOOL => Dtype::Bool,
        _ => return None,
    })
}

/// What a file that is often put in a checkpoint's place is.
fn foreign(file: &[u8]) -> Option<&'static str> {
    let kinds: [(&[u8], &str); 8] = [
        (
            b"version https://git-lfs",
            "a Git LFS pointer, not the file it points to (`git lfs pull` fetches it)",
        ),
        (b"<", "a web page or XML"),
        (b"\x1f\x8b", "a gzip file"),
        (b"GGUF", "a GGUF file"),
        (b"\x89HDF", "an HDF5 file"),
        (b"\x93NUMPY", "a NumPy array"),
        (b"\x08", "an ONNX model"),
        (b"\x80", "a pickle or a torch file from before version 1.6 (load and save it with a newer torch)"),
    ];
    if file.is_empty() {
        return Some("an empty file");
    }
    // The JSON of a safetensors header, whose length before it can look like anything.
    if file.get(8) == Some(&b'{') {
        return None;
    }
    kinds.iter().find(|(magic, _)| file.starts_with(magic)).map(|(_, kind)| *kind)
}
