package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// credentials are all the keys of a cluster. They are made for it and die with its directory.
type credentials struct {
	dir       string
	ca        *x509.Certificate
	caKey     *ecdsa.PrivateKey
	CAPEM     []byte
	AdminCert []byte
	AdminKey  []byte
	Accounts  *rsa.PrivateKey // signs service-account tokens
}

const certLife = 24 * time.Hour

func newCredentials(dir string) (*credentials, error) {
	c := &credentials{dir: dir}
	if err := c.makeCA(); err != nil {
		return nil, err
	}
	serving, servingKey, err := c.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	})
	if err != nil {
		return nil, err
	}
	c.AdminCert, c.AdminKey, err = c.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, err
	}
	const bits = 2048 // as clusters have
	if c.Accounts, err = rsa.GenerateKey(rand.Reader, bits); err != nil {
		return nil, fmt.Errorf("make service-account key: %w", err)
	}
	accounts := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(c.Accounts)})
	for name, text := range map[string][]byte{"ca.crt": c.CAPEM, "serving.crt": serving, "serving.key": servingKey, "accounts.key": accounts} {
		if err := os.WriteFile(c.file(name), text, 0o600); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	return c, nil
}

func (c *credentials) file(name string) string { return filepath.Join(c.dir, name) }

func (c *credentials) makeCA() (err error) {
	if c.caKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return fmt.Errorf("make CA: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubetest"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(certLife),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, c.caKey.Public(), c.caKey)
	if err != nil {
		return fmt.Errorf("make CA: %w", err)
	}
	c.CAPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	c.ca, err = x509.ParseCertificate(der)
	return err
}

// issue returns a certificate and its key as PEM.
func (c *credentials) issue(template *x509.Certificate) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate: %w", err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(certLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, c.ca, private.Public(), c.caKey)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), nil
}
