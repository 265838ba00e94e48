//! Serialised graphs in, runnable sessions and tensors out: the one place that names ONNX Runtime's binding.
//!
//! A [`Session`] has one owner and no state of a request: what a run needs, it is given. Never looks at a
//! voice, and never decides a dtype.

mod fetch;
pub mod library;
mod tensor;

use std::path::Path;
use std::time::Instant;

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
}

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
        Ok(Self { environment, accelerator })
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
            .with_intra_op_spinning(threads > 1)?;
        match self.accelerator {
            Accelerator::Cpu => {}
            // TF32 would narrow the products of an f32 stage to 11 bits.
            #[cfg(feature = "cuda")]
            Accelerator::Cuda(device) => {
                let provider = ort::ep::CUDA::default().with_device_id(device).with_tf32(false).build().error_on_failure();
                builder = builder.with_execution_providers([provider])?;
            }
            #[cfg(not(feature = "cuda"))]
            Accelerator::Cuda(_) => {}
        }
        builder.commit_from_memory(model)
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
    pub fn input(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        self.inner.bind_input(name, tensor.value()).map_err(|e| bind_fault(name, &e))
    }

    /// Binds `tensor` as the place where output `name` is written; it may be bound as an input as well.
    pub fn output(&mut self, name: &str, tensor: &mut Tensor) -> Result<()> {
        self.inner.bind_output(name, tensor.value_mut()).map_err(|e| bind_fault(name, &e))
    }
}

fn bind_fault(name: &str, error: &ort::Error) -> Error {
    Error::Internal(format!("{name} could not be bound: {error}"))
}
