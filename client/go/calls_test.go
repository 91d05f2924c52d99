package quantd

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"example.com/quantd/client/go/quantdv1"
)

func TestQuantizeAndBack(t *testing.T) {
	client, ctx := shared(t), patience(t)
	answer, err := client.Quantize(ctx, &quantdv1.QuantizeRequest{
		X: FromFloat32s([]float32{-1, 0, 0.25, 0.75, 100, 3}, 2, 3), Scale: FromFloat32s([]float32{0.5}),
		ZeroPoint: FromUint8s([]uint8{10})})
	if err != nil {
		t.Fatal(err)
	}
	codes, err := Uint8s(answer.Y)
	if want := []uint8{8, 10, 10, 12, 210, 16}; err != nil || !reflect.DeepEqual(codes, want) {
		t.Fatalf("%v (%v), not %v", codes, err, want)
	}
	back, err := client.Dequantize(ctx, &quantdv1.DequantizeRequest{
		X: answer.Y, Scale: FromFloat32s([]float32{0.5}), ZeroPoint: FromUint8s([]uint8{10})})
	if err != nil {
		t.Fatal(err)
	}
	floats, err := Float32s(back.Y)
	if want := []float32{-1, 0, 0, 1, 100, 3}; err != nil || !reflect.DeepEqual(floats, want) {
		t.Fatalf("%v (%v), not %v", floats, err, want)
	}
}

// MXFP6 of 32 values: the largest is the type's largest, so that the block's scale is 1. By hand, from the OCP Microscaling specification.
func TestMicroscaling(t *testing.T) {
	client, ctx := shared(t), patience(t)
	for _, format := range []struct {
		output quantdv1.DataType
		x      []float32
		codes  []uint8
		bytes  []byte
	}{
		{quantdv1.DataType_DATA_TYPE_FLOAT6E2M3, []float32{1, -1.5, 7.5, -0.125, -7.5}, []uint8{8, 44, 31, 33, 63},
			[]byte{0x08, 0xfb, 0x85, 0x3f}},
		{quantdv1.DataType_DATA_TYPE_FLOAT6E3M2, []float32{1, 28, -0.0625, 0.25, -3, -28, 0.0625}, []uint8{12, 31, 33, 4, 50, 63, 1},
			[]byte{0xcc, 0x17, 0x12, 0xf2, 0x1f, 0x00}},
	} {
		x := append(append([]float32{}, format.x...), make([]float32, 32-len(format.x))...)
		answer, err := client.DynamicQuantize(ctx, &quantdv1.DynamicQuantizeRequest{X: FromFloat32s(x, 32), OutputType: format.output,
			ScaleType: quantdv1.DataType_DATA_TYPE_FLOAT8E8M0, Axis: proto.Int64(-1), BlockSize: 32})
		if err != nil {
			t.Fatal(err)
		}
		if raw := answer.Y.GetRawData(); len(raw) != 24 || !bytes.HasPrefix(raw, format.bytes) {
			t.Errorf("%s: %x, not %x", format.output, raw, format.bytes)
		}
		codes, err := Uint8s(answer.Y)
		if want := append(append([]uint8{}, format.codes...), make([]uint8, 32-len(format.codes))...); err != nil ||
			!reflect.DeepEqual(codes, want) {
			t.Errorf("%s: %v (%v), not %v", format.output, codes, err, want)
		}
		if scale, err := Uint8s(answer.YScale); err != nil || !reflect.DeepEqual(scale, []uint8{127}) {
			t.Errorf("%s: scale %v (%v)", format.output, scale, err)
		}
		packed, err := FromCodes(format.output, codes, 32)
		if err != nil {
			t.Fatal(err)
		}
		back, err := client.Dequantize(ctx, &quantdv1.DequantizeRequest{X: packed, Scale: answer.YScale,
			OutputType: quantdv1.DataType_DATA_TYPE_FLOAT, Axis: proto.Int64(-1), BlockSize: 32})
		if err != nil {
			t.Fatal(err)
		}
		if floats, err := Float32s(back.Y); err != nil || !reflect.DeepEqual(floats, x) {
			t.Errorf("%s: %v (%v), not %v", format.output, floats, err, x)
		}
	}
}

// FLOAT16 and BFLOAT16 come back exactly: the values have few bits.
func TestHalves(t *testing.T) {
	client, ctx := shared(t), patience(t)
	for _, output := range []quantdv1.DataType{quantdv1.DataType_DATA_TYPE_FLOAT16, quantdv1.DataType_DATA_TYPE_BFLOAT16} {
		answer, err := client.Dequantize(ctx, &quantdv1.DequantizeRequest{
			X: FromInt8s([]int8{-128, -3, 0, 1, 127}, 5), Scale: FromFloat32s([]float32{0.25}), OutputType: output})
		if err != nil {
			t.Fatal(err)
		}
		values, err := Float32s(answer.Y)
		if want := []float32{-32, -0.75, 0, 0.25, 31.75}; err != nil || !reflect.DeepEqual(values, want) {
			t.Fatalf("%s: %v (%v), not %v", output, values, err, want)
		}
		if bits, err := Uint16s(answer.Y); err != nil || len(bits) != 5 {
			t.Fatalf("%v (%v)", bits, err)
		}
	}
}

