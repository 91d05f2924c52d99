//! Slices in, vectors out. Bytes are little endian on the wire and made so on every host.

use std::mem::{size_of, size_of_val};

use bytes::Bytes;

use crate::v1::tensor::Contents;
use crate::v1::{DataType, Tensor};
use crate::Error;

/// A Rust type whose values are elements of tensors.
pub trait Element: Sized {
    /// The type of a tensor that is made of these.
    const DATA_TYPE: DataType;

    #[doc(hidden)]
    fn encode(values: &[Self]) -> Vec<u8>;

    /// None where a tensor of this type has no such elements.
    #[doc(hidden)]
    fn decode(data_type: DataType, data: &[u8], count: usize) -> Option<Vec<Self>>;
}

/// Bits an element.
fn bits(data_type: DataType) -> Option<u64> {
    Some(match data_type {
        DataType::Unspecified => return None,
        DataType::Float | DataType::Int32 => 32,
        DataType::Float16 | DataType::Bfloat16 | DataType::Uint16 | DataType::Int16 => 16,
        DataType::Uint4 | DataType::Int4 | DataType::Float4e2m1 => 4,
        DataType::Uint2 | DataType::Int2 => 2,
        _ => 8,
    })
}

fn name(data_type: DataType) -> &'static str {
    data_type.as_str_name().trim_start_matches("DATA_TYPE_")
}

impl Tensor {
    /// A tensor of a row-major slice and the length of each dimension, outermost first; none: 0-D, of one element. A shape that
    /// does not go with the slice is the server's to refuse.
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

    /// Packs values of -8 to 7, two a byte, into an INT4 tensor.
    pub fn from_i4s(values: &[i8], shape: &[i64]) -> Result<Tensor, Error> {
        pack(DataType::Int4, 4, -8..=7, values.iter().map(|&value| i16::from(value)), shape)
    }

    /// Packs values of 0 to 15, two a byte, into a UINT4 tensor.
    pub fn from_u4s(values: &[u8], shape: &[i64]) -> Result<Tensor, Error> {
        pack(DataType::Uint4, 4, 0..=15, values.iter().map(|&value| i16::from(value)), shape)
    }

    /// Packs values of -2 to 1, four a byte, into an INT2 tensor.
    pub fn from_i2s(values: &[i8], shape: &[i64]) -> Result<Tensor, Error> {
        pack(DataType::Int2, 2, -2..=1, values.iter().map(|&value| i16::from(value)), shape)
    }

    /// Packs values of 0 to 3, four a byte, into a UINT2 tensor.
    pub fn from_u2s(values: &[u8], shape: &[i64]) -> Result<Tensor, Error> {
        pack(DataType::Uint2, 2, 0..=3, values.iter().map(|&value| i16::from(value)), shape)
    }

    /// The packed bytes, which must be as many as type and shape say. They are not copied: clones share them.
    pub fn to_bytes(&self) -> Result<Bytes, Error> {
        let (data, _) = self.raw()?;
        Ok(data)
    }

    /// The elements, row-major: f32 of FLOAT, FLOAT16 and BFLOAT16; i8 also of INT4 and INT2, one an element; u8 also of UINT4
    /// and UINT2, and the codes of FLOAT8 and FLOAT4; u16 also the bits of FLOAT16 and BFLOAT16; i16; i32.
    ///
    /// An error for another type, for bytes that are not as many as type and shape say, and for tensors in values or in
    /// shared memory.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        let (data, count) = self.raw()?;
        T::decode(self.data_type(), &data, count).ok_or_else(|| {
            Error::invalid(format!("the tensor is {}, which is no {}", name(self.data_type()), std::any::type_name::<T>()))
        })
    }

    /// The bytes and the number of elements.
    fn raw(&self) -> Result<(Bytes, usize), Error> {
        let data = match &self.contents {
            None => Bytes::new(),
            Some(Contents::RawData(data)) => data.clone(),
            Some(_) => return Err(Error::invalid("the tensor's elements are not in raw_data")),
        };
        let bits = DataType::try_from(self.data_type)
            .ok()
            .and_then(bits)
            .ok_or_else(|| Error::invalid(format!("data_type {} is unknown", self.data_type)))?;
        let lengths: Option<Vec<u64>> = self.shape.iter().map(|&length| u64::try_from(length).ok()).collect();
        let lengths = lengths.ok_or_else(|| Error::invalid(format!("shape {:?} has a negative length", self.shape)))?;
        let count = if lengths.contains(&0) {
            Some(0)
        } else {
            lengths.iter().try_fold(1u64, |product, &length| product.checked_mul(length))
        };
        let wanted = count.and_then(|count| count.checked_mul(bits)).map(|bits| bits.div_ceil(8));
        match (count, wanted) {
            (Some(count), Some(wanted)) if wanted == data.len() as u64 => Ok((data, count as usize)),
            _ => Err(Error::invalid(format!(
                "raw_data has {} bytes, which is not what {} of shape {:?} takes",
                data.len(),
                name(self.data_type()),
                self.shape
            ))),
        }
    }
}

