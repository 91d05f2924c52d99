//! Slices in, vectors out. Bytes are little endian on the wire, on every host.

use std::mem::{size_of, size_of_val};

use bytes::Bytes;

use crate::element_type::{ElementType, Kind};
use crate::v1::tensor::Contents;
use crate::v1::{DataType, Tensor};
use crate::Error;

/// A Rust type whose values are elements of tensors.
pub trait Element: Sized {
    /// The type of a tensor with these elements.
    const DATA_TYPE: DataType;

    #[doc(hidden)]
    fn encode(values: &[Self]) -> Vec<u8>;

    /// The types that it can be decoded from, for errors.
    #[doc(hidden)]
    const TAKES: &'static str;

    /// None if a tensor of this type has no such elements.
    #[doc(hidden)]
    fn decode(data_type: DataType, data: &[u8], count: usize) -> Option<Vec<Self>>;
}

fn name(data_type: DataType) -> &'static str {
    data_type.as_str_name().trim_start_matches("DATA_TYPE_")
}

impl Tensor {
    /// A tensor of a row-major slice and the length of each dimension, outermost first; without dimensions it is 0-D, with one
    /// element. If the shape does not match the slice, the server refuses it.
    pub fn from_slice<T: Element>(values: &[T], shape: &[i64]) -> Tensor {
        Tensor::from_bytes(T::DATA_TYPE, T::encode(values), shape)
    }

    /// A FLOAT tensor.
    pub fn from_f32s(values: &[f32], shape: &[i64]) -> Tensor {
        Tensor::from_slice(values, shape)
    }

    /// A tensor of any type, from its packed little-endian bytes as [`DataType`] describes them. They are not copied.
    pub fn from_bytes(data_type: DataType, data: impl Into<Bytes>, shape: &[i64]) -> Tensor {
        Tensor { data_type: data_type.into(), shape: shape.to_vec(), contents: Some(Contents::RawData(data.into())) }
    }

    /// Packs values of -8 to 7, two per byte, into an INT4 tensor.
    pub fn from_i4s(values: &[i8], shape: &[i64]) -> Result<Tensor, Error> {
        pack(DataType::Int4, values, shape)
    }

    /// Packs values of 0 to 15, two per byte, into a UINT4 tensor.
    pub fn from_u4s(values: &[u8], shape: &[i64]) -> Result<Tensor, Error> {
        pack(DataType::Uint4, values, shape)
    }

    /// Packs values of -2 to 1, four per byte, into an INT2 tensor.
    pub fn from_i2s(values: &[i8], shape: &[i64]) -> Result<Tensor, Error> {
        pack(DataType::Int2, values, shape)
    }

    /// Packs values of 0 to 3, four per byte, into a UINT2 tensor.
    pub fn from_u2s(values: &[u8], shape: &[i64]) -> Result<Tensor, Error> {
        pack(DataType::Uint2, values, shape)
    }

    /// Packs the codes of a floating-point type of at most 8 bits (such as FLOAT8E4M3FN, FLOAT6E2M3, FLOAT4E2M1), one per element
    /// of the slice, as `to_vec::<u8>()` returns them. A code is the bits of an element, not its value.
    pub fn from_codes(data_type: DataType, codes: &[u8], shape: &[i64]) -> Result<Tensor, Error> {
        match ElementType::of(data_type) {
            Some(ElementType { bits: ..=8, kind: Kind::FloatingPoint }) => pack(data_type, codes, shape),
            _ => {
                let name = name(data_type);
                Err(Error::invalid_field(
                    "data_type",
                    format!("from_codes takes a floating-point type of at most 8 bits, not {name}"),
                ))
            }
        }
    }

    /// The packed bytes; an error if type and shape need another number. They are not copied: clones share them.
    pub fn to_bytes(&self) -> Result<Bytes, Error> {
        let (data, _) = self.raw()?;
        Ok(data)
    }

    /// The elements, row-major: f32 for FLOAT, FLOAT16 and BFLOAT16; i8 also for INT4 and INT2, one per element; u8 also for UINT4
    /// and UINT2, and for the codes of FLOAT8, FLOAT6 and FLOAT4; u16 also for the bits of FLOAT16 and BFLOAT16; i16; i32.
    ///
    /// An error for other types, for a number of bytes that does not match type and shape, and for tensors in values or in
    /// shared memory.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        let (data, count) = self.raw()?;
        T::decode(self.data_type(), &data, count).ok_or_else(|| {
            let (given, wanted) = (name(self.data_type()), std::any::type_name::<T>());
            Error::invalid_field(
                "data_type",
                format!("the tensor is {given}, which does not come as {wanted}: that takes {}", T::TAKES),
            )
        })
    }

    /// The bytes and the number of elements.
    fn raw(&self) -> Result<(Bytes, usize), Error> {
        let data = match &self.contents {
            None => Bytes::new(),
            Some(Contents::RawData(data)) => data.clone(),
            Some(_) => return Err(Error::invalid_field("raw_data", "the tensor's elements are not in raw_data")),
        };
        let element = DataType::try_from(self.data_type)
            .ok()
            .and_then(ElementType::of)
            .ok_or_else(|| Error::invalid_field("data_type", format!("data_type {} is unknown", self.data_type)))?;
        let lengths: Option<Vec<u64>> = self.shape.iter().map(|&length| u64::try_from(length).ok()).collect();
        let lengths =
            lengths.ok_or_else(|| Error::invalid_field("shape", format!("shape {:?} has a negative length", self.shape)))?;
        let count = if lengths.contains(&0) {
            Some(0)
        } else {
            lengths.iter().try_fold(1u64, |product, &length| product.checked_mul(length))
        };
        let wanted = count.and_then(|count| element.bytes(count));
        // If usize has 32 bits, a packed tensor may have more elements than a slice.
        match (count.and_then(|count| usize::try_from(count).ok()), wanted) {
            (Some(count), Some(wanted)) if wanted == data.len() as u64 => Ok((data, count)),
            _ => {
                let (given, name, shape) = (data.len(), name(self.data_type()), &self.shape);
                let takes = wanted.map_or("more than 2^64".to_owned(), |wanted| wanted.to_string());
                Err(Error::invalid_field(
                    "raw_data",
                    format!("raw_data has {given} bytes, {name} of shape {shape:?} takes {takes}"),
                ))
            }
        }
    }
}

