// Package quantd has what a Go program needs beside the generated client, quantdv1: the options of its connection, and tensors of
// slices.
//
//	connection, err := grpc.Dial("127.0.0.1:50051", append(quantd.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
//	client := quantdv1.NewQuantizationServiceClient(connection)
package quantd

//go:generate ./generate.sh quantdv1

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/health" // a service config with healthCheckConfig works only with it
	"google.golang.org/grpc/keepalive"

	"example.com/quantd/client/go/quantdv1"
)

// ServiceConfig is deploy/service_config.json: round robin over all servers of a name whose health is SERVING, and up to five
// attempts of a call that fails with UNAVAILABLE.
//
//go:embed service_config.json
var ServiceConfig string

// DialOptions are the options that a connection to quantd needs. Options that follow them override them.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultServiceConfig(ServiceConfig),
		grpc.WithDefaultCallOptions(
			// The server has the limit (--max_message_bytes); gRPC's own, 4 MiB, is below many tensors.
			grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32),
			// Larger messages are not tried again; gRPC's default is 256 KiB.
			grpc.MaxRetryRPCBufferSize(math.MaxInt32)),
		// Only while a call is in flight: otherwise a lost server is noticed only when TCP gives up, after minutes.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	}
}

// elementType describes the elements of a data type. Element i of a tensor is in the bits bits*i to bits*(i+1)-1 of raw_data, read
// as one little-endian bit string.
type elementType struct {
	bits   int64
	signed bool
}

// A test compares this table with the contract: it fails if a data type is missing here.
var elementTypes = map[quantdv1.DataType]elementType{
	quantdv1.DataType_DATA_TYPE_FLOAT:          {32, false},
	quantdv1.DataType_DATA_TYPE_UINT8:          {8, false},
	quantdv1.DataType_DATA_TYPE_INT8:           {8, true},
	quantdv1.DataType_DATA_TYPE_UINT16:         {16, false},
	quantdv1.DataType_DATA_TYPE_INT16:          {16, true},
	quantdv1.DataType_DATA_TYPE_INT32:          {32, true},
	quantdv1.DataType_DATA_TYPE_FLOAT16:        {16, false},
	quantdv1.DataType_DATA_TYPE_BFLOAT16:       {16, false},
	quantdv1.DataType_DATA_TYPE_FLOAT8E4M3FN:   {8, false},
	quantdv1.DataType_DATA_TYPE_FLOAT8E4M3FNUZ: {8, false},
	quantdv1.DataType_DATA_TYPE_FLOAT8E5M2:     {8, false},
	quantdv1.DataType_DATA_TYPE_FLOAT8E5M2FNUZ: {8, false},
	quantdv1.DataType_DATA_TYPE_UINT4:          {4, false},
	quantdv1.DataType_DATA_TYPE_INT4:           {4, true},
	quantdv1.DataType_DATA_TYPE_FLOAT4E2M1:     {4, false},
	quantdv1.DataType_DATA_TYPE_FLOAT8E8M0:     {8, false},
	quantdv1.DataType_DATA_TYPE_UINT2:          {2, false},
	quantdv1.DataType_DATA_TYPE_INT2:           {2, true},
	quantdv1.DataType_DATA_TYPE_FLOAT6E2M3:     {6, false},
	quantdv1.DataType_DATA_TYPE_FLOAT6E3M2:     {6, false},
}

// bytesOf is the number of bytes of this many elements; the last byte may have unused bits.
func (e elementType) bytesOf(count int64) int64 { return count/8*e.bits + (count%8*e.bits+7)/8 }

// integers returns the least and the greatest integer, or code, that an element holds.
func (e elementType) integers() (least, most int64) {
	if e.signed {
		return -1 << (e.bits - 1), 1<<(e.bits-1) - 1
	}
	return 0, 1<<e.bits - 1
}

// FromBytes makes a tensor of packed little-endian bytes, as quantdv1.DataType describes them. They are not copied. The shape is
// the length of each dimension, outermost first; without one it is a 0-D tensor of one element. A shape that does not match is the
// server's to refuse: INVALID_ARGUMENT, with both numbers.
func FromBytes(dataType quantdv1.DataType, data []byte, shape ...int64) *quantdv1.Tensor {
	return &quantdv1.Tensor{DataType: dataType, Shape: shape, Contents: &quantdv1.Tensor_RawData{RawData: data}}
}

// FromFloat32s makes a FLOAT tensor of a row-major slice, which is copied.
func FromFloat32s(values []float32, shape ...int64) *quantdv1.Tensor {
	data := make([]byte, 4*len(values))
	for i, value := range values {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(value))
	}
	return FromBytes(quantdv1.DataType_DATA_TYPE_FLOAT, data, shape...)
}

