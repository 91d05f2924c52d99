package quantd

import (
	"encoding/binary"
	"fmt"
	"math"

	"example.com/quantd/client/go/quantdv1"
)

// The functions From... make a tensor of a row-major slice and the length of each dimension, outermost first; without dimensions
// it is a 0-D tensor of one element. The elements are copied. If the shape does not match the slice, the server refuses it:
// INVALID_ARGUMENT, with both numbers.

// FromFloat32s makes a FLOAT tensor.
func FromFloat32s(values []float32, shape ...int64) *quantdv1.Tensor {
	data := make([]byte, 4*len(values))
	for i, value := range values {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(value))
	}
	return FromBytes(quantdv1.DataType_DATA_TYPE_FLOAT, data, shape...)
}

// FromInt32s makes an INT32 tensor.
func FromInt32s(values []int32, shape ...int64) *quantdv1.Tensor {
	data := make([]byte, 4*len(values))
	for i, value := range values {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(value))
	}
	return FromBytes(quantdv1.DataType_DATA_TYPE_INT32, data, shape...)
}

// FromInt16s makes an INT16 tensor.
func FromInt16s(values []int16, shape ...int64) *quantdv1.Tensor {
	data := make([]byte, 2*len(values))
	for i, value := range values {
		binary.LittleEndian.PutUint16(data[2*i:], uint16(value))
	}
	return FromBytes(quantdv1.DataType_DATA_TYPE_INT16, data, shape...)
}

// FromUint16s makes a UINT16 tensor.
func FromUint16s(values []uint16, shape ...int64) *quantdv1.Tensor {
	data := make([]byte, 2*len(values))
	for i, value := range values {
		binary.LittleEndian.PutUint16(data[2*i:], value)
	}
	return FromBytes(quantdv1.DataType_DATA_TYPE_UINT16, data, shape...)
}

// FromInt8s makes an INT8 tensor.
func FromInt8s(values []int8, shape ...int64) *quantdv1.Tensor {
	data := make([]byte, len(values))
	for i, value := range values {
		data[i] = byte(value)
	}
	return FromBytes(quantdv1.DataType_DATA_TYPE_INT8, data, shape...)
}

// FromUint8s makes a UINT8 tensor.
func FromUint8s(values []uint8, shape ...int64) *quantdv1.Tensor {
	return FromBytes(quantdv1.DataType_DATA_TYPE_UINT8, append([]byte(nil), values...), shape...)
}

// FromBytes makes a tensor of any type from its packed little-endian bytes, as quantdv1.DataType describes them. They are not copied.
func FromBytes(dataType quantdv1.DataType, data []byte, shape ...int64) *quantdv1.Tensor {
	return &quantdv1.Tensor{DataType: dataType, Shape: shape, Contents: &quantdv1.Tensor_RawData{RawData: data}}
}

// The functions below return a tensor's elements as a new row-major slice. They fail for other types, for a wrong number of bytes, and for
// tensors in values or in shared memory (TENSOR_ENCODING_RAW, the default, is in bytes).

// Float32s accepts FLOAT, and, without loss, FLOAT16 and BFLOAT16.
func Float32s(tensor *quantdv1.Tensor) ([]float32, error) {
	switch tensor.GetDataType() {
	case quantdv1.DataType_DATA_TYPE_FLOAT:
		return elements(tensor, func(data []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(data)) })
	case quantdv1.DataType_DATA_TYPE_FLOAT16:
		return elements(tensor, func(data []byte) float32 { return fromFloat16(binary.LittleEndian.Uint16(data)) })
	case quantdv1.DataType_DATA_TYPE_BFLOAT16:
		return elements(tensor, func(data []byte) float32 { return math.Float32frombits(uint32(binary.LittleEndian.Uint16(data)) << 16) })
	}
	return nil, wrongType(tensor, "FLOAT, FLOAT16 or BFLOAT16")
}

// Int32s accepts INT32.
func Int32s(tensor *quantdv1.Tensor) ([]int32, error) {
	if tensor.GetDataType() != quantdv1.DataType_DATA_TYPE_INT32 {
		return nil, wrongType(tensor, "INT32")
	}
	return elements(tensor, func(data []byte) int32 { return int32(binary.LittleEndian.Uint32(data)) })
}

// Int16s accepts INT16.
func Int16s(tensor *quantdv1.Tensor) ([]int16, error) {
	if tensor.GetDataType() != quantdv1.DataType_DATA_TYPE_INT16 {
		return nil, wrongType(tensor, "INT16")
	}
	return elements(tensor, func(data []byte) int16 { return int16(binary.LittleEndian.Uint16(data)) })
}

