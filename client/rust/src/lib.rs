//! What a Rust program needs beside the generated client of [`v1`]: a connection with the right limits, and tensors of slices.
//!
//! ```no_run
//! # async fn example(x: &[f32]) -> Result<(), Box<dyn std::error::Error>> {
//! use quantd::v1::{DataType, DynamicQuantizeRequest, Tensor};
//!
//! let mut client = quantd::client(quantd::endpoint("http://127.0.0.1:50051")?.connect_lazy());
//! let answer = client
//!     .dynamic_quantize(DynamicQuantizeRequest {
//!         x: Some(Tensor::from_f32s(x, &[1000, 768])),
//!         output_type: DataType::Int8.into(),
//!         axis: Some(0),
//!         ..Default::default()
//!     })
//!     .await?
//!     .into_inner();
//! let codes: Vec<i8> = answer.y.unwrap_or_default().unpack()?;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tonic::transport::{Channel, Endpoint};

use v1::quantization_service_client::QuantizationServiceClient;
use v1::tensor::Contents;
use v1::{DataType, Tensor};

pub use tonic;

/// The messages and the stub, as tonic generates them; the comments are those of the contract.
#[allow(clippy::all, rustdoc::invalid_html_tags, rustdoc::broken_intra_doc_links)]
pub mod v1 {
    tonic::include_proto!("quantd.v1");
}

/// Tonic's endpoint of "http://host:port", or of "https://host:port" with `tls_config`, with the settings that clients of quantd need.
pub fn endpoint(uri: &str) -> Result<Endpoint, tonic::transport::Error> {
    Ok(Endpoint::from_shared(uri.to_string())?
        .connect_timeout(Duration::from_secs(20))
        // Only while a call is in flight: otherwise a lost server is noticed only when TCP gives up, after minutes.
        .http2_keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10)))
}

/// The generated client over a channel, for messages of any size: the server has the limit (--max_message_bytes), and tonic's own,
/// 4 MiB, is below many tensors.
pub fn client(channel: Channel) -> QuantizationServiceClient<Channel> {
    QuantizationServiceClient::new(channel)
        .max_decoding_message_size(i32::MAX as usize)
        .max_encoding_message_size(i32::MAX as usize)
}

/// A tensor or slice that is not what was asked for; it says both numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Element i of a tensor is in the bits `bits * i` to `bits * (i + 1) - 1` of its bytes, read as one little-endian bit string.
#[derive(Clone, Copy)]
struct ElementType {
    bits: u32,
    signed: bool,
}

impl ElementType {
    /// It has no default, so that a missing type does not compile.
    fn of(data_type: DataType) -> Result<ElementType, Error> {
        use DataType::*;
        let (bits, signed) = match data_type {
            Unspecified => return Err(Error("data_type is not set".to_string())),
            Float => (32, false),
            Float16 | Bfloat16 | Uint16 => (16, false),
            Uint8 | Float8e4m3fn | Float8e4m3fnuz | Float8e5m2 | Float8e5m2fnuz | Float8e8m0 => (8, false),
            Float6e2m3 | Float6e3m2 => (6, false),
            Float4e2m1 | Uint4 => (4, false),
            Uint2 => (2, false),
            Int32 => (32, true),
            Int16 => (16, true),
            Int8 => (8, true),
            Int4 => (4, true),
            Int2 => (2, true),
        };
        Ok(ElementType { bits, signed })
    }

    /// The number of bytes of this many elements; the last byte may have unused bits; None beyond 2^64.
    fn bytes(self, count: u64) -> Option<u64> {
        let bits = u64::from(self.bits);
        (count / 8).checked_mul(bits)?.checked_add((count % 8 * bits).div_ceil(8))
    }

    /// The least and the greatest integer, or code.
    fn range(self) -> (i64, i64) {
        match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }
}

fn name(data_type: DataType) -> &'static str {
    data_type.as_str_name().trim_start_matches("DATA_TYPE_")
}

impl Tensor {
    /// A tensor of packed little-endian bytes, as [`DataType`] describes them. They are not copied. The shape is the length of each
    /// dimension, outermost first; an empty one is that of a 0-D tensor of one element. A shape that does not match is the server's to
    /// refuse.
    pub fn from_bytes(data_type: DataType, data: impl Into<Bytes>, shape: &[i64]) -> Tensor {
        Tensor { data_type: data_type.into(), shape: shape.to_vec(), contents: Some(Contents::RawData(data.into())) }
    }