fn pack<T: Copy + Into<i16>>(data_type: DataType, values: &[T], shape: &[i64]) -> Result<Tensor, Error> {
    let element = ElementType::of(data_type)
        .ok_or_else(|| Error::invalid_field("data_type", format!("{} has no elements", name(data_type))))?;
    let range = element.range();
    for (index, &value) in values.iter().enumerate() {
        let value = value.into();
        if !range.contains(&value) {
            let (name, least, most) = (name(data_type), range.start(), range.end());
            return Err(Error::invalid_field("raw_data", format!("element {index} is {value}, {name} holds {least} to {most}")));
        }
    }
    Ok(Tensor::from_bytes(data_type, element.pack(values.iter().map(|&value| value.into() as u8)), shape))
}

macro_rules! little_endian {
    () => {
        fn encode(values: &[Self]) -> Vec<u8> {
            let mut data = vec![0; size_of_val(values)];
            for (bytes, value) in data.chunks_exact_mut(size_of::<Self>()).zip(values) {
                bytes.copy_from_slice(&value.to_le_bytes());
            }
            data
        }
    };
}

/// Elements that have as many bytes as T.
macro_rules! of_bytes {
    ($type:ty, $data:expr) => {
        $data.chunks_exact(size_of::<$type>()).map(|bytes| <$type>::from_le_bytes(bytes.try_into().unwrap_or_default()))
    };
}

impl Element for f32 {
    const DATA_TYPE: DataType = DataType::Float;
    const TAKES: &'static str = "FLOAT, FLOAT16, BFLOAT16";
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], _: usize) -> Option<Vec<f32>> {
        match data_type {
            DataType::Float => Some(of_bytes!(f32, data).collect()),
            DataType::Bfloat16 => Some(of_bytes!(u16, data).map(|bits| f32::from_bits(u32::from(bits) << 16)).collect()),
            DataType::Float16 => Some(of_bytes!(u16, data).map(from_float16).collect()),
            _ => None,
        }
    }
}

fn from_float16(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (u32::from(bits >> 15) << 31, u32::from(bits >> 10) & 31, u32::from(bits) & 1023);
    f32::from_bits(match exponent {
        // Denormal halves are multiples of 2^-24, which are normal here.
        0 => sign | (fraction as f32 / 16_777_216.0).to_bits(),
        31 => sign | 255 << 23 | fraction << 13,
        _ => sign | (exponent + 112) << 23 | fraction << 13,
    })
}

impl Element for i32 {
    const DATA_TYPE: DataType = DataType::Int32;
    const TAKES: &'static str = "INT32";
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], _: usize) -> Option<Vec<i32>> {
        (data_type == DataType::Int32).then(|| of_bytes!(i32, data).collect())
    }
}

impl Element for i16 {
    const DATA_TYPE: DataType = DataType::Int16;
    const TAKES: &'static str = "INT16";
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], _: usize) -> Option<Vec<i16>> {
        (data_type == DataType::Int16).then(|| of_bytes!(i16, data).collect())
    }
}

impl Element for u16 {
    const DATA_TYPE: DataType = DataType::Uint16;
    const TAKES: &'static str = "UINT16, and the bits of FLOAT16 and BFLOAT16";
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], _: usize) -> Option<Vec<u16>> {
        matches!(data_type, DataType::Uint16 | DataType::Float16 | DataType::Bfloat16).then(|| of_bytes!(u16, data).collect())
    }
}

impl Element for i8 {
    const DATA_TYPE: DataType = DataType::Int8;
    const TAKES: &'static str = "INT8, INT4, INT2";
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], count: usize) -> Option<Vec<i8>> {
        match ElementType::of(data_type)? {
            element @ ElementType { bits: ..=8, kind: Kind::SignedInteger } => {
                let up = 8 - element.bits;
                // Shifting to the highest bit and back repeats the sign.
                Some(element.unpack(data, count).map(|code| (code << up) as i8 >> up).collect())
            }
            _ => None,
        }
    }
}

impl Element for u8 {
    const DATA_TYPE: DataType = DataType::Uint8;
    const TAKES: &'static str = "UINT8, UINT4, UINT2, and the codes of FLOAT8, FLOAT6 and FLOAT4E2M1";
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], count: usize) -> Option<Vec<u8>> {
        match ElementType::of(data_type)? {
            ElementType { kind: Kind::SignedInteger, .. } => None,
            ElementType { bits: 8, .. } => Some(data.to_vec()),
            element @ ElementType { bits: ..=7, .. } => Some(element.unpack(data, count).collect()),
            _ => None,
        }
    }
}
