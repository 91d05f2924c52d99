package quantd

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.com/quantd/client/go/quantdv1"
)

func TestMessageOverTheLimit(t *testing.T) {
	client := dial(t, start(t, "--max_message_bytes=1048576").address)
	for _, elements := range []int{1 << 18, 4 << 20} { // just over, and so far over that it is refused while it is being sent
		x := FromFloat32s(make([]float32, elements), int64(elements))
		_, err := client.DynamicQuantize(patience(t), &quantdv1.DynamicQuantizeRequest{X: x})
		failure(t, err, codes.ResourceExhausted)
	}
	// An answer over the limit: a request of 200,000 bytes, and four times that as the answer, twice.
	_, err := client.Dequantize(patience(t), &quantdv1.DequantizeRequest{
		X: FromInt8s(make([]int8, 300_000), 300_000), Scale: FromFloat32s([]float32{1})})
	failure(t, err, codes.ResourceExhausted)
	// The connection still works.
	if _, err := client.GetServerInfo(patience(t), &quantdv1.GetServerInfoRequest{}); err != nil {
		t.Fatal(err)
	}
}

func TestServerGoneWhileCallsAreInFlight(t *testing.T) {
	running := start(t)
	client, ctx := dial(t, running.address), patience(t)
	stream, err := client.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	item := &quantdv1.StreamRequest{Request: &quantdv1.StreamRequest_DynamicQuantize{
		DynamicQuantize: &quantdv1.DynamicQuantizeRequest{X: FromFloat32s([]float32{1}, 1)}}}
	if err := stream.Send(item); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	errs := make(chan error, 8)
	begun := make(chan struct{}, 8)
	for i := 0; i < cap(errs); i++ {
		callers.Add(1)
		go func() {
			defer callers.Done()
			x := FromFloat32s(make([]float32, 1<<20), 1<<20)
			for first := true; ; first = false {
				_, err := client.DynamicQuantize(ctx, &quantdv1.DynamicQuantizeRequest{X: x})
				if first {
					begun <- struct{}{}
				}
				if err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	for i := 0; i < cap(begun); i++ {
		<-begun
	}
	running.kill()
	callers.Wait()
	for i := 0; i < cap(errs); i++ {
		failure(t, <-errs, codes.Unavailable)
	}
	_, err = stream.Recv()
	failure(t, err, codes.Unavailable)
}

// A client that was made before its server, or whose server was replaced, still works.
func TestAnotherServerAtTheAddress(t *testing.T) {
	first := start(t)
	client, ctx := dial(t, first.address), patience(t)
	if _, err := client.GetServerInfo(ctx, &quantdv1.GetServerInfoRequest{}); err != nil {
		t.Fatal(err)
	}
	first.kill()
	start(t, "--listen="+first.address)
	for {
		_, err := client.GetServerInfo(ctx, &quantdv1.GetServerInfoRequest{})
		if err == nil {
			return
		}
		failure(t, err, codes.Unavailable)
		time.Sleep(50 * time.Millisecond)
	}
}

// A full server says when to try again. Without retries, so that the test sees it.
func TestFullServer(t *testing.T) {
	running := start(t, "--max_inflight_requests=1", "--max_queued_requests=1")
	client := dial(t, running.address, grpc.WithDisableRetry())
	ctx, cancel := context.WithCancel(patience(t))
	refused := make(chan *Error, 16)
	for i := 0; i < cap(refused); i++ {
		go func() {
			x := FromFloat32s(make([]float32, 1<<20), 1<<20)
			for ctx.Err() == nil {
				_, err := client.DynamicQuantize(ctx, &quantdv1.DynamicQuantizeRequest{X: x})
				// On a slow machine the stream may end for other reasons; the errors say so.
				if result, ok := FromError(err); ok && result.Code == codes.Unavailable && result.Reason != "" {
					refused <- result
					return
				}
			}
		}()
	}
	defer cancel()
	select {
	case first := <-refused:
		if first.RetryAfter <= 0 {
			t.Fatalf("%+v: no time to come back", first)
		}
	case <-ctx.Done():
		t.Fatal("nobody was refused")
	}
}

func TestNobodyThere(t *testing.T) {
	_, err := dial(t, "127.0.0.1:1").GetServerInfo(patience(t), &quantdv1.GetServerInfoRequest{})
	if status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
}
