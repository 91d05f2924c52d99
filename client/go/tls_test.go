package quantd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"example.com/quantd/client/go/quantdv1"
)

// The suite starts a server that requires a certificate and a token, and makes both. Files have the names that the suite gives them; "" is
// unset.
func secured(t *testing.T, ca, cert, key, token string) {
	t.Helper()
	needs(t, "TEST_TLS_ADDRESS")
	folder := needs(t, "TEST_CERTIFICATES")
	for variable, name := range map[string]string{
		"QUANTD_TLS_CA": ca, "QUANTD_TLS_CERT": cert, "QUANTD_TLS_KEY": key, "QUANTD_AUTH_TOKEN_FILE": token,
	} {
		if name != "" && !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		t.Setenv(variable, name)
	}
}

func ask(t *testing.T, client *Client) error {
	t.Helper()
	_, err := client.GetServerInfo(patience(t), &quantdv1.GetServerInfoRequest{})
	return err
}

func TestTLSWithCertificateAndToken(t *testing.T) {
	secured(t, "ca.pem", "client.pem", "client.key", "token")
	address := needs(t, "TEST_TLS_ADDRESS")
	client := dial(t, address)
	if err := ask(t, client); err != nil {
		t.Fatal(err)
	}
	// By the server's name, with two MiB in each direction.
	client = dial(t, "dns:///localhost"+address[strings.LastIndex(address, ":"):])
	answer, err := client.DynamicQuantize(patience(t), &quantdv1.DynamicQuantizeRequest{X: FromFloat32s(make([]float32, 2<<20), 2<<20)})
	if err != nil || len(answer.Y.GetRawData()) != 2<<20 {
		t.Fatal(err)
	}
}

func TestTLSWithoutThem(t *testing.T) {
	address := needs(t, "TEST_TLS_ADDRESS")
	for name, with := range map[string]struct {
		files [4]string
		code  codes.Code
	}{
		"plain text":        {[4]string{"", "", "", ""}, codes.Unavailable},
		"another authority": {[4]string{"other-ca.pem", "client.pem", "client.key", "token"}, codes.Unavailable},
		"no certificate":    {[4]string{"ca.pem", "", "", "token"}, codes.Unavailable},
		"no token":          {[4]string{"ca.pem", "client.pem", "client.key", ""}, codes.Unauthenticated},
		"wrong token":       {[4]string{"ca.pem", "client.pem", "client.key", "wrong-token"}, codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			secured(t, with.files[0], with.files[1], with.files[2], with.files[3])
			failure(t, ask(t, dial(t, address)), with.code)
		})
	}
}

func TestTLSFilesThatAreWrong(t *testing.T) {
	for says, files := range map[string][4]string{
		"QUANTD_TLS_CA: open":                     {"none.pem", "", "", ""},
		"has no certificate in PEM":               {"token", "", "", ""},
		"needs both":                              {"ca.pem", "client.pem", "", ""},
		"QUANTD_TLS_CERT, QUANTD_TLS_KEY":         {"ca.pem", "client.pem", "ca.pem", ""},
		"QUANTD_AUTH_TOKEN_FILE: stat":            {"ca.pem", "", "", "none"},
		"has no token":                            {"ca.pem", "", "", "empty"},
		"contains blanks or non-ASCII characters": {"ca.pem", "", "", "ca.pem"},
		"credentials require transport level":     {"", "", "", "token"},
	} {
		t.Run(says, func(t *testing.T) {
			secured(t, files[0], files[1], files[2], files[3])
			if client, err := Dial("192.0.2.1"); err == nil || !strings.Contains(err.Error(), says) {
				t.Fatalf("%v, %v", client, err)
			}
		})
	}
}

// After a replacement, the next call uses the new token.
func TestTokenThatChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	put := func(name string) {
		content, err := os.ReadFile(filepath.Join(needs(t, "TEST_CERTIFICATES"), name))
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("wrong-token")
	secured(t, "ca.pem", "client.pem", "client.key", path)
	client := dial(t, needs(t, "TEST_TLS_ADDRESS"))
	failure(t, ask(t, client), codes.Unauthenticated)
	put("token")
	if err := ask(t, client); err != nil {
		t.Fatal(err)
	}
	// If the file is missing, the last token is used.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := ask(t, client); err != nil {
		t.Fatal(err)
	}
}

func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	put := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for content, want := range map[string]string{
		"one": "one", "\n one \r\ntwo\n": "one", "# old\n\n  #older\none\ntwo\n": "one",
		"": "", "\n# none\n": "", "one two\n": "",
	} {
		put(content)
		if token, err := (&tokenFile{path: path}).read(); token != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", content, token, err)
		}
	}
	// While the file is missing, or has no token, the last one is used.
	file := &tokenFile{path: path}
	expect := func(want string) {
		t.Helper()
		if token, err := file.read(); token != want || err != nil {
			t.Fatalf("%q, %v", token, err)
		}
	}
	put("first")
	expect("first")
	put("")
	expect("first")
	put("# soon\n")
	expect("first")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("first")
	put("# new\nsecond\n")
	expect("second")
}
