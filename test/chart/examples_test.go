package chart

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"sigs.k8s.io/yaml"
)

func exampleValues(t *testing.T, name string) (text string, values map[string]any) {
	t.Helper()
	text = readFile(t, filepath.Join(chartDir, "examples", name))
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return text, flat("", values)
}

// The two example files are two sides of the same names, ports and secrets.
func TestExampleMatchesTheNATSChart(t *testing.T) {
	t.Parallel()
	_, nats := exampleValues(t, "nats-values.yaml")
	text, ours := exampleValues(t, "headgate-values.yaml")
	checkObjects(t, with(text).render(t))
	if want := fmt.Sprintf("tls://nats:%v", nats["config.nats.port"]); ours["nats.url"] != want || nats["config.nats.tls.enabled"] != true {
		t.Errorf("nats.url %v, want %v", ours["nats.url"], want)
	}
	const ref = ".valueFrom.secretKeyRef."
	for theirs, own := range map[string]string{
		"config.cluster.replicas":                        "nats.replicas",
		"tlsCA.secretName":                               "nats.tls.existingSecret",
		"container.env.HEADGATE_USER" + ref + "name":     "nats.auth.existingSecret",
		"container.env.HEADGATE_PASSWORD" + ref + "name": "nats.auth.existingSecret",
		"container.env.HEADGATE_USER" + ref + "key":      "nats.auth.userKey",
		"container.env.HEADGATE_PASSWORD" + ref + "key":  "nats.auth.passwordKey",
	} {
		if nats[theirs] == nil || nats[theirs] != ours[own] {
			t.Errorf("%s is %v, %s is %v", theirs, nats[theirs], own, ours[own])
		}
	}
}

// What the example renders reaches a NATS that asks for TLS and for a user.
func TestExampleReachesASecuredNATS(t *testing.T) {
	t.Parallel()
	ca, certificate := certificates(t)
	nats := securedNATS(t, certificate, "limiter", "s3cret")
	text, _ := exampleValues(t, "headgate-values.yaml")
	o := with(text, patient, "{replicaCount: 1, nats: {replicas: 1}}").render(t)
	o = append(o, decode(t, secretObject("nats-server-tls", map[string]string{"ca.crt": ca}))...)
	o = append(o, decode(t, secretObject("headgate-nats", map[string]string{"user": "limiter", "password": "s3cret"}))...)
	f := startFleet(t, o, "tls://"+nats)
	f.row(func() {
		f.each((*pod).stop)
		f.restart()
	})
}

func secretObject(name string, data map[string]string) string {
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\ndata:\n"
	for key, value := range data {
		text += "  " + key + ": " + base64.StdEncoding.EncodeToString([]byte(value)) + "\n"
	}
	return text
}

// securedNATS is a server with TLS and one user, and returns its address.
func securedNATS(t *testing.T, certificate tls.Certificate, user, password string) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), Username: user, Password: password,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, TLSTimeout: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("nats-server does not start")
	}
	return s.Addr().String()
}

// certificates are an authority of one's own, in PEM form, and a certificate of
// it for loopback.
func certificates(t *testing.T) (ca string, certificate tls.Certificate) {
	t.Helper()
	sign := func(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if parentKey == nil {
			parentKey = key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, caKey := sign(authority, authority, nil)
	leafDER, leafKey := sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "nats"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, caKey)
	pemText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	return string(pemText), tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}
}
