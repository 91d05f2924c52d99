// Command example quantizes a matrix to INT8, with one scale per row, and back. QUANTD_ADDRESS names the server.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	quantd "example.com/quantd/client/go"
	"example.com/quantd/client/go/quantdv1"
)

func main() {
	client, err := quantd.Dial("")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	x := make([]float32, 4*64)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	small, err := client.DynamicQuantize(ctx, &quantdv1.DynamicQuantizeRequest{
		X: quantd.FromFloat32s(x, 4, 64), OutputType: quantdv1.DataType_DATA_TYPE_INT8, Axis: proto.Int64(0), ReportError: true})
	if err != nil {
		explain(err)
	}
	codes, err := quantd.Int8s(small.Y)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v: %d ... %.1f dB\n", small.Y.Shape, codes[:4], small.QuantizationError.SqnrDb)

	back, err := client.Dequantize(ctx, &quantdv1.DequantizeRequest{
		X: small.Y, Scale: small.YScale, ZeroPoint: small.YZeroPoint, Axis: proto.Int64(0)})
	if err != nil {
		explain(err)
	}
	y, err := quantd.Float32s(back.Y)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.4f is %.4f\n", x[1], y[1])
}

func explain(err error) {
	if failure, ok := quantd.FromError(err); ok {
		for _, field := range failure.Fields {
			log.Printf("%s: %s", field.Field, field.Description)
		}
	}
	log.Fatal(err)
}
