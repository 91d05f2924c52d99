package quantd

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/quantd/client/go/quantdv1"
)

// tests/languages/vectors.py describes the columns: quantctl's results, computed in its own process.
func TestBytesAreQuantctls(t *testing.T) {
	path := filepath.Join(needs(t, "TEST_VECTORS"), "vectors.tsv")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	client, ctx := shared(t), patience(t)
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if len(lines) < 100 {
		t.Fatalf("%d vectors", len(lines))
	}
	for number, line := range lines {
		c := strings.Split(line, "\t")
		typeNumber, _ := strconv.Atoi(c[0])
		output := quantdv1.DataType(typeNumber)
		var axis *int64
		if c[2] != "-" {
			axis = &integers(t, c[2])[0]
		}
		where := output.String() + " " + c[1] + " axis " + c[2]
		x, scale, zeroPoint := column(t, c[3]), column(t, c[5]), column(t, c[7])
		shape := integers(t, c[1])
		dynamic, err := client.DynamicQuantize(ctx, &quantdv1.DynamicQuantizeRequest{
			X: FromBytes(quantdv1.DataType_DATA_TYPE_FLOAT, x, shape...), OutputType: output, Axis: axis})
		if err != nil {
			t.Fatalf("line %d, %s: %v", number+1, where, err)
		}
		same(t, where+" y", dynamic.Y, column(t, c[4]))
		same(t, where+" scale", dynamic.YScale, scale)
		same(t, where+" zero point", dynamic.YZeroPoint, zeroPoint)

		given := FromBytes(quantdv1.DataType_DATA_TYPE_FLOAT, scale, integers(t, c[6])...)
		var zero *quantdv1.Tensor
		if zeroPoint != nil {
			zero = FromBytes(output, zeroPoint, given.Shape...)
		}
		quantized, err := client.Quantize(ctx, &quantdv1.QuantizeRequest{
			X: FromBytes(quantdv1.DataType_DATA_TYPE_FLOAT, x, shape...), Scale: given, ZeroPoint: zero, OutputType: output, Axis: axis})
		if err != nil {
			t.Fatalf("line %d, %s: %v", number+1, where, err)
		}
		same(t, where+" y of its scale", quantized.Y, column(t, c[4]))
		back, err := client.Dequantize(ctx, &quantdv1.DequantizeRequest{X: quantized.Y, Scale: given, ZeroPoint: zero, Axis: axis})
		if err != nil {
			t.Fatalf("line %d, %s: %v", number+1, where, err)
		}
		same(t, where+" back", back.Y, column(t, c[8]))
		// The same numbers as slices.
		floats, err := Float32s(FromBytes(quantdv1.DataType_DATA_TYPE_FLOAT, x, shape...))
		if err != nil {
			t.Fatal(err)
		}
		same(t, where+" x", FromFloat32s(floats), x)
		repacked(t, where, quantized.Y)
	}
}

// A packed tensor is the same after unpacking and packing.
func repacked(t *testing.T, where string, y *quantdv1.Tensor) {
	t.Helper()
	var again *quantdv1.Tensor
	signed, unsigned := []int8(nil), []uint8(nil)
	var err error
	switch y.DataType {
	case quantdv1.DataType_DATA_TYPE_INT4, quantdv1.DataType_DATA_TYPE_INT2:
		signed, err = Int8s(y)
	case quantdv1.DataType_DATA_TYPE_UINT4, quantdv1.DataType_DATA_TYPE_UINT2:
		unsigned, err = Uint8s(y)
	default:
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	switch y.DataType {
	case quantdv1.DataType_DATA_TYPE_INT4:
		again, err = FromInt4s(signed, y.Shape...)
	case quantdv1.DataType_DATA_TYPE_INT2:
		again, err = FromInt2s(signed, y.Shape...)
	case quantdv1.DataType_DATA_TYPE_UINT4:
		again, err = FromUint4s(unsigned, y.Shape...)
	case quantdv1.DataType_DATA_TYPE_UINT2:
		again, err = FromUint2s(unsigned, y.Shape...)
	}
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	same(t, where+" repacked", again, y.GetRawData())
}

func column(t *testing.T, text string) []byte {
	t.Helper()
	if text == "-" {
		return nil
	}
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func integers(t *testing.T, text string) []int64 {
	t.Helper()
	if text == "-" {
		return nil
	}
	var result []int64
	for _, part := range strings.Split(text, ",") {
		value, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		result = append(result, value)
	}
	return result
}

func same(t *testing.T, what string, tensor *quantdv1.Tensor, want []byte) {
	t.Helper()
	if !bytes.Equal(tensor.GetRawData(), want) {
		t.Fatalf("%s: %x, not %x", what, tensor.GetRawData(), want)
	}
}
