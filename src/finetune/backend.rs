//! The name of a device in, burn's device and what the plan says of it out.
//!
//! Never falls back on another device.

use burn::tensor::Device as BurnDevice;

use super::given::Backend;
use crate::error::{Error, Result};
use crate::precision::Device;

/// What burn computes on.
///
/// # Errors
/// [`Error::InvalidRequest`] for a device that this program was not built for.
pub fn device(backend: Backend) -> Result<BurnDevice> {
    let device = match backend {
        Backend::Cpu => BurnDevice::flex(),
        #[cfg(feature = "finetune-cuda")]
        Backend::Cuda => BurnDevice::cuda(0_usize),
        #[cfg(feature = "finetune-metal")]
        Backend::Metal => BurnDevice::metal(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(feature = "finetune-vulkan")]
        Backend::Vulkan => BurnDevice::vulkan(burn::tensor::DeviceKind::DefaultDevice),
        #[allow(unreachable_patterns, reason = "with every feature nothing is left")]
        _ => return Err(not_built(backend)),
    };
    Ok(device.autodiff())
}

/// What the plan is made for.
///
/// # Errors
/// As [`device`].
pub fn facts(backend: Backend) -> Result<Device> {
    match backend {
        Backend::Cpu => Ok(Device::this_cpu()),
        Backend::Cuda if cfg!(feature = "finetune-cuda") => Ok(Device::cuda("CUDA device 0", (8, 0))),
        Backend::Metal if cfg!(feature = "finetune-metal") => Ok(unmeasured("Metal device")),
        Backend::Vulkan if cfg!(feature = "finetune-vulkan") => Ok(unmeasured("Vulkan device")),
        other => Err(not_built(other)),
    }
}

/// A GPU of which nothing is known but that it multiplies f16.
fn unmeasured(name: &str) -> Device {
    let note = Some(format!("bf16 was not measured on a {name}"));
    Device { tf32: false, bf16_note: note, name: name.to_owned(), ..Device::cuda(name, (8, 0)) }
}

fn not_built(backend: Backend) -> Error {
    let name = format!("{backend:?}").to_lowercase();
    Error::InvalidRequest(format!(
        "device {name}: this program was built without it; build it with `--features finetune-{name}`, or train on cpu"
    ))
}

/// Lets training use `threads` threads; without a number, one for every processor.
///
/// # Errors
/// [`Error::Internal`] when the threads of this process have been started already.
pub fn use_threads(threads: Option<usize>) -> Result<()> {
    let Some(threads) = threads else { return Ok(()) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global().map_err(|e| Error::Internal(format!("{threads} threads could not be started: {e}")))
}
