//! Serialised graphs in, runnable sessions and tensors out: the one place that names ONNX Runtime's binding.
//!
//! A [`Session`] has one owner and no state of a request: what a run needs, it is given. Never looks at a
//! voice, and never decides a dtype.

mod fetch;
pub mod library;
mod tensor;

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use ort::AsPointer;
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{IoBinding, SessionInputValue};

pub use tensor::Tensor;

use crate::error::{Error, Result};

/// Where the graphs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accelerator {
    #[default]
    Cpu,
    /// The CUDA execution provider on this device id; needs the `cuda` feature and a CUDA build of the library.
    Cuda(i32),
}

/// The loaded ONNX Runtime library. One process loads one library; a second `load` shares the first.
pub struct Runtime {
    environment: ort::environment::Environment,
    accelerator: Accelerator,
    version: &'static str,
}

/// Of the library that this process has loaded.
static VERSION: OnceLock<String> = OnceLock::new();

impl Runtime {
    /// Loads the shared library at `library`.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the file is no ONNX Runtime, is older than 1.24, or lacks the accelerator.
    pub fn load(library: &Path, accelerator: Accelerator) -> Result<Self> {
        let unusable =
            |reason: String| Error::Runtime(format!("{} cannot be used: {reason}", library.display()));
        if accelerator != Accelerator::Cpu && !cfg!(feature = "cuda") {
            let advice = "this build has no CUDA support; build with `--features cuda`";
            return Err(Error::InvalidRequest(format!("device cuda: {advice}")));
        }
        let builder = ort::init_from(library).map_err(|e| unusable(e.to_string()))?;
        let environment = builder
            .with_name("mezzavoce")
            .with_telemetry(false)
            .build()
            .map_err(|e| unusable(e.to_string()))?;
        environment.set_log_level(ort::logging::LogLevel::Error);
        let version =
            VERSION.get_or_init(|| version(library).unwrap_or_else(|| "of an unknown version".to_owned()));
        Ok(Self { environment, accelerator, version })
    }

    /// The version of the loaded library, such as `1.32.0`.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// What the loaded library says of its build.
    pub fn build_info(&self) -> &'static str {
        ort::info()
    }

    /// Makes a session of the serialised `model` that computes with `threads` threads.
    pub fn session(&self, name: &'static str, model: &[u8], threads: usize) -> Result<Session> {
        let began = Instant::now();
        let inner = self.build(model, threads).map_err(|e| {
            Error::Runtime(format!("the {name} graph was not accepted by this ONNX Runtime: {e}"))
        })?;
        tracing::debug!("{name} graph of {} bytes loaded in {:.0?}", model.len(), began.elapsed());
        Ok(Session { name, inner })
    }

    fn build(&self, model: &[u8], threads: usize) -> ort::Result<ort::session::Session> {
        let mut builder = ort::session::Session::builder(&self.environment)?
            .with_optimization_level(GraphOptimizationLevel::All)?
            .with_intra_threads(threads)?
            .with_inter_threads(1)?
            // A thread that spins takes the core that the next stage needs: without, the default voice's real-time
            // factor is a fifth lower (cargo bench --bench speech).
            .with_intra_op_spinning(false)?;
        match self.accelerator {
            Accelerator::Cpu => {}
            // TF32 would narrow the products of an f32 stage to 11 bits.
            #[cfg(feature = "cuda")]
            Accelerator::Cuda(device) => {
                let provider = ort::ep::CUDA::default()
                    .with_device_id(device)
                    .with_tf32(false)
                    .build()
                    .error_on_failure();
                builder = builder.with_execution_providers([provider])?;
            }
            #[cfg(not(feature = "cuda"))]
            Accelerator::Cuda(_) => {}
        }
        builder.commit_from_memory(model)
    }
}

