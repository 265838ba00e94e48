//! Facts about a machine in, what ONNX Runtime and the trainer can execute on it out.
//!
//! Capabilities are data, so a plan can be made for a machine that is not here. Only
//! [`Device::this_cpu`] looks at hardware.

use super::Dtype;

/// What one device executes. ONNX Runtime 1.32 is meant where an inference kernel is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// What it is, with the facts the capabilities follow from.
    pub name: String,
    /// MatMul takes the format as it is, with f32 accumulation.
    pub f16_matmul: bool,
    pub bf16_matmul: bool,
    pub fp8_matmul: bool,
    /// GroupQueryAttention and MultiHeadAttention take K and V in the format as it is.
    pub f16_kv_cache: bool,
    pub bf16_kv_cache: bool,
    /// In training, half tensors are kept as such although no product takes them as fast as f32.
    pub trains_half_slowly: bool,
    /// f32 products run as TF32 (10 mantissa bits) unless the session forbids it.
    pub tf32: bool,
    /// What to know about each half format here.
    pub f16_note: Option<String>,
    pub bf16_note: Option<String>,
}

/// Instruction sets of an x86-64 CPU. None of them changes what ONNX Runtime does with floats: they are
/// named in the explanation because a reader expects them to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct X86Features {
    pub avx2: bool,
    pub avx512: bool,
    pub avx512_bf16: bool,
    pub avx512_fp16: bool,
    pub amx: bool,
}

impl Device {
    /// An x86-64 CPU: no f16 or bf16 MatMul whatever its instructions, native f16 attention.
    pub fn x86_64_cpu(features: X86Features) -> Self {
        let present = |sets: &[(bool, &str)]| {
            sets.iter().filter(|(present, _)| *present).map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
        };
        let f16_sets = [(features.avx512_fp16, "AVX512-FP16")];
        let bf16_sets = [(features.avx512_bf16, "AVX512-BF16"), (features.amx, "AMX")];
        let vector_sets = [(features.avx2, "AVX2"), (features.avx512, "AVX-512")];
        let all_sets: Vec<(bool, &str)> = vector_sets.into_iter().chain(f16_sets).chain(bf16_sets).collect();
        let note = |half: Dtype, sets: &[(bool, &str)]| {
            let missing = format!("ONNX Runtime 1.32 has no {half} MatMul for x86-64 CPUs");
            match present(sets).as_str() {
                "" => missing,
                unused => format!("{missing} and leaves {unused} unused"),
            }
        };
        Self {
            f16_note: Some(note(Dtype::F16, &f16_sets)),
            bf16_note: Some(note(Dtype::BF16, &bf16_sets)),
            ..Self::cpu(described("x86-64 CPU", &present(&all_sets)))
        }
    }

    /// An Arm64 CPU. `fp16`: it has FEAT_FP16 *and* sessions are opened with `session.enable_cpu_fp16`,
    /// without which ONNX Runtime widens f16 products as on x86-64. Not measured.
    pub fn aarch64_cpu(fp16: bool) -> Self {
        let widened = "ONNX Runtime multiplies f16 on Arm64 CPUs only with FEAT_FP16 and \
                       session.enable_cpu_fp16";
        let facts = if fp16 { "FP16" } else { "" };
        Self {
            f16_matmul: fp16,
            f16_note: (!fp16).then(|| widened.to_owned()),
            bf16_note: Some("ONNX Runtime has no bf16 MatMul for Arm64 CPUs".to_owned()),
            ..Self::cpu(described("Arm64 CPU", facts))
        }
    }

    /// An NVIDIA GPU of compute capability `major.minor`: f16 from 5.3 (tensor cores from 7.0), bf16 and
    /// TF32 from 8.0, fp8 from 8.9 (CUDA C++ Programming Guide, "Compute Capabilities").
    pub fn cuda(name: impl AsRef<str>, (major, minor): (u32, u32)) -> Self {
        let at_least = |needed: (u32, u32)| (major, minor) >= needed;
        let (f16, bf16) = (at_least((5, 3)), at_least((8, 0)));
        let f16_note = if !f16 {
            Some(format!("f16 needs compute capability 5.3, this GPU has {major}.{minor}"))
        } else if !at_least((7, 0)) {
            Some(format!(
                "compute capability {major}.{minor} has no tensor cores (7.0): f16 may be slower than f32"
            ))
        } else {
            None
        };
        let bf16_note =
            (!bf16).then(|| format!("bf16 needs compute capability 8.0, this GPU has {major}.{minor}"));
        Self {
            name: described(name.as_ref(), &format!("CUDA, compute capability {major}.{minor}")),
            f16_matmul: f16,
            bf16_matmul: bf16,
            fp8_matmul: at_least((8, 9)),
            f16_kv_cache: f16,
            bf16_kv_cache: bf16,
            trains_half_slowly: false,
            tf32: bf16,
            f16_note,
            bf16_note,
        }
    }

    /// The CPU this program runs on. AMX is not reported: stable Rust cannot ask for it.
    /// On Arm64 no session sets `session.enable_cpu_fp16`, so f16 products are widened.
    pub fn this_cpu() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            Self::x86_64_cpu(X86Features {
                avx2: std::arch::is_x86_feature_detected!("avx2"),
                avx512: std::arch::is_x86_feature_detected!("avx512f"),
                avx512_bf16: std::arch::is_x86_feature_detected!("avx512bf16"),
                avx512_fp16: std::arch::is_x86_feature_detected!("avx512fp16"),
                amx: false,
            })
        }
        #[cfg(target_arch = "aarch64")]
        {
            Self::aarch64_cpu(false)
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            Self { f16_kv_cache: false, ..Self::cpu(format!("{} CPU", std::env::consts::ARCH)) }
        }
    }

    /// Whether MatMul takes `dtype` as it is.
    pub fn multiplies(&self, dtype: Dtype) -> bool {
        match dtype {
            Dtype::F32 => true,
            Dtype::F16 => self.f16_matmul,
            Dtype::BF16 => self.bf16_matmul,
            Dtype::E4M3 | Dtype::E5M2 => self.fp8_matmul,
            _ => false,
        }
    }

    /// Whether attention takes a KV cache of `dtype` as it is.
    pub fn caches(&self, dtype: Dtype) -> bool {
        match dtype {
            Dtype::F32 => true,
            Dtype::F16 => self.f16_kv_cache,
            Dtype::BF16 => self.bf16_kv_cache,
            _ => false,
        }
    }

    /// What to know about `half` here.
    pub fn note(&self, half: Dtype) -> Option<&str> {
        match half {
            Dtype::F16 => self.f16_note.as_deref(),
            Dtype::BF16 => self.bf16_note.as_deref(),
            _ => None,
        }
    }

    fn cpu(name: String) -> Self {
        Self {
            name,
            f16_matmul: false,
            bf16_matmul: false,
            fp8_matmul: false,
            f16_kv_cache: true,
            bf16_kv_cache: false,
            trains_half_slowly: true,
            tf32: false,
            f16_note: None,
            bf16_note: None,
        }
    }
}

fn described(what: &str, facts: &str) -> String {
    if facts.is_empty() { what.to_owned() } else { format!("{what} ({facts})") }
}