    /// A FLOAT tensor of a row-major slice.
    pub fn from_f32s(values: &[f32], shape: &[i64]) -> Tensor {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor::from_bytes(DataType::Float, data, shape)
    }

    /// A tensor of integers, or of the codes of a floating-point type (the bits of an element, not its value): one per element of the
    /// slice, whatever the width of the type.
    pub fn pack<T: Copy + Into<i64>>(data_type: DataType, values: &[T], shape: &[i64]) -> Result<Tensor, Error> {
        let element = ElementType::of(data_type)?;
        let (least, most) = element.range();
        let size = element.bytes(values.len() as u64).and_then(|size| usize::try_from(size).ok());
        let mut data = vec![0u8; size.ok_or_else(|| Error(format!("{} elements do not fit into memory", values.len())))?];
        for (index, &value) in values.iter().enumerate() {
            let value: i64 = value.into();
            if value < least || value > most {
                return Err(Error(format!("element {index} is {value}, {} holds {least} to {most}", name(data_type))));
            }
            let bit = index as u64 * u64::from(element.bits);
            let mut code = (value as u64 & ((1 << element.bits) - 1)) << (bit % 8);
            let mut at = (bit / 8) as usize;
            while code != 0 {
                data[at] |= code as u8; // the first element is in the lowest bits; one of 6 bits may go on in the next byte
                code >>= 8;
                at += 1;
            }
        }
        Ok(Tensor::from_bytes(data_type, data, shape))
    }

    /// The elements of a FLOAT tensor.
    pub fn to_f32s(&self) -> Result<Vec<f32>, Error> {
        if self.data_type() != DataType::Float {
            return Err(Error(format!("data_type is {}, not FLOAT: unpack", name(self.data_type()))));
        }
        let (data, ..) = self.raw()?;
        Ok(data.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap_or_default())).collect())
    }

    /// The elements of an integer tensor, or the codes of a floating-point one. An error if T does not hold every element of the type.
    pub fn unpack<T: TryFrom<i64>>(&self) -> Result<Vec<T>, Error> {
        let (data, count, element) = self.raw()?;
        let (least, most) = element.range();
        if T::try_from(least).is_err() || T::try_from(most).is_err() {
            let (given, wanted) = (name(self.data_type()), std::any::type_name::<T>());
            return Err(Error(format!(
                "data_type is {given}, whose elements are {least} to {most}: {wanted} does not hold them"
            )));
        }
        let element_at = |index: usize| {
            let bit = index as u64 * u64::from(element.bits);
            let (first, shift) = ((bit / 8) as usize, (bit % 8) as u32);
            let last = first + (shift + element.bits).div_ceil(8) as usize;
            let code = data[first..last].iter().rev().fold(0u64, |code, &byte| code << 8 | u64::from(byte)) >> shift;
            // Shifting to the highest bit and back repeats the sign or fills with 0.
            let up = 64 - element.bits;
            let value = if element.signed { (code << up) as i64 >> up } else { (code << up >> up) as i64 };
            T::try_from(value).map_err(|_| Error(format!("element {index} is {value}")))
        };
        (0..count).map(element_at).collect()
    }

    /// The bytes, the number of elements, their type. The bytes are not copied.
    fn raw(&self) -> Result<(Bytes, usize, ElementType), Error> {
        let data = match &self.contents {
            None => Bytes::new(),
            Some(Contents::RawData(data)) => data.clone(),
            Some(_) => return Err(Error("the tensor's elements are not in raw_data".to_string())),
        };
        let data_type =
            DataType::try_from(self.data_type).map_err(|_| Error(format!("data_type {} is unknown", self.data_type)))?;
        let element = ElementType::of(data_type)?;
        let lengths: Option<Vec<u64>> = self.shape.iter().map(|&length| u64::try_from(length).ok()).collect();
        let lengths = lengths.ok_or_else(|| Error(format!("shape {:?} has a negative length", self.shape)))?;
        let count = if lengths.contains(&0) {
            Some(0)
        } else {
            lengths.iter().try_fold(1u64, |product, &length| product.checked_mul(length))
        };
        let wanted = count.and_then(|count| element.bytes(count));
        match (count.and_then(|count| usize::try_from(count).ok()), wanted) {
            (Some(count), Some(wanted)) if wanted == data.len() as u64 => Ok((data, count, element)),
            _ => {
                let (given, name, shape) = (data.len(), name(data_type), &self.shape);
                let takes = wanted.map_or("more than 2^64".to_string(), |wanted| wanted.to_string());
                Err(Error(format!("raw_data has {given} bytes, {name} of shape {shape:?} takes {takes}")))
            }
        }
    }
}
