package quantd

import (
	"fmt"
	"strings"

	"example.com/quantd/client/go/quantdv1"
)

// FromInt4s packs values of -8 to 7, two a byte, into an INT4 tensor.
func FromInt4s(values []int8, shape ...int64) (*quantdv1.Tensor, error) {
	return pack(quantdv1.DataType_DATA_TYPE_INT4, values, 4, -8, 7, shape)
}

// FromUint4s packs values of 0 to 15, two a byte, into a UINT4 tensor.
func FromUint4s(values []uint8, shape ...int64) (*quantdv1.Tensor, error) {
	return pack(quantdv1.DataType_DATA_TYPE_UINT4, values, 4, 0, 15, shape)
}

// FromInt2s packs values of -2 to 1, four a byte, into an INT2 tensor.
func FromInt2s(values []int8, shape ...int64) (*quantdv1.Tensor, error) {
	return pack(quantdv1.DataType_DATA_TYPE_INT2, values, 2, -2, 1, shape)
}

// FromUint2s packs values of 0 to 3, four a byte, into a UINT2 tensor.
func FromUint2s(values []uint8, shape ...int64) (*quantdv1.Tensor, error) {
	return pack(quantdv1.DataType_DATA_TYPE_UINT2, values, 2, 0, 3, shape)
}

// pack puts the first element into the lowest bits; a tensor's last byte may have bits to spare, which are 0.
func pack[T int8 | uint8](dataType quantdv1.DataType, values []T, bits, lowest, highest int, shape []int64) (*quantdv1.Tensor, error) {
	perByte := 8 / bits
	data := make([]byte, (len(values)+perByte-1)/perByte)
	for i, value := range values {
		if int(value) < lowest || int(value) > highest {
			return nil, fmt.Errorf("quantd: element %d is %d, %s holds %d to %d", i, value, typeName(dataType), lowest, highest)
		}
		data[i/perByte] |= byte(value) & (1<<bits - 1) << (bits * (i % perByte))
	}
	return FromBytes(dataType, data, shape...), nil
}

func unpack[T any](tensor *quantdv1.Tensor, bits int, decode func(uint8) T) ([]T, error) {
	data, count, err := rawData(tensor, bits)
	if err != nil {
		return nil, err
	}
	perByte := 8 / bits
	values := make([]T, count)
	for i := range values {
		values[i] = decode(data[i/perByte] >> (bits * (i % perByte)) & (1<<bits - 1))
	}
	return values, nil
}

func typeName(dataType quantdv1.DataType) string {
	return strings.TrimPrefix(dataType.String(), "DATA_TYPE_")
}
