package quantd

import (
	"encoding/binary"
	"fmt"
	"math"

	"example.com/quantd/client/go/quantdv1"
)

// The functions From... make a tensor of a row-major slice and the length of each dimension, outermost first; no dimension is
// a 0-D tensor of one element. The elements are copied. A shape that does not go with the slice is the server's to refuse:
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

// FromBytes makes a tensor of any type from its packed little-endian bytes, as quantdv1.DataType describes them. They are
// not copied.
func FromBytes(dataType quantdv1.DataType, data []byte, shape ...int64) *quantdv1.Tensor {
	return &quantdv1.Tensor{DataType: dataType, Shape: shape, Contents: &quantdv1.Tensor_RawData{RawData: data}}
}

// The functions below return a tensor's elements as a new row-major slice. They fail where the type is another one, where
// the number of bytes is not what type and shape say, and for tensors in values or in shared memory (TENSOR_ENCODING_RAW, the
// default, is in bytes).

// Float32s takes FLOAT, and, without loss, FLOAT16 and BFLOAT16.
func Float32s(tensor *quantdv1.Tensor) ([]float32, error) {
	size, decode := 2, func(data []byte) float32 { return math.Float32frombits(uint32(binary.LittleEndian.Uint16(data)) << 16) }
	switch tensor.GetDataType() {
	case quantdv1.DataType_DATA_TYPE_FLOAT:
		size, decode = 4, func(data []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(data)) }
	case quantdv1.DataType_DATA_TYPE_FLOAT16:
		decode = func(data []byte) float32 { return fromFloat16(binary.LittleEndian.Uint16(data)) }
	case quantdv1.DataType_DATA_TYPE_BFLOAT16:
	default:
		return nil, wrongType(tensor, "FLOAT, FLOAT16 or BFLOAT16")
	}
	return elements(tensor, size, decode)
}

// Int32s takes INT32.
func Int32s(tensor *quantdv1.Tensor) ([]int32, error) {
	if tensor.GetDataType() != quantdv1.DataType_DATA_TYPE_INT32 {
		return nil, wrongType(tensor, "INT32")
	}
	return elements(tensor, 4, func(data []byte) int32 { return int32(binary.LittleEndian.Uint32(data)) })
}

// Int16s takes INT16.
func Int16s(tensor *quantdv1.Tensor) ([]int16, error) {
	if tensor.GetDataType() != quantdv1.DataType_DATA_TYPE_INT16 {
		return nil, wrongType(tensor, "INT16")
	}
	return elements(tensor, 2, func(data []byte) int16 { return int16(binary.LittleEndian.Uint16(data)) })
}

// Uint16s takes UINT16, and the bits of FLOAT16 and BFLOAT16.
func Uint16s(tensor *quantdv1.Tensor) ([]uint16, error) {
	switch tensor.GetDataType() {
	case quantdv1.DataType_DATA_TYPE_UINT16, quantdv1.DataType_DATA_TYPE_FLOAT16, quantdv1.DataType_DATA_TYPE_BFLOAT16:
		return elements(tensor, 2, binary.LittleEndian.Uint16)
	}
	return nil, wrongType(tensor, "UINT16, FLOAT16 or BFLOAT16")
}

// Int8s takes INT8, and INT4 and INT2, which it unpacks to one element each.
func Int8s(tensor *quantdv1.Tensor) ([]int8, error) {
	switch tensor.GetDataType() {
	case quantdv1.DataType_DATA_TYPE_INT8:
		return elements(tensor, 1, func(data []byte) int8 { return int8(data[0]) })
	case quantdv1.DataType_DATA_TYPE_INT4:
		return unpack(tensor, 4, func(code uint8) int8 { return int8(code<<4) >> 4 })
	case quantdv1.DataType_DATA_TYPE_INT2:
		return unpack(tensor, 2, func(code uint8) int8 { return int8(code<<6) >> 6 })
	}
	return nil, wrongType(tensor, "INT8, INT4 or INT2")
}

// Uint8s takes UINT8, and UINT4, UINT2 and the codes of FLOAT4E2M1, which it unpacks to one element each, and the codes of
// the FLOAT8 types.
func Uint8s(tensor *quantdv1.Tensor) ([]uint8, error) {
	switch tensor.GetDataType() {
	case quantdv1.DataType_DATA_TYPE_UINT8, quantdv1.DataType_DATA_TYPE_FLOAT8E4M3FN, quantdv1.DataType_DATA_TYPE_FLOAT8E4M3FNUZ,
		quantdv1.DataType_DATA_TYPE_FLOAT8E5M2, quantdv1.DataType_DATA_TYPE_FLOAT8E5M2FNUZ, quantdv1.DataType_DATA_TYPE_FLOAT8E8M0:
		return elements(tensor, 1, func(data []byte) uint8 { return data[0] })
	case quantdv1.DataType_DATA_TYPE_UINT4, quantdv1.DataType_DATA_TYPE_FLOAT4E2M1:
		return unpack(tensor, 4, func(code uint8) uint8 { return code })
	case quantdv1.DataType_DATA_TYPE_UINT2:
		return unpack(tensor, 2, func(code uint8) uint8 { return code })
	}
	return nil, wrongType(tensor, "UINT8, UINT4, UINT2, FLOAT8 or FLOAT4E2M1")
}

func wrongType(tensor *quantdv1.Tensor, wanted string) error {
	return fmt.Errorf("quantd: the tensor is %s, not %s", typeName(tensor.GetDataType()), wanted)
}

func elements[T any](tensor *quantdv1.Tensor, size int, decode func([]byte) T) ([]T, error) {
	data, count, err := rawData(tensor, 8*size)
	if err != nil {
		return nil, err
	}
	values := make([]T, count)
	for i := range values {
		values[i] = decode(data[i*size : (i+1)*size])
	}
	return values, nil
}

// rawData is a tensor's bytes and the number of its elements, of so many bits each.
func rawData(tensor *quantdv1.Tensor, bits int) ([]byte, int, error) {
	data := tensor.GetRawData()
	switch tensor.GetContents().(type) {
	case nil, *quantdv1.Tensor_RawData:
	default:
		return nil, 0, fmt.Errorf("quantd: the tensor's elements are not in raw_data but in %T", tensor.GetContents())
	}
	// No more than the bytes hold: a product that would overflow is seen before it does.
	most := int64(len(data)) * 8 / int64(bits)
	count, empty := int64(1), false
	for _, length := range tensor.GetShape() {
		if length < 0 {
			return nil, 0, fmt.Errorf("quantd: shape %v has a negative length", tensor.GetShape())
		}
		empty = empty || length == 0
	}
	for _, length := range tensor.GetShape() {
		if empty {
			count = 0
		} else if count > most/length {
			return nil, 0, fmt.Errorf("quantd: raw_data has %d bytes, too few for shape %v", len(data), tensor.GetShape())
		} else {
			count *= length
		}
	}
	if wanted := (count*int64(bits) + 7) / 8; int64(len(data)) != wanted {
		return nil, 0, fmt.Errorf("quantd: raw_data has %d bytes, shape %v of %s needs %d", len(data), tensor.GetShape(),
			typeName(tensor.GetDataType()), wanted)
	}
	return data, int(count), nil
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
