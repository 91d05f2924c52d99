// The cases of README.md with gRPC's library for Go: steps PORT CA|- CASE. Prints a line and fails if something is wrong.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	check = "/grpc.health.v1.Health/Check"
	watch = "/grpc.health.v1.Health/Watch"
	name  = "größe 測試 ☺ 😀"
)

// raw passes messages as they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = data
	return nil
}
func (raw) Name() string { return "proto" }

func require(condition bool, what ...any) {
	if !condition {
		log.Fatalln(what...)
	}
}

func connect(port, ca string) *grpc.ClientConn {
	trusts := insecure.NewCredentials()
	if ca != "-" {
		var err error
		trusts, err = credentials.NewClientTLSFromFile(ca, "localhost")
		require(err == nil, err)
	}
	connection, err := grpc.Dial("127.0.0.1:"+port, grpc.WithTransportCredentials(trusts), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	require(err == nil, err)
	return connection
}

func call(connection *grpc.ClientConn, method string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	var answer []byte
	err := connection.Invoke(ctx, method, &request, &answer)
	return answer, err
}

func checkHealth(connection *grpc.ClientConn) {
	_, err := call(connection, check, nil)
	require(err == nil, err)
}

// watchUntil opens a Watch, reads its first message, runs then, and requires this code.
func watchUntil(ctx context.Context, connection *grpc.ClientConn, then func(), code codes.Code) {
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, watch)
	require(err == nil, err)
	var message []byte
	require(stream.SendMsg(&message) == nil && stream.CloseSend() == nil, "nothing can be sent")
	err = stream.RecvMsg(&message)
	require(err == nil, err)
	then()
	err = stream.RecvMsg(&message)
	require(status.Code(err) == code, err)
}

func field(number byte, payload []byte) []byte {
	return append([]byte{number<<3 | 2, byte(len(payload))}, payload...)
}

func main() {
	port, ca, step := os.Args[1], os.Args[2], os.Args[3]
	connection := connect(port, ca)
	defer connection.Close()
	switch step {
	case "deadline":
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		watchUntil(ctx, connection, func() {}, codes.DeadlineExceeded)
		require(time.Since(began) >= 290*time.Millisecond, "too early")
	case "cancel":
		ctx, cancel := context.WithCancel(context.Background())
		watchUntil(ctx, connection, cancel, codes.Canceled)
		checkHealth(connection)
	case "unicode_status":
		// A FLOAT tensor of 4 bytes.
		place := append(field(1, []byte(name)), 0x18, 4)
		request := field(1, append([]byte{8, 1}, field(6, place)...))
		_, err := call(connection, "/quantd.v1.QuantizationService/DynamicQuantize", request)
		require(status.Code(err) == codes.InvalidArgument && strings.Contains(status.Convert(err).Message(), name), err)
	case "soak":
		for i := 0; i < 10000; i++ {
			checkHealth(connection)
		}
	case "channels":
		for i := 0; i < 1000; i++ {
			one := connect(port, ca)
			checkHealth(one)
			one.Close()
		}
	case "concurrent_large_unary":
		// For the interop server: 271,828 bytes get 314,159 in return.
		request := append([]byte("\x10\xaf\x96\x13\x1a\xd8\xcb\x10\x12\xd4\xcb\x10"), bytes.Repeat([]byte{0}, 271828)...)
		var all sync.WaitGroup
		for i := 0; i < 1000; i++ {
			all.Add(1)
			go func() {
				defer all.Done()
				answer, err := call(connection, "/grpc.testing.TestService/UnaryCall", request)
				require(err == nil && len(answer) > 314159 && len(answer) < 314200, err, len(answer))
			}()
		}
		all.Wait()
	default:
		log.Fatalln(fmt.Sprintf("there is no step %s", step))
	}
}
