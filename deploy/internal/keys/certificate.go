package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 365 * 24 * time.Hour

// pair is a certificate and its key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// certificates makes the authority and what it signs. Every server may also be a client: leaf nodes are.
func (m *maker) certificates(p Plan) {
	ca := m.certificate("ca", &x509.Certificate{Subject: pkix.Name{CommonName: "Partidor on one machine"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	names := []string{"nats-hub", "postgres"}
	for _, r := range p.Regions {
		names = append(names, "nats-"+r)
	}
	for _, name := range names {
		c := &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
		for _, h := range p.Hosts {
			if ip := net.ParseIP(h); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, h)
			}
		}
		m.certificate(name, c, ca)
	}
}

// certificate keeps or makes name.crt and name.key, signed by the authority or by itself.
func (m *maker) certificate(name string, c *x509.Certificate, ca *pair) *pair {
	if m.err != nil {
		return nil
	}
	kept, err := load(m.dir, name)
	if err == nil {
		return kept
	}
	if !errors.Is(err, os.ErrNotExist) {
		m.err = fmt.Errorf("certificate %s: %w", name, err)
		return nil
	}
	made, err := sign(c, ca)
	if err != nil {
		m.err = fmt.Errorf("certificate %s: %w", name, err)
		return nil
	}
	der, err := x509.MarshalPKCS8PrivateKey(made.key)
	if err != nil {
		m.err = fmt.Errorf("certificate %s: %w", name, err)
		return nil
	}
	m.file(name+".crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.certificate.Raw})))
	m.file(name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	return made
}

func sign(c *x509.Certificate, ca *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
	parent := &pair{c, key}
	if ca != nil {
		parent = ca
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent.certificate, &key.PublicKey, parent.key)
	if err != nil {
		return nil, err
	}
	made, err := x509.ParseCertificate(der)
	return &pair{made, key}, err
}

// load reads a pair that was made before; its error is os.ErrNotExist where either file is missing.
func load(dir, name string) (*pair, error) {
	var blocks [2]*pem.Block
	for i, end := range []string{".crt", ".key"} {
		data, err := os.ReadFile(filepath.Join(dir, name+end))
		if err != nil {
			return nil, err
		}
		if blocks[i], _ = pem.Decode(data); blocks[i] == nil {
			return nil, fmt.Errorf("%s%s is not PEM", name, end)
		}
	}
	certificate, err := x509.ParseCertificate(blocks[0].Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(blocks[1].Bytes)
	if err != nil {
		return nil, err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s.key is a %T", name, key)
	}
	return &pair{certificate, ec}, nil
}