/// The first element goes into the lowest bits; bits that are left over are 0.
fn pack(
    data_type: DataType,
    bits: usize,
    range: std::ops::RangeInclusive<i16>,
    values: impl ExactSizeIterator<Item = i16>,
    shape: &[i64],
) -> Result<Tensor, Error> {
    let per_byte = 8 / bits;
    let mut data = vec![0u8; values.len().div_ceil(per_byte)];
    for (index, value) in values.enumerate() {
        if !range.contains(&value) {
            return Err(Error::invalid(format!(
                "element {index} is {value}, {} holds {} to {}",
                name(data_type),
                range.start(),
                range.end()
            )));
        }
        data[index / per_byte] |= (value as u8 & ((1 << bits) - 1)) << (bits * (index % per_byte));
    }
    Ok(Tensor::from_bytes(data_type, data, shape))
}

fn unpack<T>(data: &[u8], bits: usize, count: usize, decode: impl Fn(u8) -> T) -> Option<Vec<T>> {
    let per_byte = 8 / bits;
    Some((0..count).map(|i| decode((data[i / per_byte] >> (bits * (i % per_byte))) & ((1 << bits) - 1))).collect())
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

/// Elements of as many bytes as T has.
macro_rules! of_bytes {
    ($type:ty, $data:expr) => {
        $data.chunks_exact(size_of::<$type>()).map(|bytes| <$type>::from_le_bytes(bytes.try_into().unwrap_or_default()))
    };
}

impl Element for f32 {
    const DATA_TYPE: DataType = DataType::Float;
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
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], _: usize) -> Option<Vec<i32>> {
        (data_type == DataType::Int32).then(|| of_bytes!(i32, data).collect())
    }
}

impl Element for i16 {
    const DATA_TYPE: DataType = DataType::Int16;
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], _: usize) -> Option<Vec<i16>> {
        (data_type == DataType::Int16).then(|| of_bytes!(i16, data).collect())
    }
}

impl Element for u16 {
    const DATA_TYPE: DataType = DataType::Uint16;
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], _: usize) -> Option<Vec<u16>> {
        matches!(data_type, DataType::Uint16 | DataType::Float16 | DataType::Bfloat16).then(|| of_bytes!(u16, data).collect())
    }
}

impl Element for i8 {
    const DATA_TYPE: DataType = DataType::Int8;
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], count: usize) -> Option<Vec<i8>> {
        match data_type {
            DataType::Int8 => Some(of_bytes!(i8, data).collect()),
            DataType::Int4 => unpack(data, 4, count, |code| (code << 4) as i8 >> 4),
            DataType::Int2 => unpack(data, 2, count, |code| (code << 6) as i8 >> 6),
            _ => None,
        }
    }
}

impl Element for u8 {
    const DATA_TYPE: DataType = DataType::Uint8;
    little_endian!();

    fn decode(data_type: DataType, data: &[u8], count: usize) -> Option<Vec<u8>> {
        match data_type {
            DataType::Uint4 | DataType::Float4e2m1 => unpack(data, 4, count, |code| code),
            DataType::Uint2 => unpack(data, 2, count, |code| code),
            DataType::Uint8
            | DataType::Float8e4m3fn
            | DataType::Float8e4m3fnuz
            | DataType::Float8e5m2
            | DataType::Float8e5m2fnuz
            | DataType::Float8e8m0 => Some(data.to_vec()),
            _ => None,
        }
    }
}
