package kvstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// errNoCertificate: a file of authorities holds none.
var errNoCertificate = errors.New("holds no certificate in PEM form")

// client is the configuration for external servers.
func (t TLS) client() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pool, err := t.authorities()
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	if t.CertFile != "" {
		cert, err := t.certificate()
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// routes is the configuration between members, who are client and server to
// one another.
func (t TLS) routes() (*tls.Config, error) {
	pool, err := t.authorities()
	if err != nil {
		return nil, err
	}
	cert, err := t.certificate()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}, nil
}

func (t TLS) authorities() (*x509.CertPool, error) {
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("kvstore: TLS.CAFile: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("kvstore: TLS.CAFile: %s: %w", t.CAFile, errNoCertificate)
	}
	return pool, nil
}

func (t TLS) certificate() (tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("kvstore: TLS.CertFile: %w", err)
	}
	return cert, nil
}