// Uint16s accepts UINT16, and the bits of FLOAT16 and BFLOAT16.
func Uint16s(tensor *quantdv1.Tensor) ([]uint16, error) {
	switch tensor.GetDataType() {
	case quantdv1.DataType_DATA_TYPE_UINT16, quantdv1.DataType_DATA_TYPE_FLOAT16, quantdv1.DataType_DATA_TYPE_BFLOAT16:
		return elements(tensor, binary.LittleEndian.Uint16)
	}
	return nil, wrongType(tensor, "UINT16, FLOAT16 or BFLOAT16")
}

// Int8s accepts INT8, and INT4 and INT2, which it unpacks to one int8 per element.
func Int8s(tensor *quantdv1.Tensor) ([]int8, error) {
	return unpack[int8](tensor, "INT8, INT4 or INT2", signedInteger)
}

// Uint8s accepts UINT8, and UINT4 and UINT2, which it unpacks to one uint8 per element, and the codes of floating-point types of at most 8
// bits: FLOAT8, FLOAT6 and FLOAT4E2M1, unpacked as well.
func Uint8s(tensor *quantdv1.Tensor) ([]uint8, error) {
	return unpack[uint8](tensor, "UINT8, UINT4, UINT2, FLOAT8, FLOAT6 or FLOAT4E2M1", unsignedInteger, floatingPoint)
}

// wrongType names the function that accepts the tensor, if there is one.
func wrongType(tensor *quantdv1.Tensor, wanted string) error {
	element, err := elementTypeOf(tensor.GetDataType())
	hint := ""
	switch {
	case err != nil:
		return fmt.Errorf("quantd: the tensor is %s, not %s", typeName(tensor.GetDataType()), wanted)
	case element.code(signedInteger):
		hint = "Int8s"
	case element.code(unsignedInteger, floatingPoint):
		hint = "Uint8s"
	case element.kind == floatingPoint:
		hint = "Float32s"
	case element.kind == unsignedInteger:
		hint = "Uint16s"
	case element.bits == 16:
		hint = "Int16s"
	default:
		hint = "Int32s"
	}
	return fmt.Errorf("quantd: the tensor is %s, not %s; %s takes it", typeName(tensor.GetDataType()), wanted, hint)
}

func elements[T any](tensor *quantdv1.Tensor, decode func([]byte) T) ([]T, error) {
	data, count, element, err := rawData(tensor)
	if err != nil {
		return nil, err
	}
	size := int(element.bits / 8)
	values := make([]T, count)
	for i := range values {
		values[i] = decode(data[i*size : (i+1)*size])
	}
	return values, nil
}

// rawData returns a tensor's bytes, the number of its elements, and their type.
func rawData(tensor *quantdv1.Tensor) ([]byte, int, elementType, error) {
	fail := func(format string, arguments ...any) ([]byte, int, elementType, error) {
		return nil, 0, elementType{}, fmt.Errorf("quantd: "+format, arguments...)
	}
	element, err := elementTypeOf(tensor.GetDataType())
	if err != nil {
		return nil, 0, element, err
	}
	data := tensor.GetRawData()
	switch tensor.GetContents().(type) {
	case nil, *quantdv1.Tensor_RawData:
	default:
		return fail("the tensor's elements are not in raw_data but in %T", tensor.GetContents())
	}
	// At most as many as the bytes can hold, so that a product that would overflow is noticed before.
	most := int64(len(data)) * 8 / element.bits
	count, empty := int64(1), false
	for _, length := range tensor.GetShape() {
		if length < 0 {
			return fail("shape %v has a negative length", tensor.GetShape())
		}
		empty = empty || length == 0
	}
	for _, length := range tensor.GetShape() {
		if empty {
			count = 0
		} else if count > most/length {
			return fail("raw_data has %d bytes, too few for shape %v", len(data), tensor.GetShape())
		} else {
			count *= length
		}
	}
	if wanted := element.bytesOf(count); int64(len(data)) != wanted {
		return fail("raw_data has %d bytes, shape %v of %s needs %d", len(data), tensor.GetShape(), typeName(tensor.GetDataType()), wanted)
	}
	// If int has 32 bits, a packed tensor may have more elements than a slice.
	if int64(int(count)) != count {
		return fail("the %d elements of shape %v do not fit into a slice here", count, tensor.GetShape())
	}
	return data, int(count), element, nil
}

func fromFloat16(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15)<<31, uint32(bits>>10)&31, uint32(bits)&1023
	switch exponent {
	case 0:
		value := float32(fraction) * 0x1p-24
		return math.Float32frombits(math.Float32bits(value) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