// Float32s returns the elements of a FLOAT tensor as a new slice.
func Float32s(tensor *quantdv1.Tensor) ([]float32, error) {
	if tensor.GetDataType() != quantdv1.DataType_DATA_TYPE_FLOAT {
		return nil, fmt.Errorf("quantd: data_type is %s, not FLOAT: Unpack", typeName(tensor.GetDataType()))
	}
	data, count, _, err := rawData(tensor)
	if err != nil {
		return nil, err
	}
	values := make([]float32, count)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values, nil
}

// Integer is a type of the slices of Pack and Unpack.
type Integer interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64
}

// Pack makes a tensor of integers, or of the codes of a floating-point type (the bits of an element, not its value): one per
// element of the row-major slice, whatever the width of the type.
func Pack[T Integer](dataType quantdv1.DataType, values []T, shape ...int64) (*quantdv1.Tensor, error) {
	element, known := elementTypes[dataType]
	if !known {
		return nil, fmt.Errorf("quantd: data_type %s has no elements that this client knows", typeName(dataType))
	}
	least, most := element.integers()
	data := make([]byte, element.bytesOf(int64(len(values))))
	for i, value := range values {
		if int64(value) < least || int64(value) > most {
			return nil, fmt.Errorf("quantd: element %d is %d, %s holds %d to %d", i, value, typeName(dataType), least, most)
		}
		at := int64(i) * element.bits
		// An element of 6 bits may go on in the next byte; the first element is in the lowest bits.
		code := (uint64(value) & (1<<element.bits - 1)) << (at % 8)
		for at /= 8; code != 0; at, code = at+1, code>>8 {
			data[at] |= byte(code)
		}
	}
	return FromBytes(dataType, data, shape...), nil
}

// Unpack returns the elements of an integer tensor, or the codes of a floating-point one, as a new slice: Unpack[int8](answer.Y). It
// fails if T does not hold every element of the type.
func Unpack[T Integer](tensor *quantdv1.Tensor) ([]T, error) {
	data, count, element, err := rawData(tensor)
	if err != nil {
		return nil, err
	}
	least, most := element.integers()
	if int64(T(least)) != least || int64(T(most)) != most {
		return nil, fmt.Errorf("quantd: data_type is %s, whose elements are %d to %d: a slice of %T does not hold them",
			typeName(tensor.GetDataType()), least, most, T(0))
	}
	values := make([]T, count)
	for i := range values {
		at := int64(i) * element.bits
		shift, code := at%8, uint64(0)
		for read := int64(0); read < shift+element.bits; read += 8 {
			code |= uint64(data[(at+read)/8]) << read
		}
		// Shifting up to the highest bit and back repeats the sign or fills with 0.
		code = code >> shift << (64 - element.bits)
		if element.signed {
			values[i] = T(int64(code) >> (64 - element.bits))
		} else {
			values[i] = T(code >> (64 - element.bits))
		}
	}
	return values, nil
}

// rawData returns a tensor's bytes, the number of its elements, and their type.
func rawData(tensor *quantdv1.Tensor) (data []byte, count int64, element elementType, err error) {
	element, known := elementTypes[tensor.GetDataType()]
	if !known {
		return nil, 0, element, fmt.Errorf("quantd: data_type %s has no elements that this client knows", typeName(tensor.GetDataType()))
	}
	data = tensor.GetRawData()
	if _, raw := tensor.GetContents().(*quantdv1.Tensor_RawData); !raw && tensor.GetContents() != nil {
		return nil, 0, element, fmt.Errorf("quantd: the tensor's elements are not in raw_data but in %T", tensor.GetContents())
	}
	// At most as many as the bytes can hold, so that a product that would overflow is noticed before.
	most := int64(len(data)) * 8 / element.bits
	count = 1
	empty, fits := false, true
	for _, length := range tensor.GetShape() {
		if length < 0 {
			return nil, 0, element, fmt.Errorf("quantd: shape %v has a negative length", tensor.GetShape())
		}
		empty = empty || length == 0
		if length > 0 && fits {
			fits = count <= most/length
			count *= length
		}
	}
	if empty {
		count, fits = 0, true
	}
	if !fits || int64(len(data)) != element.bytesOf(count) {
		return nil, 0, element, fmt.Errorf("quantd: raw_data has %d bytes, not those of %s of shape %v", len(data),
			typeName(tensor.GetDataType()), tensor.GetShape())
	}
	return data, count, element, nil
}

func typeName(dataType quantdv1.DataType) string {
	return strings.TrimPrefix(dataType.String(), "DATA_TYPE_")
}