func TestEmptyAnd0D(t *testing.T) {
	client, ctx := shared(t), patience(t)
	for _, shape := range [][]int64{{0}, {3, 0, 2}} {
		answer, err := client.DynamicQuantize(ctx, &quantdv1.DynamicQuantizeRequest{X: FromFloat32s(nil, shape...)})
		if err != nil {
			t.Fatal(err)
		}
		if y, err := Uint8s(answer.Y); err != nil || len(y) != 0 || !reflect.DeepEqual(answer.Y.Shape, shape) {
			t.Fatalf("%v (%v) of shape %v", y, err, answer.Y.Shape)
		}
	}
	answer, err := client.DynamicQuantize(ctx, &quantdv1.DynamicQuantizeRequest{X: FromFloat32s([]float32{5})})
	if err != nil {
		t.Fatal(err)
	}
	if y, err := Uint8s(answer.Y); err != nil || !bytes.Equal(y, []byte{255}) || len(answer.Y.Shape) != 0 {
		t.Fatalf("%v (%v) of shape %v", y, err, answer.Y.Shape)
	}
}

func TestErrorsNameTheField(t *testing.T) {
	client, ctx := shared(t), patience(t)
	x := []float32{1, 2, float32(math.NaN()), 4}
	wrong := FromFloat32s([]float32{1, 2, 3}, 3)
	for name, call := range map[string]struct {
		field, says string
		make        func() error
	}{
		"scales": {"scale", "3", func() error {
			_, err := client.Quantize(ctx, &quantdv1.QuantizeRequest{X: FromFloat32s(make([]float32, 8), 2, 4), Scale: wrong, Axis: proto.Int64(1)})
			return err
		}},
		"length of data": {"x", "16", func() error {
			_, err := client.DynamicQuantize(ctx, &quantdv1.DynamicQuantizeRequest{X: FromFloat32s(x[:2], 4)})
			return err
		}},
		"NaN": {"x", "2", func() error {
			_, err := client.DynamicQuantize(ctx, &quantdv1.DynamicQuantizeRequest{X: FromFloat32s(x, 4)})
			return err
		}},
		"nothing": {"x", "", func() error {
			_, err := client.Quantize(ctx, &quantdv1.QuantizeRequest{})
			return err
		}},
	} {
		err := failure(t, fmt.Errorf("while testing: %w", call.make()), codes.InvalidArgument)
		if len(err.Fields) != 1 || err.Fields[0].Field != call.field || !strings.Contains(err.Message, call.says) {
			t.Errorf("%s: %v, fields %v; not %s with %s", name, err, err.Fields, call.field, call.says)
		}
		if err.Reason == "" || err.Unwrap() == nil {
			t.Errorf("%s: no reason or cause: %+v", name, err)
		}
	}
}

func TestWhatIsNoStatusIsNoError(t *testing.T) {
	for _, err := range []error{nil, os.ErrNotExist} {
		if failure, ok := FromError(err); ok {
			t.Errorf("%v became %v", err, failure)
		}
	}
}

