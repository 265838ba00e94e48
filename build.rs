//! Compiles `proto/` into Rust with pure-Rust tools, so that no `protoc` is needed.

use std::path::PathBuf;

use protox::prost_reflect::prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let onnx = protox::compile(["onnx.proto"], ["proto"])?;
    prost_build::Config::new().compile_fds(onnx)?;

    let service = protox::compile(["mezzavoce/v1/mezzavoce.proto"], ["proto"])?;
    // Reflection hands the descriptors to clients.
    let descriptors = PathBuf::from(std::env::var("OUT_DIR")?).join("mezzavoce.v1.bin");
    std::fs::write(descriptors, service.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(service)?;
    Ok(())
}
