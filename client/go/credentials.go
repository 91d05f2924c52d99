package quantd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// credentialsFromEnvironment is nil where no variable asks for TLS.
func credentialsFromEnvironment() (credentials.TransportCredentials, error) {
	ca, cert, key := os.Getenv("QUANTD_TLS_CA"), os.Getenv("QUANTD_TLS_CERT"), os.Getenv("QUANTD_TLS_KEY")
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("QUANTD_TLS_CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("QUANTD_TLS_CA: %s has no certificate in PEM", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, fmt.Errorf("QUANTD_TLS_CERT is %q, QUANTD_TLS_KEY is %q: a client's certificate needs both", cert, key)
	}
	if cert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			return &pair, err
		}
		if _, err := load(); err != nil {
			return nil, fmt.Errorf("QUANTD_TLS_CERT, QUANTD_TLS_KEY: %w", err)
		}
		// Read again for each connection: certificates are renewed while programs run.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return credentials.NewTLS(config), nil
}

// tokenFile adds "authorization: Bearer TOKEN" to every call.
type tokenFile struct {
	path     string
	anywhere bool // also without TLS: to this machine itself

	mutex   sync.Mutex
	changed time.Time
	size    int64
	token   string
}

func (t *tokenFile) read() (string, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	file, err := os.Stat(t.path)
	if err != nil {
		return "", err
	}
	if t.token != "" && file.ModTime().Equal(t.changed) && file.Size() == t.size {
		return t.token, nil
	}
	content, err := os.ReadFile(t.path)
	if err != nil {
		return "", err
	}
	// A file of several, as servers have while tokens are replaced: the first.
	token := strings.TrimSpace(strings.SplitN(strings.TrimSpace(string(content)), "\n", 2)[0])
	if token == "" {
		return "", fmt.Errorf("%s is empty", t.path)
	}
	if strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) >= 0 {
		return "", errors.New(t.path + " is not a token: it contains blanks or non-ASCII characters")
	}
	t.token, t.changed, t.size = token, file.ModTime(), file.Size()
	return token, nil
}

func (t *tokenFile) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := t.read()
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

func (t *tokenFile) RequireTransportSecurity() bool { return !t.anywhere }