func TestCallsThatAServerDropsAreUnavailable(t *testing.T) {
	failure(t, status.Error(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL"), codes.Unavailable)
	failure(t, status.Error(codes.Canceled, "context canceled"), codes.Canceled)
}

func TestEmbeddings(t *testing.T) {
	client, ctx := shared(t), patience(t)
	answer, err := client.QuantizeEmbeddings(ctx, &quantdv1.QuantizeEmbeddingsRequest{
		X: FromFloat32s([]float32{1, -1, 0.5, -0.5, 2, -2, 3, -3}, 1, 8), Recipe: quantdv1.EmbeddingRecipe_EMBEDDING_RECIPE_BITS})
	if err != nil {
		t.Fatal(err)
	}
	if y, err := Uint8s(answer.Y); err != nil || !bytes.Equal(y, []byte{0xaa}) {
		t.Fatalf("%x (%v)", y, err)
	}
}

func TestHealthAndInfo(t *testing.T) {
	client, ctx := shared(t), patience(t)
	health, err := healthpb.NewHealthClient(client.Connection()).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || health.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("%v (%v)", health, err)
	}
	info, err := client.GetServerInfo(ctx, &quantdv1.GetServerInfoRequest{})
	if err != nil || info.Version == "" || info.MaxMessageBytes == 0 {
		t.Fatalf("%v (%v)", info, err)
	}
}

// 8 MiB of FLOAT in each direction: gRPC's own limit is 4.
func TestLargeMessages(t *testing.T) {
	client, ctx := shared(t), patience(t)
	x := make([]float32, 2<<20)
	for i := range x {
		x[i] = float32(i%255) - 127
	}
	answer, err := client.Quantize(ctx, &quantdv1.QuantizeRequest{
		X: FromFloat32s(x, int64(len(x))), Scale: FromFloat32s([]float32{1}), OutputType: quantdv1.DataType_DATA_TYPE_INT8})
	if err != nil {
		t.Fatal(err)
	}
	back, err := client.Dequantize(ctx, &quantdv1.DequantizeRequest{X: answer.Y, Scale: FromFloat32s([]float32{1})})
	if err != nil {
		t.Fatal(err)
	}
	if y, err := Float32s(back.Y); err != nil || !reflect.DeepEqual(y, x) {
		t.Fatalf("other values came back (%v)", err)
	}
}

// Items of very different sizes, and a bad one; only their ids tell which answer belongs to which.
func TestStream(t *testing.T) {
	client, ctx := shared(t), patience(t)
	stream, err := client.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const items = 500
	go func() {
		for i := 0; i < items; i++ {
			request := &quantdv1.DynamicQuantizeRequest{X: FromFloat32s(make([]float32, 1+i%7*3000), int64(1+i%7*3000))}
			if i == 100 {
				request.X.Shape[0]++
			}
			item := &quantdv1.StreamRequest{Id: uint64(i), Request: &quantdv1.StreamRequest_DynamicQuantize{DynamicQuantize: request}}
			if stream.Send(item) != nil {
				return // Recv returns the reason
			}
		}
		stream.CloseSend()
	}()
	answered := make(map[uint64]bool)
	for len(answered) < items {
		answer, err := stream.Recv()
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answered), err)
		}
		if answered[answer.Id] {
			t.Fatalf("%d is answered twice", answer.Id)
		}
		answered[answer.Id] = true
		if answer.Id == 100 {
			if item := FromItem(answer.GetError()); item.Code != codes.InvalidArgument || len(item.Fields) != 1 {
				t.Fatalf("item 100: %v", answer)
			}
		} else if y, err := Uint8s(answer.GetDynamicQuantize().GetY()); err != nil || len(y) != int(1+answer.Id%7*3000) {
			t.Fatalf("item %d: %d elements (%v)", answer.Id, len(y), err)
		}
	}
	if answer, err := stream.Recv(); answer != nil || err == nil || err.Error() != "EOF" {
		t.Fatalf("after the last: %v, %v", answer, err)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	client, ctx := shared(t), patience(t)
	var all sync.WaitGroup
	errs := make(chan error, 1000)
	for i := 0; i < 1000; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			answer, err := client.Quantize(ctx, &quantdv1.QuantizeRequest{
				X: FromFloat32s([]float32{float32(i % 200)}, 1), Scale: FromFloat32s([]float32{1})})
			if err == nil && !bytes.Equal(answer.Y.GetRawData(), []byte{byte(i % 200)}) {
				err = fmt.Errorf("call %d got %v", i, answer)
			}
			errs <- err
		}(i)
	}
	all.Wait()
	for i := 0; i < 1000; i++ {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeadlinesAndCancelledCalls(t *testing.T) {
	client := shared(t)
	x := FromFloat32s(make([]float32, 4<<20), 4<<20)
	over, cancel := context.WithTimeout(patience(t), time.Microsecond)
	defer cancel()
	_, err := client.DynamicQuantize(over, &quantdv1.DynamicQuantizeRequest{X: x})
	failure(t, err, codes.DeadlineExceeded)

	cancelled, cancel := context.WithCancel(patience(t))
	ended := make(chan error, 20)
	for i := 0; i < cap(ended); i++ {
		go func() {
			_, err := client.DynamicQuantize(cancelled, &quantdv1.DynamicQuantizeRequest{X: x})
			ended <- err
		}()
	}
	cancel()
	for i := 0; i < cap(ended); i++ {
		if err := <-ended; err != nil { // it may have ended before, which is right, too
			failure(t, err, codes.Canceled)
		}
	}
	// The stream's own context ends it, whatever the server does.
	cancelled, cancel = context.WithCancel(patience(t))
	stream, err := client.Stream(cancelled)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = stream.Recv()
	failure(t, err, codes.Canceled)
}

func TestServiceConfigIsTheProjects(t *testing.T) {
	config, err := os.ReadFile(needs(t, "TEST_SERVICE_CONFIG"))
	if err != nil || string(config) != ServiceConfig {
		t.Fatalf("service_config.go and deploy/service_config.json differ (%v)", err)
	}
}
