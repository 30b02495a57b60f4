package engine

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// denied is the *AccessError that err amounts to, nil for other errors.
func (o Cluster) denied(err error) error {
	said := strings.ToLower(text(err))
	for _, refusal := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, refusal) {
			return o.refusal(strings.TrimPrefix(refusal.Error(), "nats: "), false)
		}
	}
	for _, refusal := range []string{"authorization violation", "authentication expired", "authentication revoked"} {
		if strings.Contains(said, refusal) {
			return o.refusal(refusal, false)
		}
	}
	_, alert, remote := strings.Cut(said, "remote error: tls: ")
	for _, refusal := range []string{ // alerts of RFC 8446 that are about our certificate, as crypto/tls words them
		"certificate required", "bad certificate", "unsupported certificate", "revoked certificate", "expired certificate",
		"unknown certificate authority", "unknown certificate", "access denied",
	} {
		if remote && strings.HasPrefix(alert, refusal) {
			return o.refusal(refusal, true)
		}
	}
	return nil
}

// refusal is an *AccessError about what was shown: a certificate, or a name with a
// proof.
func (o Cluster) refusal(why string, certificate bool) error {
	e := &AccessError{Place: o.Place(), Why: why}
	switch {
	case certificate && o.Cert != "":
		e.Why += o.outdated()
		e.Remedy = "give a certificate that is valid and signed by the CA that the servers trust (ca_file of their tls block) with nats.tls.cert and nats.tls.key"
	case certificate:
		e.Remedy = "the servers ask for a certificate: name it with nats.tls.cert and nats.tls.key"
	case o.Creds != "":
		e.Why += o.expired()
		e.Remedy = "get credentials that are valid and of the right account, and name the file with nats.creds"
	case o.named():
		e.Remedy = "check the user and the password in nats.url"
	}
	return e
}

// named tells whether an address has a user.
func (o Cluster) named() bool {
	return slices.ContainsFunc(strings.Split(o.URL, ","), func(part string) bool {
		u, err := url.Parse(strings.TrimSpace(part))
		return err == nil && u.User != nil
	})
}

// outdated says of the certificate whether it is, since not all servers do.
func (o Cluster) outdated() string {
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil || pair.Leaf == nil {
		return ": " + o.Cert
	}
	switch now := time.Now(); {
	case now.After(pair.Leaf.NotAfter):
		return fmt.Sprintf(": %s expired at %s", o.Cert, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(pair.Leaf.NotBefore):
		return fmt.Sprintf(": %s is valid from %s", o.Cert, pair.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf(": %s, signed by %q, is not accepted", o.Cert, pair.Leaf.Issuer)
}

// expired says that the credentials have, if they have: servers give the same answer
// to those as to any others that they do not like.
func (o Cluster) expired() string {
	body, err := os.ReadFile(o.Creds)
	if err != nil {
		return ""
	}
	token, err := nkeys.ParseDecoratedJWT(body)
	parts := strings.Split(token, ".")
	if err != nil || len(parts) != 3 {
		return ""
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.Expires == 0 || time.Now().Unix() < claims.Expires {
		return ""
	}
	return fmt.Sprintf(": %s expired at %s", o.Creds, time.Unix(claims.Expires, 0).UTC().Format(time.RFC3339))
}

// untrusted is the *UntrustedError that err amounts to, nil for other errors.
// Waiting cannot help: the two do not agree on TLS.
func (o Cluster) untrusted(err error) error {
	e := &UntrustedError{Place: o.Place(), Err: err}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case unknown:
		e.Remedy = "name the file of the CA that signed the servers' certificates with nats.tls.ca"
	case host:
		e.Remedy = "use the names that the servers' certificates are for in nats.url"
	case isInvalid && invalid.Reason == x509.Expired:
		e.Remedy = "renew the servers' certificates, or set this machine's clock"
	case isInvalid:
		e.Remedy = "give the servers certificates that are made for servers"
	case errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted):
		e.Remedy = "either the servers or nats.url ask for TLS, and the other does not: use tls:// with servers that have a tls block, nats:// with others"
	default:
		return nil
	}
	return e
}
