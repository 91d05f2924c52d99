//! A client of quantd, which quantizes tensors bit-exact to the ONNX operators.
//!
//! [`Client::connect`] returns the generated client of [`v1`] with the settings that users need: messages of any size, retries,
//! all servers of a name, keepalive, TLS and token. [`v1::Tensor::from_f32s`] and similar functions make tensors of slices,
//! [`v1::Tensor::to_vec`] makes vectors of them, [`Error`] tells which field was wrong. Everything else is generated code.
//!
//! ```no_run
//! # async fn example(x: &[f32]) -> Result<(), quantd::Error> {
//! use quantd::v1::{DataType, DynamicQuantizeRequest, Tensor};
//!
//! let client = quantd::Client::connect("").await?; // QUANTD_ADDRESS, or 127.0.0.1:50051
//! let answer = client
//!     .dynamic_quantize(DynamicQuantizeRequest {
//!         x: Some(Tensor::from_f32s(x, &[1000, 768])),
//!         output_type: DataType::Int8.into(),
//!         axis: Some(0),
//!         ..Default::default()
//!     })
//!     .await?;
//! let codes: Vec<i8> = answer.y.unwrap_or_default().to_vec()?;
//! # Ok(())
//! # }
//! ```

mod address;
mod client;
mod connection;
mod credentials;
mod element_type;
mod error;
mod retry;
mod tensor;

/// The messages and the stub, as tonic generates them; the comments are those of the contract.
#[allow(clippy::all, rustdoc::invalid_html_tags, rustdoc::broken_intra_doc_links)]
pub mod v1 {
    tonic::include_proto!("quantd.v1");
}

pub use client::{Client, Stub};
pub use credentials::{Credentials, Token};
pub use error::Error;
pub use retry::{BACKOFF_MULTIPLIER, INITIAL_BACKOFF, MAX_ATTEMPTS, MAX_BACKOFF};
pub use tensor::Element;
pub use tonic;
