package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/gateway"
)

func TestABackendKnowsItsGatewayOrDoesNotStart(t *testing.T) {
	mutual := &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	oneSided := &tls.Config{MinVersion: tls.VersionTLS13}
	asked := &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	for _, c := range []struct {
		address string
		tls     *tls.Config
		good    bool
	}{
		{"unix:/run/x.sock", nil, true},
		{"127.0.0.1:9000", nil, true},
		{"127.8.9.1:9000", nil, true},
		{"[::1]:9000", nil, true},
		{"localhost:9000", nil, true},
		{"0.0.0.0:9000", nil, false},
		{":9000", nil, false},
		{"[::]:9000", nil, false},
		{"10.0.0.7:9000", nil, false},
		{"memory.example:9000", nil, false},
		{"0.0.0.0:9000", oneSided, false},
		{"0.0.0.0:9000", asked, false},
		{"0.0.0.0:9000", mutual, true},
	} {
		err := gateway.CheckTrust(c.address, c.tls)
		if (err == nil) != c.good || (err != nil && !errors.Is(err, gateway.ErrOpenToOthers)) {
			t.Errorf("CheckTrust(%q, %v) = %v", c.address, c.tls != nil, err)
		}
	}
	if err := gateway.CheckTrust("9000", nil); err == nil {
		t.Error("an address without a port passed")
	}
}

// authority signs certificates for the test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

// issue writes a certificate for name and its key, and returns the files.
func (a authority) issue(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "CERTIFICATE", der), write(t, "EC PRIVATE KEY", secret)
}

func write(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMutualTLSLetsInTheGatewayAlone(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t, "memory.test")
	config, err := gateway.MutualTLS(cert, key, write(t, "CERTIFICATE", ours.cert.Raw), []string{"gateway.test"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = config
	server.StartTLS()
	defer server.Close()

	roots := x509.NewCertPool()
	roots.AddCert(ours.cert)
	for _, c := range []struct {
		who  string
		by   authority
		name string
		good bool
	}{
		{"the gateway", ours, "gateway.test", true},
		{"another workload of the same authority", ours, "elsewhere.test", false},
		{"the gateway's name from another authority", others, "gateway.test", false},
		{"nobody", authority{}, "", false},
	} {
		client := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, ServerName: "memory.test"}
		if c.name != "" {
			certFile, keyFile := c.by.issue(t, c.name)
			pair, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				t.Fatal(err)
			}
			client.Certificates = []tls.Certificate{pair}
		}
		transport := &http.Transport{TLSClientConfig: client}
		r, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(server.URL)
		if err == nil {
			_ = r.Body.Close() // it is empty
		}
		transport.CloseIdleConnections()
		if (err == nil) != c.good {
			t.Errorf("%s: %v", c.who, err)
		}
	}
}