/// What the library at `path`, which has been loaded already, calls its version. The binding looks at it, but does not
/// pass it on.
fn version(path: &Path) -> Option<String> {
    type GetApiBase = unsafe extern "C" fn() -> *const ort::sys::OrtApiBase;
    // SAFETY: the file has been loaded, so its initialisers have run; the symbol has this signature in every release, the
    // base is static, and the version is a static C string.
    unsafe {
        let library = libloading::Library::new(path).ok()?;
        let get_base: libloading::Symbol<GetApiBase> = library.get(b"OrtGetApiBase").ok()?;
        let base = get_base().as_ref()?;
        Some(CStr::from_ptr((base.GetVersionString)()).to_str().ok()?.to_owned())
    }
}

/// One graph, ready to run. Owned by one thread at a time.
pub struct Session {
    name: &'static str,
    inner: ort::session::Session,
}

impl Session {
    /// Runs the graph on `inputs` and returns `outputs` in the order asked for.
    pub fn run(&mut self, inputs: &[(&str, &Tensor)], outputs: &[&str]) -> Result<Vec<Tensor>> {
        let name = self.name;
        let fault = |e: ort::Error| Error::Internal(format!("the {name} graph failed: {e}"));
        let inputs: Vec<_> = inputs
            .iter()
            .map(|(name, tensor)| {
                ((*name).to_owned(), SessionInputValue::from(tensor.value().view().into_dyn()))
            })
            .collect();
        let mut results = self.inner.run(inputs).map_err(fault)?;
        let mut take = |output: &&str| {
            let missing = || Error::Internal(format!("the {name} graph has no output {output}"));
            Tensor::from_value(results.remove(*output).ok_or_else(missing)?)
        };
        outputs.iter().map(&mut take).collect()
    }

    /// A reusable set of bound inputs and outputs for [`Self::run_bound`].
    pub fn binding(&self) -> Result<Binding> {
        let inner = self.inner.create_binding().map_err(|e| Error::Internal(e.to_string()))?;
        Ok(Binding { inner })
    }

    /// Runs the graph on bound tensors: nothing is allocated and nothing copied.
    pub fn run_bound(&mut self, binding: &Binding) -> Result<()> {
        let name = self.name;
        self.inner
            .run_binding(&binding.inner)
            .map_err(|e| Error::Internal(format!("the {name} graph failed: {e}")))?;
        Ok(())
    }
}

/// Tensors tied to the inputs and outputs of one session. Writing to a bound tensor is seen by the next run.
pub struct Binding {
    inner: IoBinding,
}

impl Binding {
    /// Binds the first rows of `tensor`, reshaped to `shape`, as input `name`.
    ///
    /// # Safety
    /// `tensor` must outlive every run of this binding, and nobody may access it during one.
    pub unsafe fn input_rows(&mut self, name: &str, tensor: &Tensor, shape: &[usize]) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.bind(name, tensor, shape, ort::api().BindInput) }
    }

    /// Binds the first rows of `tensor`, reshaped to `shape`, as the place where output `name` is written. The
    /// same rows may be bound as an input: that is how a cache is appended to in place.
    ///
    /// # Safety
    /// As for [`Self::input_rows`].
    pub unsafe fn output_rows(&mut self, name: &str, tensor: &Tensor, shape: &[usize]) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.bind(name, tensor, shape, ort::api().BindOutput) }
    }

    /// The binding's own functions copy an input that does not own its memory, and refuse an output that is
    /// bound as an input too; the runtime below does neither, so it is asked directly.
    unsafe fn bind(&mut self, name: &str, tensor: &Tensor, shape: &[usize], bind: Bind) -> Result<()> {
        let fault = |e: String| Error::Internal(format!("{name} could not be bound: {e}"));
        let c_name = CString::new(name).map_err(|e| fault(e.to_string()))?;
        let binding = self.inner.ptr().cast_mut();
        // SAFETY: all three pointers live through the call, and the binding takes its own reference to the
        // value; the memory behind it is the caller's promise. The status is ours from then on.
        tensor.with_rows(shape, |rows| unsafe {
            ort::Error::result_from_status(bind(binding, c_name.as_ptr(), rows))
                .map_err(|e| fault(e.to_string()))
        })
    }
}

type Bind = unsafe extern "system" fn(
    *mut ort::sys::OrtIoBinding,
    *const std::ffi::c_char,
    *const ort::sys::OrtValue,
) -> ort::sys::OrtStatusPtr;
