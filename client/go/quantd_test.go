package quantd

import (
	"bytes"
	"context"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "example.com/quantd/client/go/quantdv1"
)

// A client of the server that ./tests/run.sh clients starts; the suite counts a skipped test as a failure.
func client(t *testing.T) (pb.QuantizationServiceClient, context.Context) {
	t.Helper()
	address := os.Getenv("QUANTD_ADDRESS")
	if address == "" {
		t.Skip("QUANTD_ADDRESS is not set: run ./tests/run.sh clients")
	}
	connection, err := grpc.Dial(address, append(DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(func() { cancel(); connection.Close() })
	return pb.NewQuantizationServiceClient(connection), ctx
}

func TestServiceConfigIsThatOfDeploy(t *testing.T) {
	content, err := os.ReadFile("../../deploy/service_config.json")
	if err != nil || string(content) != ServiceConfig {
		t.Fatalf("service_config.json differs from deploy/service_config.json (%v)", err)
	}
}

func TestEveryTypeHasElements(t *testing.T) {
	for number, name := range pb.DataType_name {
		if _, known := elementTypes[pb.DataType(number)]; known != (number != 0) {
			t.Errorf("%s: known is %t", name, known)
		}
	}
}

// Through the server with more than 4 MiB, which is gRPC's limit without DialOptions.
func TestLargeMessages(t *testing.T) {
	server, ctx := client(t)
	answer, err := server.Dequantize(ctx, &pb.DequantizeRequest{
		X: FromBytes(pb.DataType_DATA_TYPE_UINT8, make([]byte, 5<<20), 5<<20), Scale: FromFloat32s([]float32{1})})
	if err != nil || len(answer.Y.GetRawData()) != 20<<20 {
		t.Fatalf("%d bytes (%v)", len(answer.GetY().GetRawData()), err)
	}
}

func TestPacking(t *testing.T) {
	for _, row := range []struct {
		dataType pb.DataType
		values   []int32
		want     string
	}{
		{pb.DataType_DATA_TYPE_INT4, []int32{-8, 7, -1}, "780f"},
		{pb.DataType_DATA_TYPE_UINT2, []int32{0, 1, 2, 3, 3}, "e403"},
		{pb.DataType_DATA_TYPE_FLOAT6E2M3, []int32{8, 44, 31, 33, 63}, "08fb853f"},
		{pb.DataType_DATA_TYPE_INT8, []int32{-128, 127}, "807f"},
		{pb.DataType_DATA_TYPE_INT16, []int32{-32768, 1}, "00800100"},
		{pb.DataType_DATA_TYPE_INT32, []int32{math.MinInt32, 5}, "0000008005000000"},
	} {
		tensor, err := Pack(row.dataType, row.values, int64(len(row.values)))
		if err != nil || hex.EncodeToString(tensor.GetRawData()) != row.want {
			t.Errorf("%s: %x (%v), not %s", row.dataType, tensor.GetRawData(), err, row.want)
		}
		values, err := Unpack[int32](tensor)
		if err != nil || len(values) != len(row.values) {
			t.Fatalf("%s: %v (%v)", row.dataType, values, err)
		}
		for i := range values {
			if values[i] != row.values[i] {
				t.Errorf("%s: %v, not %v", row.dataType, values, row.values)
			}
		}
	}
}

// What is not a tensor of the asked kind is refused, and the error has the number that is wrong.
func TestWhatIsRefused(t *testing.T) {
	int4 := func(data string, shape ...int64) *pb.Tensor {
		return FromBytes(pb.DataType_DATA_TYPE_INT4, []byte(data), shape...)
	}
	unpack := func(tensor *pb.Tensor) error { _, err := Unpack[int8](tensor); return err }
	pack := func(dataType pb.DataType, value int32) error { _, err := Pack(dataType, []int32{value}, 1); return err }
	_, floats := Float32s(int4("a", 2))
	for _, row := range []struct {
		err  error
		want string
	}{
		{pack(pb.DataType_DATA_TYPE_INT4, 8), "8"},
		{pack(pb.DataType_DATA_TYPE_UINT8, -1), "-1"},
		{pack(pb.DataType(99), 0), "99"},
		{unpack(int4("a", 3)), "[3]"},
		{unpack(int4("a", -1)), "[-1]"},
		{unpack(int4("", 1<<32, 1<<32)), "4294967296"},
		{unpack(int4("a", 0, 1<<62)), "1 bytes"},
		{unpack(FromBytes(pb.DataType_DATA_TYPE_UINT8, []byte{1}, 1)), "255"},
		{unpack(&pb.Tensor{DataType: pb.DataType_DATA_TYPE_INT8, Contents: &pb.Tensor_IntValues{}}), "IntValues"},
		{unpack(nil), "UNSPECIFIED"},
		{floats, "INT4"},
	} {
		if row.err == nil || !strings.Contains(row.err.Error(), row.want) {
			t.Errorf("%v does not say %s", row.err, row.want)
		}
	}
}

// tests/languages/vectors.py describes the columns: quantctl's results, computed in its own process.
func TestBytesAreQuantctls(t *testing.T) {
	server, ctx := client(t)
	content, err := os.ReadFile(filepath.Join(os.Getenv("TEST_VECTORS"), "vectors.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if len(lines) < 200 {
		t.Fatalf("%d vectors", len(lines))
	}
	for _, line := range lines {
		c := strings.Split(line, "\t")
		number, _ := strconv.Atoi(c[0])
		output, shape := pb.DataType(number), integers(t, c[1])
		var axis *int64
		if c[2] != "-" {
			axis = &integers(t, c[2])[0]
		}
		where := output.String() + " " + c[1] + " axis " + c[2]
		same := func(what string, err error, tensor *pb.Tensor, want []byte) {
			if err != nil || !bytes.Equal(tensor.GetRawData(), want) {
				t.Fatalf("%s %s: %x, not %x (%v)", where, what, tensor.GetRawData(), want, err)
			}
		}
		x := FromBytes(pb.DataType_DATA_TYPE_FLOAT, column(t, c[3]), shape...)
		made, err := server.DynamicQuantize(ctx, &pb.DynamicQuantizeRequest{X: x, OutputType: output, Axis: axis})
		same("y", err, made.GetY(), column(t, c[4]))
		same("scale", err, made.YScale, column(t, c[5]))
		same("zero point", err, made.YZeroPoint, column(t, c[7]))
		given, err := server.Quantize(ctx, &pb.QuantizeRequest{
			X: x, Scale: made.YScale, ZeroPoint: made.YZeroPoint, OutputType: output, Axis: axis})
		same("y of its scale", err, given.GetY(), column(t, c[4]))
		back, err := server.Dequantize(ctx, &pb.DequantizeRequest{X: made.Y, Scale: made.YScale, ZeroPoint: made.YZeroPoint, Axis: axis})
		same("back", err, back.GetY(), column(t, c[8]))
		// The same as slices.
		codes, err := Unpack[int32](made.Y)
		if err != nil {
			t.Fatal(err)
		}
		packed, err := Pack(output, codes, shape...)
		same("packed", err, packed, column(t, c[4]))
		floats, err := Float32s(x)
		same("x", err, FromFloat32s(floats), x.GetRawData())
	}
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

func integers(t *testing.T, text string) (result []int64) {
	t.Helper()
	if text == "-" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		value, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		result = append(result, value)
	}
	return result
}
