package quantd

import (
	"fmt"
	"strings"

	"example.com/quantd/client/go/quantdv1"
)

type kind int

const (
	signedInteger kind = iota + 1
	unsignedInteger
	floatingPoint
)

// elementType describes the elements of a data type. Element i of a tensor is in the bits bits*i to bits*(i+1)-1 of raw_data, read
// as one little-endian bit string, whether bits is a multiple of 8, a divisor of it or, as 6 is, neither. The sizes of tensors,
// the ranges of values, packing and unpacking follow from this description alone.
type elementType struct {
	bits int64
	kind kind
}

// A test compares this table with the contract: it fails if a data type is missing here.
var elementTypes = map[quantdv1.DataType]elementType{
	quantdv1.DataType_DATA_TYPE_FLOAT:          {32, floatingPoint},
	quantdv1.DataType_DATA_TYPE_UINT8:          {8, unsignedInteger},
	quantdv1.DataType_DATA_TYPE_INT8:           {8, signedInteger},
	quantdv1.DataType_DATA_TYPE_UINT16:         {16, unsignedInteger},
	quantdv1.DataType_DATA_TYPE_INT16:          {16, signedInteger},
	quantdv1.DataType_DATA_TYPE_INT32:          {32, signedInteger},
	quantdv1.DataType_DATA_TYPE_FLOAT16:        {16, floatingPoint},
	quantdv1.DataType_DATA_TYPE_BFLOAT16:       {16, floatingPoint},
	quantdv1.DataType_DATA_TYPE_FLOAT8E4M3FN:   {8, floatingPoint},
	quantdv1.DataType_DATA_TYPE_FLOAT8E4M3FNUZ: {8, floatingPoint},
	quantdv1.DataType_DATA_TYPE_FLOAT8E5M2:     {8, floatingPoint},
	quantdv1.DataType_DATA_TYPE_FLOAT8E5M2FNUZ: {8, floatingPoint},
	quantdv1.DataType_DATA_TYPE_UINT4:          {4, unsignedInteger},
	quantdv1.DataType_DATA_TYPE_INT4:           {4, signedInteger},
	quantdv1.DataType_DATA_TYPE_FLOAT4E2M1:     {4, floatingPoint},
	quantdv1.DataType_DATA_TYPE_FLOAT8E8M0:     {8, floatingPoint},
	quantdv1.DataType_DATA_TYPE_UINT2:          {2, unsignedInteger},
	quantdv1.DataType_DATA_TYPE_INT2:           {2, signedInteger},
	quantdv1.DataType_DATA_TYPE_FLOAT6E2M3:     {6, floatingPoint},
	quantdv1.DataType_DATA_TYPE_FLOAT6E3M2:     {6, floatingPoint},
}

// elementTypeOf fails for DATA_TYPE_UNSPECIFIED and for numbers that this client does not know.
func elementTypeOf(dataType quantdv1.DataType) (elementType, error) {
	element, known := elementTypes[dataType]
	if !known {
		return element, fmt.Errorf("quantd: data_type %s has no elements that this client knows", typeName(dataType))
	}
	return element, nil
}

// bytesOf is the number of bytes of this many elements; the last byte may have unused bits.
func (element elementType) bytesOf(count int64) int64 {
	return count/8*element.bits + (count%8*element.bits+7)/8
}

// code tells whether an element is a code of at most 8 bits of the given kinds, so that a byte can hold it.
func (element elementType) code(kinds ...kind) bool {
	for _, kind := range kinds {
		if element.kind == kind {
			return element.bits <= 8
		}
	}
	return false
}

// integers returns the least and the greatest code, as integers of the element's width.
func (element elementType) integers() (least, most int) {
	if element.kind == signedInteger {
		return -1 << (element.bits - 1), 1<<(element.bits-1) - 1
	}
	return 0, 1<<element.bits - 1
}

func typeName(dataType quantdv1.DataType) string {
	return strings.TrimPrefix(dataType.String(), "DATA_TYPE_")
}
