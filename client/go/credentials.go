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

// credentialsFromEnvironment returns nil if no variable asks for TLS.
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
	anywhere bool // also without TLS: then to this machine only

	mutex   sync.Mutex
	changed time.Time
	size    int64
	token   string
}

// read returns the token. If the file is missing or has no token, perhaps because it is being replaced, the last token stays.
func (t *tokenFile) read() (string, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	token, err := t.look()
	if err != nil && t.token != "" {
		return t.token, nil
	}
	return token, err
}

func (t *tokenFile) look() (string, error) {
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
	token := firstToken(string(content))
	if token == "" {
		return "", fmt.Errorf("%s has no token", t.path)
	}
	if strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) >= 0 {
		return "", errors.New(t.path + " is not a token: it contains blanks or non-ASCII characters")
	}
	t.token, t.changed, t.size = token, file.ModTime(), file.Size()
	return token, nil
}

// firstToken is the first line that is neither blank nor a comment (#); files have several tokens while tokens are replaced.
func firstToken(content string) string {
	for _, line := range strings.Split(content, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

func (t *tokenFile) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := t.read()
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

func (t *tokenFile) RequireTransportSecurity() bool { return !t.anywhere }
