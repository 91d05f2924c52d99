package quantd

import (
	"fmt"

	"example.com/quantd/client/go/quantdv1"
)

// FromInt4s packs values of -8 to 7, two per byte, into an INT4 tensor.
func FromInt4s(values []int8, shape ...int64) (*quantdv1.Tensor, error) {
	return pack(quantdv1.DataType_DATA_TYPE_INT4, values, shape)
}

// FromUint4s packs values of 0 to 15, two per byte, into a UINT4 tensor.
func FromUint4s(values []uint8, shape ...int64) (*quantdv1.Tensor, error) {
	return pack(quantdv1.DataType_DATA_TYPE_UINT4, values, shape)
}

// FromInt2s packs values of -2 to 1, four per byte, into an INT2 tensor.
func FromInt2s(values []int8, shape ...int64) (*quantdv1.Tensor, error) {
	return pack(quantdv1.DataType_DATA_TYPE_INT2, values, shape)
}

// FromUint2s packs values of 0 to 3, four per byte, into a UINT2 tensor.
func FromUint2s(values []uint8, shape ...int64) (*quantdv1.Tensor, error) {
	return pack(quantdv1.DataType_DATA_TYPE_UINT2, values, shape)
}

// FromCodes packs the codes of a floating-point type of at most 8 bits (such as FLOAT8E4M3FN, FLOAT6E2M3, FLOAT4E2M1), one per element of
// the slice, as Uint8s returns them. A code is the bits of an element, not its value.
func FromCodes(dataType quantdv1.DataType, codes []uint8, shape ...int64) (*quantdv1.Tensor, error) {
	element, err := elementTypeOf(dataType)
	if err != nil {
		return nil, err
	}
	if !element.code(floatingPoint) {
		return nil, fmt.Errorf("quantd: FromCodes takes a floating-point type of at most 8 bits, not %s", typeName(dataType))
	}
	return pack(dataType, codes, shape)
}

// pack puts the first element into the lowest bits; unused bits of a tensor's last byte are 0.
func pack[T int8 | uint8](dataType quantdv1.DataType, values []T, shape []int64) (*quantdv1.Tensor, error) {
	element, err := elementTypeOf(dataType)
	if err != nil {
		return nil, err
	}
	least, most := element.integers()
	data := make([]byte, element.bytesOf(int64(len(values))))
	for i, value := range values {
		if int(value) < least || int(value) > most {
			return nil, fmt.Errorf("quantd: element %d is %d, %s holds %d to %d", i, value, typeName(dataType), least, most)
		}
		at := int64(i) * element.bits
		code := (uint16(value) & (1<<element.bits - 1)) << (at % 8)
		data[at/8] |= byte(code)
		if code > 0xff { // the element goes on in the next byte
			data[at/8+1] |= byte(code >> 8)
		}
	}
	return FromBytes(dataType, data, shape...), nil
}

// unpack is the opposite of pack: one T per element, of tensors whose elements are of the given kinds and have at most 8 bits.
func unpack[T int8 | uint8](tensor *quantdv1.Tensor, wanted string, kinds ...kind) ([]T, error) {
	if element, err := elementTypeOf(tensor.GetDataType()); err != nil || !element.code(kinds...) {
		return nil, wrongType(tensor, wanted)
	}
	data, count, element, err := rawData(tensor)
	if err != nil {
		return nil, err
	}
	values := make([]T, count)
	up := 8 - element.bits
	for i := range values {
		at := int64(i) * element.bits
		code := data[at/8] >> (at % 8)
		if at%8 > up { // the element goes on in the next byte
			code |= data[at/8+1] << (8 - at%8)
		}
		// Shifting up to the highest bit and back repeats the sign of an int8 and fills a uint8 with 0.
		values[i] = T(code<<up) >> up
	}
	return values, nil
}
