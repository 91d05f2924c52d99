package quantd

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
)

const defaultPort = "50051"

// dnsScheme is "dns:", followed by the name server to use if one is given.
var dnsScheme = regexp.MustCompile(`^dns:(//[^/]*/)?`)

// targetOf converts an address as users write it to a gRPC target.
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
	case strings.HasPrefix(address, "unix:"), strings.HasPrefix(address, "unix-abstract:"):
		return address, nil
	case dnsScheme.MatchString(address):
		scheme := dnsScheme.FindString(address)
		host, err := withPort(address[len(scheme):], address)
		return scheme + host, err
	case strings.Contains(address, "://"):
		return address, nil
	}
	return withPort(address, address)
}

// withPort is host:port of host, host:port, [IPv6], [IPv6]:port or a bare IPv6 address; errors show the whole address.
func withPort(host, address string) (string, error) {
	name, port := host, ""
	switch colon := strings.LastIndex(host, ":"); {
	case strings.HasPrefix(host, "["):
		bracket := strings.Index(host, "]")
		if bracket < 0 || bracket+1 < len(host) && host[bracket+1] != ':' {
			return "", fmt.Errorf("address %s: an address that begins with [ must be [IPv6] or [IPv6]:port", address)
		}
		name, port = host[:bracket+1], strings.TrimPrefix(host[bracket+1:], ":")
	case strings.Count(host, ":") > 1:
		name = "[" + host + "]"
	case colon >= 0:
		name, port = host[:colon], host[colon+1:]
	}
	if name == "" {
		return "", fmt.Errorf("address %s names no host", address)
	}
	if port == "" {
		port = defaultPort
	}
	// gRPC would try a port that cannot exist until the deadline.
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", fmt.Errorf("address %s: port %q must be a number from 1 to 65535", address, port)
	}
	return name + ":" + port, nil
}

// isLocal tells whether a target is this machine itself, where nobody else can listen.
func isLocal(target string) bool {
	if strings.HasPrefix(target, "unix:") || strings.HasPrefix(target, "unix-abstract:") {
		return true
	}
	host, _, err := net.SplitHostPort(dnsScheme.ReplaceAllString(target, ""))
	// Not by the first characters: 127.0.0.1.example.org is another machine.
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
