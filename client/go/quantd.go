// Package quantd is a client of quantd, which quantizes tensors bit-exact to the ONNX operators.
//
// Dial returns the generated client of quantdv1 with the settings that users need: messages of any size, retries, round
// robin, keepalive, TLS and token. FromFloat32s and similar functions make tensors of slices, Float32s and similar
// functions make slices of tensors, FromError tells which field was wrong. Everything else is generated code.
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

// Dial makes a client of host:port, host (port 50051), unix:/path.sock, dns:///host:port, or any other gRPC target; for "",
// of QUANTD_ADDRESS or else 127.0.0.1:50051. It does not wait: the first call reports what is wrong with the server.
//
// TLS: PEM files named by QUANTD_TLS_CA (the authority that signed the server's certificate), QUANTD_TLS_CERT and
// QUANTD_TLS_KEY (this client's own, if the server requires one); without any of them, plain text. QUANTD_AUTH_TOKEN_FILE
// names a file whose token is sent with every call; see TokenFile.
//
// The options are gRPC's, and override all of that: grpc.WithTransportCredentials, grpc.WithDefaultServiceConfig, ...
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
			// Larger messages are not retried; gRPC's default is 256 KiB.
			grpc.MaxRetryRPCBufferSize(math.MaxInt32)),
		// Only while a call is in flight: otherwise a lost server is noticed only when TCP gives up, after minutes.
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

// Connection returns the client's connection, for other services, such as gRPC's health.
func (c *Client) Connection() *grpc.ClientConn { return c.connection }

// Close closes the connection; calls in flight end with CANCELED.
func (c *Client) Close() error { return c.connection.Close() }

// TokenFile returns an option that sends the token in the file at path with every call. The file is read again when it changes,
// so that a token can be replaced. Calls over a connection without TLS fail.
func TokenFile(path string) grpc.DialOption {
	var token credentials.PerRPCCredentials = &tokenFile{path: path}
	return grpc.WithPerRPCCredentials(token)
}
