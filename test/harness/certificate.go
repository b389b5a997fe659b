package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"time"
)

// ServerName is the name in the certificate.
const ServerName = "server.test"

// Certificate is a self-signed certificate with its key, as lines of PEM: the form that configurations take.
type Certificate struct {
	Certificate []string
	Key         []string
}

// SelfSigned returns the certificate of all servers of this program.
func SelfSigned(owner Owner) Certificate {
	owner.Helper()
	certificate, err := selfSigned()
	if err != nil {
		owner.Fatalf("make a certificate: %v", err)
	}
	return certificate
}

// pair is the certificate for a server of this program's own.
func (c Certificate) pair() (tls.Certificate, error) {
	return tls.X509KeyPair([]byte(strings.Join(c.Certificate, "\n")), []byte(strings.Join(c.Key, "\n")))
}

var selfSigned = sync.OnceValues(func() (Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: ServerName},
		DNSNames:              []string{ServerName},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Certificate{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Certificate{}, err
	}
	return Certificate{pemLines("CERTIFICATE", certificate), pemLines("PRIVATE KEY", private)}, nil
})

func pemLines(kind string, content []byte) []string {
	text := string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
	return strings.Split(strings.TrimSpace(text), "\n")
}
