// Package quantd is a client of quantd, which quantizes tensors bit-exact to the ONNX operators.
//
// Dial gives the generated client of quantdv1 with what a user wants set: messages of any size, retries, round robin,
// keepalive, TLS and token. FromFloat32s and its like make tensors of slices, Float32s and its like make slices of
// tensors, FromError says which field was wrong. All else is the generated code.
package quantd

//go:generate ./generate.sh quantdv1

import (
	"fmt"
	"math"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // answers are taken compressed, where a server or a call wants that
	_ "google.golang.org/grpc/health"        // a service config with healthCheckConfig works only with it
	"google.golang.org/grpc/keepalive"

	"example.com/quantd/client/go/quantdv1"
)

// Client is a connection to one address, which may be several servers. Safe for any number of goroutines.
type Client struct {
	quantdv1.QuantizationServiceClient
	connection *grpc.ClientConn
}

// Dial makes a client of host:port, host (port 50051), unix:/path.sock, dns:///host:port, or any other target of gRPC; of "",
// that of QUANTD_ADDRESS, else 127.0.0.1:50051. It does not wait: what is wrong with the server, the first call says.
//
// TLS: PEM files that QUANTD_TLS_CA (the authority that signed the server's certificate), QUANTD_TLS_CERT and
// QUANTD_TLS_KEY (this client's own, where the server wants one) name; none of them: plain text. QUANTD_AUTH_TOKEN_FILE
// names a file whose token every call carries; see TokenFile.
//
// The options are gRPC's, and win over all of that: grpc.WithTransportCredentials, grpc.WithDefaultServiceConfig, ...
func Dial(address string, options ...grpc.DialOption) (*Client, error) {
	target, err := targetOf(address)
	if err != nil {
		return nil, fmt.Errorf("quantd: %w", err)
	}
	transport, err := credentialsFromEnvironment()
	if err != nil {
		return nil, fmt.Errorf("quantd: %w", err)
	}
	all := []grpc.DialOption{
		grpc.WithDefaultServiceConfig(ServiceConfig),
		grpc.WithDefaultCallOptions(
			// The server has the limit (--max_message_bytes); gRPC's own, 4 MiB, is below many tensors.
			grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32),
			// What is larger than this, 256 KiB unless told, is not tried again.
			grpc.MaxRetryRPCBufferSize(math.MaxInt32)),
		// Only while a call is in flight: else a server that was cut off is noticed when TCP gives up, after minutes.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	}
	if transport != nil {
		all = append(all, grpc.WithTransportCredentials(transport))
	} else {
		all = append(all, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	if path := os.Getenv("QUANTD_AUTH_TOKEN_FILE"); path != "" {
		token := &tokenFile{path: path, anywhere: isLocal(target)}
		if _, err := token.read(); err != nil {
			return nil, fmt.Errorf("quantd: QUANTD_AUTH_TOKEN_FILE: %w", err)
		}
		all = append(all, grpc.WithPerRPCCredentials(token))
	}
	connection, err := grpc.Dial(target, append(all, options...)...)
	if err != nil {
		return nil, fmt.Errorf("quantd: %s: %w", target, err)
	}
	return &Client{quantdv1.NewQuantizationServiceClient(connection), connection}, nil
}

// Connection is what the client calls through: for other services, such as gRPC's health.
func (c *Client) Connection() *grpc.ClientConn { return c.connection }

// Close closes the connection; calls in flight end with CANCELED.
func (c *Client) Close() error { return c.connection.Close() }

// TokenFile is an option that lets every call carry the token in the file at path. The file is read again when it
// changes, so that a token can be replaced. Over a connection without TLS no call is made.
func TokenFile(path string) grpc.DialOption {
	var token credentials.PerRPCCredentials = &tokenFile{path: path}
	return grpc.WithPerRPCCredentials(token)
}
