package quantd

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"example.com/quantd/client/go/quantdv1"
)

// The bytes of the contract, on hosts of any byte order: this file also runs on a big-endian machine.
func TestBytesAreLittleEndian(t *testing.T) {
	for name, pair := range map[string]struct {
		tensor *quantdv1.Tensor
		bytes  []byte
	}{
		"FLOAT":  {FromFloat32s([]float32{1, -2}, 2), []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
		"INT32":  {FromInt32s([]int32{1, -2}, 2), []byte{1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff}},
		"INT16":  {FromInt16s([]int16{1, -2}, 2), []byte{1, 0, 0xfe, 0xff}},
		"UINT16": {FromUint16s([]uint16{1, 0x1234}, 2), []byte{1, 0, 0x34, 0x12}},
		"INT8":   {FromInt8s([]int8{1, -2}, 2), []byte{1, 0xfe}},
		"UINT8":  {FromUint8s([]uint8{1, 254}, 2), []byte{1, 0xfe}},
	} {
		if !bytes.Equal(pair.tensor.GetRawData(), pair.bytes) || typeName(pair.tensor.DataType) != name {
			t.Errorf("%s: %v", name, pair.tensor)
		}
	}
}

func TestThereAndBack(t *testing.T) {
	floats := []float32{0, 1.5, -3.25, math.MaxFloat32, float32(math.Inf(-1)), math.SmallestNonzeroFloat32}
	if got, err := Float32s(FromFloat32s(floats, 2, 3)); err != nil || !reflect.DeepEqual(got, floats) {
		t.Error(got, err)
	}
	ints := []int32{0, math.MinInt32, math.MaxInt32}
	if got, err := Int32s(FromInt32s(ints, 3)); err != nil || !reflect.DeepEqual(got, ints) {
		t.Error(got, err)
	}
	shorts := []int16{0, math.MinInt16, math.MaxInt16}
	if got, err := Int16s(FromInt16s(shorts, 3)); err != nil || !reflect.DeepEqual(got, shorts) {
		t.Error(got, err)
	}
	words := []uint16{0, 1, math.MaxUint16}
	if got, err := Uint16s(FromUint16s(words, 3)); err != nil || !reflect.DeepEqual(got, words) {
		t.Error(got, err)
	}
	bytes := []int8{0, -128, 127}
	if got, err := Int8s(FromInt8s(bytes, 3)); err != nil || !reflect.DeepEqual(got, bytes) {
		t.Error(got, err)
	}
}

func TestPacking(t *testing.T) {
	fours, err := FromInt4s([]int8{-8, 7, -1}, 3)
	if err != nil || !bytes.Equal(fours.GetRawData(), []byte{0x78, 0x0f}) {
		t.Fatal(fours, err)
	}
	if got, err := Int8s(fours); err != nil || !reflect.DeepEqual(got, []int8{-8, 7, -1}) {
		t.Error(got, err)
	}
	twos, err := FromInt2s([]int8{-2, 1, 0, -1, 1}, 5)
	if err != nil || !bytes.Equal(twos.GetRawData(), []byte{0xc6, 0x01}) {
		t.Fatal(twos, err)
	}
	if got, err := Int8s(twos); err != nil || !reflect.DeepEqual(got, []int8{-2, 1, 0, -1, 1}) {
		t.Error(got, err)
	}
	unsigned, err := FromUint4s([]uint8{15, 0, 9}, 3)
	if err != nil || !bytes.Equal(unsigned.GetRawData(), []byte{0x0f, 0x09}) {
		t.Fatal(unsigned, err)
	}
	if got, err := Uint8s(unsigned); err != nil || !reflect.DeepEqual(got, []uint8{15, 0, 9}) {
		t.Error(got, err)
	}
	unsigned, err = FromUint2s([]uint8{3, 0, 2, 1, 3}, 5)
	if err != nil || !bytes.Equal(unsigned.GetRawData(), []byte{0x63, 0x03}) {
		t.Fatal(unsigned, err)
	}
	if got, err := Uint8s(unsigned); err != nil || !reflect.DeepEqual(got, []uint8{3, 0, 2, 1, 3}) {
		t.Error(got, err)
	}
	for _, value := range []int8{-9, 8} {
		if _, err := FromInt4s([]int8{0, value}, 2); err == nil || !strings.Contains(err.Error(), "element 1") {
			t.Errorf("%d: %v", value, err)
		}
	}
	if _, err := FromUint2s([]uint8{4}); err == nil {
		t.Error("4 fits into two bits")
	}
}

// The table of elements is complete: it has every data type, with sizes that do not overflow.
func TestEveryDataTypeIsDescribed(t *testing.T) {
	for number, name := range quantdv1.DataType_name {
		element, err := elementTypeOf(quantdv1.DataType(number))
		if number == 0 {
			if err == nil {
				t.Errorf("%s: %v", name, element)
			}
			continue
		}
		if err != nil || element.bits < 1 || element.kind == 0 {
			t.Errorf("%s: %v (%v)", name, element, err)
			continue
		}
		for count := int64(0); count < 20; count++ {
			if got, want := element.bytesOf(count), (count*element.bits+7)/8; got != want {
				t.Errorf("%d of %s: %d bytes, not %d", count, name, got, want)
			}
		}
		if got, want := element.bytesOf(1<<58), int64(1)<<55*element.bits; got != want {
			t.Errorf("2^58 of %s: %d bytes, not %d", name, got, want)
		}
	}
	if _, err := elementTypeOf(99); err == nil || !strings.Contains(err.Error(), "99") {
		t.Error(err)
	}
}

func TestCodes(t *testing.T) {
	fours, err := FromCodes(quantdv1.DataType_DATA_TYPE_FLOAT4E2M1, []uint8{1, 8, 15}, 3)
	if err != nil || !bytes.Equal(fours.GetRawData(), []byte{0x81, 0x0f}) {
		t.Fatal(fours, err)
	}
	if got, err := Uint8s(fours); err != nil || !reflect.DeepEqual(got, []uint8{1, 8, 15}) {
		t.Error(got, err)
	}
	// Codes and bytes computed by hand from the OCP Microscaling specification and ONNX's order of bits.
	for _, float6 := range []struct {
		dataType quantdv1.DataType
		codes    []uint8
		bytes    []byte
	}{
		// 1, -1.5, 7.5, -0.125, -7.5
		{quantdv1.DataType_DATA_TYPE_FLOAT6E2M3, []uint8{8, 44, 31, 33, 63}, []byte{0x08, 0xfb, 0x85, 0x3f}},
		// 1, 28, -0.0625, 0.25, -3, -28, 0.0625
		{quantdv1.DataType_DATA_TYPE_FLOAT6E3M2, []uint8{12, 31, 33, 4, 50, 63, 1}, []byte{0xcc, 0x17, 0x12, 0xf2, 0x1f, 0x00}},
	} {
		for count := range float6.codes {
			codes := float6.codes[:count+1]
			tensor, err := FromCodes(float6.dataType, codes, int64(len(codes)))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := Uint8s(tensor); err != nil || !reflect.DeepEqual(got, codes) {
				t.Errorf("%s: %v (%v), not %v", float6.dataType, got, err, codes)
			}
			if count+1 == len(float6.codes) && !bytes.Equal(tensor.GetRawData(), float6.bytes) {
				t.Errorf("%s: %x, not %x", float6.dataType, tensor.GetRawData(), float6.bytes)
			}
		}
		if _, err := FromCodes(float6.dataType, []uint8{64}); err == nil || !strings.Contains(err.Error(), "holds 0 to 63") {
			t.Error(err)
		}
		// Five bytes are six elements and four bits, seven elements six bytes.
		if _, err := Uint8s(FromBytes(float6.dataType, make([]byte, 5), 7)); err == nil {
			t.Error("seven elements in five bytes")
		}
	}
	// The unused bits may contain anything.
	if got, err := Uint8s(FromBytes(quantdv1.DataType_DATA_TYPE_FLOAT6E3M2, []byte{0xff}, 1)); err != nil || !reflect.DeepEqual(got, []uint8{63}) {
		t.Error(got, err)
	}
	if got, err := Uint8s(FromBytes(quantdv1.DataType_DATA_TYPE_UINT4, []byte{0xf3}, 1)); err != nil || !reflect.DeepEqual(got, []uint8{3}) {
		t.Error(got, err)
	}
	if _, err := FromCodes(quantdv1.DataType_DATA_TYPE_FLOAT4E2M1, []uint8{1, 16}, 2); err == nil ||
		!strings.Contains(err.Error(), "element 1 is 16, FLOAT4E2M1 holds 0 to 15") {
		t.Error(err)
	}
	for _, dataType := range []quantdv1.DataType{quantdv1.DataType_DATA_TYPE_FLOAT, quantdv1.DataType_DATA_TYPE_INT4, 0, 99} {
		if _, err := FromCodes(dataType, []uint8{1}); err == nil {
			t.Errorf("codes of %s", dataType)
		}
	}
	if _, err := Uint8s(FromInt8s([]int8{1})); err == nil || !strings.Contains(err.Error(), "is INT8, not UINT8") ||
		!strings.Contains(err.Error(), "Int8s takes it") {
		t.Error(err)
	}
}

func TestHalfBits(t *testing.T) {
	half := func(bits uint16) float32 {
		got, err := Float32s(FromBytes(quantdv1.DataType_DATA_TYPE_FLOAT16, []byte{byte(bits), byte(bits >> 8)}))
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	for bits, want := range map[uint16]float32{
		0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: 0x1p-24, 0x83ff: -1023 * 0x1p-24, 0x0400: 0x1p-14, 0x3555: 0.33325195,
		0x7c00: float32(math.Inf(1)), 0xfc00: float32(math.Inf(-1)), 0: 0,
	} {
		if got := half(bits); got != want {
			t.Errorf("%04x: %v, not %v", bits, got, want)
		}
	}
	if got := half(0x8000); got != 0 || !math.Signbit(float64(got)) {
		t.Errorf("-0: %v", got)
	}
	if got := half(0x7e00); got == got {
		t.Errorf("NaN: %v", got)
	}
}

func TestTensorsThatAreWrong(t *testing.T) {
	float := quantdv1.DataType_DATA_TYPE_FLOAT
	for name, tensor := range map[string]*quantdv1.Tensor{
		"nil":        nil,
		"another":    FromInt8s([]int8{1}),
		"too short":  FromBytes(float, make([]byte, 7), 2),
		"too long":   FromBytes(float, make([]byte, 12), 2),
		"none":       {DataType: float, Shape: []int64{1}},
		"negative":   FromBytes(float, nil, -1),
		"overflows":  FromBytes(float, make([]byte, 4), math.MaxInt64, math.MaxInt64, 4),
		"in values":  {DataType: float, Shape: []int64{1}, Contents: &quantdv1.Tensor_FloatValues{}},
		"elsewhere":  {DataType: float, Shape: []int64{1}, Contents: &quantdv1.Tensor_SharedMemory{}},
		"empty, not": FromBytes(float, make([]byte, 4), 0, math.MaxInt64),
	} {
		if got, err := Float32s(tensor); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got, err := Float32s(FromBytes(float, nil, math.MaxInt64, 0, math.MaxInt64)); err != nil || len(got) != 0 {
		t.Errorf("empty: %v (%v)", got, err)
	}
}

func TestAddresses(t *testing.T) {
	t.Setenv("QUANTD_ADDRESS", " there:1 ")
	for address, want := range map[string]string{
		"": "there:1", "a": "a:50051", "a:": "a:50051", "a:7": "a:7", "::1": "[::1]:50051", "[::1]": "[::1]:50051", "[::1]:7": "[::1]:7",
		"[::1]:": "[::1]:50051", "a:65535": "a:65535", "unix:/a.sock": "unix:/a.sock", "dns:///a:7": "dns:///a:7", "xds:///a": "xds:///a",
		"dns:a": "dns:a:50051", "dns:///a": "dns:///a:50051", "dns://8.8.8.8:53/a": "dns://8.8.8.8:53/a:50051", "dns:///::1": "dns:///[::1]:50051",
	} {
		if got, err := targetOf(address); err != nil || got != want {
			t.Errorf("%q: %q (%v), not %q", address, got, err, want)
		}
	}
	for _, address := range []string{"http://a", "https://a:1", ":7", "[::1", "[::1]x", "dns:///"} {
		if got, err := targetOf(address); err == nil {
			t.Errorf("%q: %q", address, got)
		}
	}
	for _, port := range []string{"65536", "99999", "99999999999999999999", "0", "-1", "+1", "a", "1a", "0x50", "1_0", "\u0661"} {
		for _, host := range []string{"127.0.0.1", "[::1]", "dns:///a"} {
			address := host + ":" + port
			if _, err := Dial(address); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %q", port)) || !strings.Contains(err.Error(), "65535") {
				t.Errorf("%q: %v", address, err)
			}
		}
	}
	for target, want := range map[string]bool{
		"unix:/a": true, "unix-abstract:a": true, "127.0.0.1:1": true, "127.9.9.9:1": true, "localhost:1": true, "[::1]:1": true, "dns:///localhost:1": true,
		"a:1": false, "127.0.0.1.example.org:1": false, "localhost.org:1": false, "[::2]:1": false, "xds:///localhost": false,
	} {
		if isLocal(target) != want {
			t.Errorf("%q: %t", target, !want)
		}
	}
	t.Setenv("QUANTD_ADDRESS", "")
	if got, _ := targetOf(""); got != "127.0.0.1:50051" {
		t.Error(got)
	}
}
