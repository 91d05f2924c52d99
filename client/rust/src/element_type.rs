//! Describes the elements of data types.

use crate::v1::DataType;

/// How an element's bits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    SignedInteger,
    UnsignedInteger,
    FloatingPoint,
}

/// Element i of a tensor is in the bits `bits * i` to `bits * (i + 1) - 1` of its bytes, read as one little-endian bit string,
/// whether `bits` is a multiple of 8, a divisor of it or, as 6 is, neither. Sizes, ranges, packing and unpacking follow from this
/// description alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementType {
    pub bits: u32,
    pub kind: Kind,
}

impl ElementType {
    /// None for a type without elements. It has no default, so that a missing type does not compile.
    pub fn of(data_type: DataType) -> Option<ElementType> {
        use Kind::{FloatingPoint, SignedInteger, UnsignedInteger};
        let (bits, kind) = match data_type {
            DataType::Unspecified => return None,
            DataType::Float => (32, FloatingPoint),
            DataType::Float16 | DataType::Bfloat16 => (16, FloatingPoint),
            DataType::Float8e4m3fn
            | DataType::Float8e4m3fnuz
            | DataType::Float8e5m2
            | DataType::Float8e5m2fnuz
            | DataType::Float8e8m0 => (8, FloatingPoint),
            DataType::Float6e2m3 | DataType::Float6e3m2 => (6, FloatingPoint),
            DataType::Float4e2m1 => (4, FloatingPoint),
            DataType::Int32 => (32, SignedInteger),
            DataType::Int16 => (16, SignedInteger),
            DataType::Int8 => (8, SignedInteger),
            DataType::Int4 => (4, SignedInteger),
            DataType::Int2 => (2, SignedInteger),
            DataType::Uint16 => (16, UnsignedInteger),
            DataType::Uint8 => (8, UnsignedInteger),
            DataType::Uint4 => (4, UnsignedInteger),
            DataType::Uint2 => (2, UnsignedInteger),
        };
        Some(ElementType { bits, kind })
    }

    /// The number of bytes of this many elements; the last byte may have unused bits; None beyond 2^64.
    pub fn bytes(self, count: u64) -> Option<u64> {
        let bits = u64::from(self.bits);
        (count / 8).checked_mul(bits)?.checked_add((count % 8 * bits).div_ceil(8))
    }

    /// The least and the greatest integer, or code, of an element of at most 8 bits.
    pub fn range(self) -> std::ops::RangeInclusive<i16> {
        match self.kind {
            Kind::SignedInteger => -(1 << (self.bits - 1))..=(1 << (self.bits - 1)) - 1,
            Kind::UnsignedInteger | Kind::FloatingPoint => 0..=(1 << self.bits) - 1,
        }
    }

    /// Packs elements of at most 8 bits; unused bits are 0.
    pub fn pack(self, codes: impl ExactSizeIterator<Item = u8>) -> Vec<u8> {
        // At most as many bytes as elements, so the size fits.
        let mut data = vec![0u8; self.bytes(codes.len() as u64).unwrap_or_default() as usize];
        for (index, code) in codes.enumerate() {
            let (byte, shift) = self.place(index);
            let [low, high] = ((u16::from(code) & ((1 << self.bits) - 1)) << shift).to_le_bytes();
            data[byte] |= low;
            if high != 0 {
                data[byte + 1] |= high; // the element goes on in the next byte
            }
        }
        data
    }

    /// The opposite, with an element in the lowest bits of each u8. REQUIRES: as many bytes as the elements need.
    pub fn unpack(self, data: &[u8], count: usize) -> impl Iterator<Item = u8> + '_ {
        (0..count).map(move |index| {
            let (byte, shift) = self.place(index);
            // A byte past the end has no bits of the element.
            let pair = u16::from_le_bytes([data[byte], data.get(byte + 1).copied().unwrap_or_default()]);
            ((pair >> shift) & ((1 << self.bits) - 1)) as u8
        })
    }

    /// The byte in which an element begins, and the bit within it.
    fn place(self, index: usize) -> (usize, u32) {
        let bit = index as u64 * u64::from(self.bits);
        ((bit / 8) as usize, (bit % 8) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number in the contract.
    fn data_types() -> impl Iterator<Item = DataType> {
        (1..=255).filter_map(|number| DataType::try_from(number).ok())
    }

    #[test]
    fn sizes_are_those_of_the_bits() {
        assert!(ElementType::of(DataType::Unspecified).is_none());
        assert!(data_types().count() >= 18);
        for data_type in data_types() {
            let element = ElementType::of(data_type).unwrap();
            for count in 0..20 {
                assert_eq!(element.bytes(count), Some((count * u64::from(element.bits)).div_ceil(8)), "{data_type:?}");
            }
            assert_eq!(element.bytes(1 << 58), Some((1 << 55) * u64::from(element.bits)), "{data_type:?}");
        }
        assert_eq!(ElementType { bits: 16, kind: Kind::SignedInteger }.bytes(u64::MAX), None);
    }

    /// For every type, and for widths that no type has yet: what is packed can be unpacked, and no element changes another.
    #[test]
    fn elements_do_not_touch_their_neighbours() {
        for bits in 1..=8 {
            let element = ElementType { bits, kind: Kind::UnsignedInteger };
            let most = *element.range().end() as u8;
            for at in 0..17 {
                let codes: Vec<u8> = (0..17).map(|index| if index == at { most } else { 0 }).collect();
                let data = element.pack(codes.iter().copied());
                assert_eq!(data.iter().map(|byte| byte.count_ones()).sum::<u32>(), bits, "{bits} bits, element {at}");
                assert_eq!(element.unpack(&data, 17).collect::<Vec<u8>>(), codes, "{bits} bits, element {at}");
            }
        }
    }
}
