package quantd

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"example.com/quantd/client/go/quantdv1"
)

// The sizes of received messages, on the wire and decompressed.
type received struct {
	compressed, plain atomic.Int64
}

func (r *received) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (r *received) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (r *received) HandleConn(context.Context, stats.ConnStats)                       {}
func (r *received) HandleRPC(_ context.Context, event stats.RPCStats) {
	if payload, ok := event.(*stats.InPayload); ok {
		r.compressed.Add(int64(payload.CompressedLength))
		r.plain.Add(int64(payload.Length))
	}
}

// From a server that compresses answers, and from one that does so for a call that asks for it: the client sees the same answer.
func TestCompressedAnswers(t *testing.T) {
	ctx := patience(t)
	request := &quantdv1.DequantizeRequest{X: FromUint8s(bytes.Repeat([]byte("quantize"), 10000), 80000), Scale: FromFloat32s([]float32{0.5})}
	plain, err := shared(t).Dequantize(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--compress_answers=gzip", "--compress_answers=none"} {
		var seen received
		client := dial(t, start(t, flag).address, grpc.WithStatsHandler(&seen))
		asks := ctx
		if flag == "--compress_answers=none" {
			asks = metadata.AppendToOutgoingContext(ctx, "quantd-compress-answers", "gzip")
		}
		answer, err := client.Dequantize(asks, request)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(answer.Y.GetRawData(), plain.Y.GetRawData()) {
			t.Errorf("%s: another answer", flag)
		}
		if 2*seen.compressed.Load() > seen.plain.Load() {
			t.Errorf("%s: %d bytes came for %d", flag, seen.compressed.Load(), seen.plain.Load())
		}
	}
}
