package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// ErrOpenToOthers says that a backend would listen where others than its gateway can reach it, and believe what they say.
var ErrOpenToOthers = errors.New("others than the gateway could reach this address and say who they like to be: " +
	"listen on a unix socket or on loopback, or require the gateway's certificate (mutual TLS)")

// CheckTrust says whether a backend that listens on address, unix:PATH or HOST:PORT, can tell its gateway from others: by
// the file system, by the host, or by the certificate that config demands. config is nil without TLS. A backend calls it
// before it listens, and refuses to start on an error (vllm semantic-router#1445 trusted headers without a boundary).
func CheckTrust(address string, config *tls.Config) error {
	if strings.HasPrefix(address, "unix:") {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen address %q: give unix:PATH or HOST:PORT", address)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() || host == "localhost" {
		return nil
	}
	if config != nil && config.ClientAuth == tls.RequireAndVerifyClientCert && config.ClientCAs != nil {
		return nil
	}
	return fmt.Errorf("listen on %s: %w", address, ErrOpenToOthers)
}

// MutualTLS returns the configuration of a backend that demands its gateway's certificate: signed by the authority in
// caFile and, unless names is empty, with one of names among its DNS or URI subject alternative names. An authority that
// signs more than gateways makes names necessary.
func MutualTLS(certFile, keyFile, caFile string, names []string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("load the backend's certificate: %w", err)
	}
	pem, err := os.ReadFile(caFile) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("load the gateway's authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("load the gateway's authority: %s holds no certificate", caFile)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if len(names) > 0 {
		config.VerifyConnection = func(s tls.ConnectionState) error { return checkNames(s.PeerCertificates[0], names) }
	}
	return config, nil
}

func checkNames(cert *x509.Certificate, names []string) error {
	have := slices.Clone(cert.DNSNames)
	for _, u := range cert.URIs {
		have = append(have, u.String())
	}
	for _, name := range have {
		if slices.Contains(names, name) {
			return nil
		}
	}
	return fmt.Errorf("the client's certificate is for %q, and the gateway's is for one of %q", have, names)
}
