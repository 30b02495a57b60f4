package engine

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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// authority signs certificates for tests.
type authority struct {
	dir, ca string // ca is the file of the authority's own certificate
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{dir: t.TempDir(), key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key))
	a.ca = a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(t *testing.T, name, kind string, der []byte) string {
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pair writes a certificate for 127.0.0.1, which expires at end, and its key.
func (a *authority) pair(t *testing.T, name string, end time.Time) (cert, key string) {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	der := must(x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &private.PublicKey, a.key))
	return a.write(t, name+".pem", "CERTIFICATE", der), a.write(t, name+".key", "EC PRIVATE KEY", must(x509.MarshalECPrivateKey(private)))
}

// startServer starts a server with a certificate of the authority, which expires at end, and
// returns its URL. clientAuth says whether the server requires client certificates.
func (a *authority) startServer(t *testing.T, end time.Time, clientAuth tls.ClientAuthType) string {
	cert, key := a.pair(t, "server", end)
	pool := x509.NewCertPool()
	pool.AddCert(must(x509.ParseCertificate(must(tls.LoadX509KeyPair(cert, key)).Certificate[0])))
	pool.AppendCertsFromPEM(must(os.ReadFile(a.ca)))
	return listen(t, &server.Options{TLS: true, TLSTimeout: 60, TLSVerify: clientAuth == tls.RequireAndVerifyClientCert, TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{must(tls.LoadX509KeyPair(cert, key))}, ClientAuth: clientAuth, ClientCAs: pool,
	}})
}

// Every certificate problem is reported without waiting for Patience. The error says whether the
// server's or the client's certificate is the cause, and what to do.
func TestTLS(t *testing.T) {
	t.Parallel()
	ours, strangers := newAuthority(t, "ours"), newAuthority(t, "strangers")
	soon, past := time.Now().Add(24*time.Hour), time.Now().Add(-time.Hour)
	strict, open, old := ours.startServer(t, soon, tls.RequireAndVerifyClientCert), ours.startServer(t, soon, tls.NoClientCert), ours.startServer(t, past, tls.NoClientCert)
	plain := listen(t, &server.Options{})
	good, goodKey := ours.pair(t, "worker", soon)
	late, lateKey := ours.pair(t, "late", past)
	alien, alienKey := strangers.pair(t, "alien", soon)
	junk := strangers.write(t, "junk", "NOTHING", nil)
	for _, c := range []Cluster{{URL: strict, CA: ours.ca, Cert: good, Key: goodKey}, {URL: open, CA: ours.ca}} {
		conn, err := Dial(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	for name, c := range map[string]struct {
		at   Cluster
		code int
		want []string // in the message or the hint
	}{
		"no authority":          {Cluster{URL: open}, 7, []string{"are not trusted", "unknown authority", "nats.tls.ca"}},
		"another authority":     {Cluster{URL: open, CA: strangers.ca}, 7, []string{"are not trusted", "unknown authority", "nats.tls.ca"}},
		"another name":          {Cluster{URL: strings.Replace(open, "127.0.0.1", "localhost", 1), CA: ours.ca}, 7, []string{"are not trusted", "localhost", "host names in the servers' certificates"}},
		"an expired server":     {Cluster{URL: old, CA: ours.ca}, 7, []string{"are not trusted", "expired", "renew the servers' certificates"}},
		"a server without TLS":  {Cluster{URL: plain, CA: ours.ca}, 7, []string{"are not trusted", "disagree about TLS"}},
		"no certificate":        {Cluster{URL: strict, CA: ours.ca}, 4, []string{"certificate required", "nats.tls.cert"}},
		"a stranger's":          {Cluster{URL: strict, CA: ours.ca, Cert: alien, Key: alienKey}, 4, []string{"alien.pem", "strangers", "ca_file"}},
		"an expired one":        {Cluster{URL: strict, CA: ours.ca, Cert: late, Key: lateKey}, 4, []string{"late.pem expired at", "valid"}},
		"junk for an authority": {Cluster{URL: open, CA: junk}, 4, []string{"contains no PEM certificate"}},
	} {
		c.at.Patience = time.Hour // the test would time out if Dial retried
		_, err := Dial(t.Context(), c.at)
		message := ""
		coded, ok := errors.AsType[interface {
			error
			ExitCode() int
			Hint() string
		}](err)
		if ok {
			message = coded.Error() + " " + coded.Hint()
		}
		for _, want := range c.want {
			if !strings.Contains(message, want) {
				t.Errorf("%s: %q is not in %q (%v)", name, want, message, err)
			}
		}
		if ok && coded.ExitCode() != c.code {
			t.Errorf("%s: code %d, want %d", name, coded.ExitCode(), c.code)
		}
	}
}

// The hint for a wrong password says to check it, and the error does not contain it.
func TestWrongPasswords(t *testing.T) {
	t.Parallel()
	serverURL := listen(t, &server.Options{Username: "tracesmith", Password: "right-one"})
	for user, want := range map[string]string{"": "set nats.creds to a credentials file", "tracesmith:wrong-one@": "check the user and the password in nats.url"} {
		_, err := Dial(t.Context(), Cluster{URL: strings.Replace(serverURL, "nats://", "nats://"+user, 1), Patience: time.Hour})
		denied, ok := errors.AsType[*AccessError](err)
		if !ok || !strings.Contains(denied.Hint(), want) || strings.Contains(denied.Error(), "wrong-one") {
			t.Errorf("%q: %v", user, err)
		}
	}
	conn, err := Dial(t.Context(), Cluster{URL: strings.Replace(serverURL, "nats://", "nats://tracesmith:right-one@", 1)})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
