// Command example quantizes a matrix to INT8, with one scale per row, and back. QUANTD_ADDRESS names the server.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	quantd "example.com/quantd/client/go"
	"example.com/quantd/client/go/quantdv1"
)

func main() {
	address := os.Getenv("QUANTD_ADDRESS")
	if address == "" {
		address = "127.0.0.1:50051"
	}
	options := append(quantd.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	connection, err := grpc.Dial(address, options...)
	explain(err)
	defer connection.Close()
	client := quantdv1.NewQuantizationServiceClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	x := make([]float32, 4*64)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	small, err := client.DynamicQuantize(ctx, &quantdv1.DynamicQuantizeRequest{
		X: quantd.FromFloat32s(x, 4, 64), OutputType: quantdv1.DataType_DATA_TYPE_INT8, Axis: proto.Int64(0), ReportError: true})
	explain(err)
	codes, err := quantd.Unpack[int8](small.Y)
	explain(err)
	fmt.Printf("%v: %d ... %.1f dB\n", small.Y.Shape, codes[:4], small.QuantizationError.SqnrDb)

	back, err := client.Dequantize(ctx, &quantdv1.DequantizeRequest{
		X: small.Y, Scale: small.YScale, ZeroPoint: small.YZeroPoint, Axis: proto.Int64(0)})
	explain(err)
	y, err := quantd.Float32s(back.Y)
	explain(err)
	fmt.Printf("%.4f is %.4f\n", x[1], y[1])
}

// explain ends the program on an error, with the fields of the request that the server found wrong.
func explain(err error) {
	if err == nil {
		return
	}
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, violation := range bad.GetFieldViolations() {
				log.Printf("%s: %s", violation.GetField(), violation.GetDescription())
			}
		}
	}
	log.Fatal(err)
}
