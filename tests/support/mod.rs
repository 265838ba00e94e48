//! What several boundary tests need: the runtime, reference tensors, comparisons.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod random_voice;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use mezzavoce::precision::{Device, Dtype, Plan, Precision, Purpose, resolve};
use mezzavoce::runtime::library::{Clients, Lookup, default_cache_dir, locate};
use mezzavoce::runtime::{Accelerator, Runtime};
use mezzavoce::voice::Voice;
use safetensors::SafeTensors;

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// ONNX Runtime, found or fetched exactly as the program does it.
pub fn runtime() -> &'static Arc<Runtime> {
    static RUNTIME: OnceLock<Arc<Runtime>> = OnceLock::new();
    RUNTIME.get_or_init(|| Arc::new(Runtime::load(&library(), Accelerator::Cpu).unwrap()))
}

/// The ONNX Runtime library that the program uses.
pub fn library() -> PathBuf {
    let explicit = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
    let cache_dir = default_cache_dir(|name| std::env::var_os(name)).unwrap();
    locate(&Lookup { explicit, cache_dir, offline: false, clients: Clients::default() }).unwrap()
}

/// The plan of `precision` for `voice` on the CPU that runs the test.
pub fn plan(voice: &Voice, precision: Precision) -> Plan {
    resolve(Purpose::Inference, precision, voice.acoustic.stored_dtype(), &Device::this_cpu()).unwrap()
}

/// Tensors of a safetensors file, as f32.
pub struct Reference(Vec<u8>);

impl Reference {
    /// The file at `path`, or `None` (and a line that says so) where it is not there.
    pub fn open(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).ok();
        if bytes.is_none() {
            println!("skipped: {} is not here", path.display());
        }
        bytes.map(Self)
    }

    pub fn f32(&self, name: &str) -> Vec<f32> {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        let tensor = file.tensor(name).unwrap();
        match tensor.dtype() {
            safetensors::Dtype::U8 => tensor.data().iter().map(|&value| f32::from(value)).collect(),
            _ => mezzavoce::precision::cast::to_f32(tensor.data(), Dtype::F32).unwrap(),
        }
    }

    pub fn i64(&self, name: &str) -> Vec<i64> {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        let data = file.tensor(name).unwrap().data().to_vec();
        data.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        SafeTensors::deserialize(&self.0).unwrap().tensor(name).is_ok()
    }
}

/// The largest absolute difference; infinite when the lengths differ or a value is not a number.
pub fn max_abs_difference(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() || a.iter().chain(b).any(|value| value.is_nan()) {
        return f32::INFINITY;
    }
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
