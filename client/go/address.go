package quantd

import (
	"fmt"
	"os"
	"strings"
)

const defaultPort = "50051"

// targetOf is the target, in gRPC's sense, of an address as users write it.
func targetOf(address string) (string, error) {
	if address == "" {
		address = os.Getenv("QUANTD_ADDRESS")
	}
	address = strings.TrimSpace(address)
	switch {
	case address == "":
		return "127.0.0.1:" + defaultPort, nil
	case strings.HasPrefix(address, "http://"), strings.HasPrefix(address, "https://"):
		return "", fmt.Errorf("address %s: quantd speaks gRPC; give host:port, and QUANTD_TLS_CA for TLS", address)
	case strings.HasPrefix(address, "unix:"), strings.HasPrefix(address, "unix-abstract:"), strings.HasPrefix(address, "dns:"):
		return address, nil
	case strings.Contains(address, "://"):
		return address, nil
	case strings.HasPrefix(address, "["):
		if strings.HasSuffix(address, "]") {
			return address + ":" + defaultPort, nil
		}
		if !strings.Contains(address, "]:") {
			return "", fmt.Errorf("address %s: what begins with [ is [IPv6] or [IPv6]:port", address)
		}
		return address, nil
	case strings.HasPrefix(address, ":") && strings.Count(address, ":") == 1:
		return "", fmt.Errorf("address %s names no host", address)
	case strings.Count(address, ":") > 1:
		return "[" + address + "]:" + defaultPort, nil
	case !strings.Contains(address, ":"):
		return address + ":" + defaultPort, nil
	case strings.HasSuffix(address, ":"):
		return address + defaultPort, nil
	}
	return address, nil
}

// isLocal tells whether a target is this machine itself, so that nobody else can listen.
func isLocal(target string) bool {
	for _, prefix := range []string{"unix:", "unix-abstract:", "127.", "localhost:", "[::1]:"} {
		if strings.HasPrefix(target, prefix) {
			return true
		}
	}
	return false
}
