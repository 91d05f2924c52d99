//! Generates the messages and the stub from the contract, with protoc (Debian: protobuf-compiler; else name it in PROTOC).

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tonic_build::configure()
        .build_server(false)
        // Tensor bytes are slices of the received message, and are not copied when a call is retried.
        .bytes([".quantd.v1.Tensor.raw_data"])
        .compile_protos(&["proto/quantd/v1/quantization.proto"], &["proto"])?;
    Ok(())
}
