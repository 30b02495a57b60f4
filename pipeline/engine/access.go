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

// accessError returns the *AccessError that explains err, or nil if the servers did not refuse access.
func (o Cluster) accessError(err error) error {
	message := strings.ToLower(errorText(err))
	for _, refusal := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, refusal) {
			return o.newAccessError(strings.TrimPrefix(refusal.Error(), "nats: "), false)
		}
	}
	for _, refusal := range []string{"authorization violation", "authentication expired", "authentication revoked"} {
		if strings.Contains(message, refusal) {
			return o.newAccessError(refusal, false)
		}
	}
	_, alert, remote := strings.Cut(message, "remote error: tls: ")
	for _, refusal := range []string{ // RFC 8446 alerts about the client's certificate, in the words of crypto/tls
		"certificate required", "bad certificate", "unsupported certificate", "revoked certificate", "expired certificate",
		"unknown certificate authority", "unknown certificate", "access denied",
	} {
		if remote && strings.HasPrefix(alert, refusal) {
			return o.newAccessError(refusal, true)
		}
	}
	return nil
}

// newAccessError returns an *AccessError with a remedy for the way in which the client
// authenticates: with a certificate, with credentials, or with a user and a password.
func (o Cluster) newAccessError(why string, certificate bool) error {
	e := &AccessError{Place: o.Place(), Why: why}
	switch {
	case certificate && o.Cert != "":
		e.Why += o.certificateProblem()
		e.Remedy = "set nats.tls.cert and nats.tls.key to a valid certificate, signed by the CA that the servers trust (ca_file in their tls block)"
	case certificate:
		e.Remedy = "the servers require a client certificate: set nats.tls.cert and nats.tls.key"
	case o.Creds != "":
		e.Why += o.credentialsProblem()
		e.Remedy = "set nats.creds to a file with valid credentials of the right account"
	case o.hasUser():
		e.Remedy = "check the user and the password in nats.url"
	}
	return e
}

// hasUser reports whether one of the addresses contains a user.
func (o Cluster) hasUser() bool {
	return slices.ContainsFunc(strings.Split(o.URL, ","), func(part string) bool {
		u, err := url.Parse(strings.TrimSpace(part))
		return err == nil && u.User != nil
	})
}

// certificateProblem says what is wrong with the client certificate, because not all servers say so.
func (o Cluster) certificateProblem() string {
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

// credentialsProblem says when the credentials expired, if they did: servers answer
// the same for expired and for wrong credentials.
func (o Cluster) credentialsProblem() string {
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

// untrustedError returns the *UntrustedError that explains err, or nil for other errors. Retrying
// does not help with an *UntrustedError.
func (o Cluster) untrustedError(err error) error {
	e := &UntrustedError{Place: o.Place(), Err: err}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case unknown:
		e.Remedy = "set nats.tls.ca to the certificate of the CA that signed the servers' certificates"
	case host:
		e.Remedy = "in nats.url, use the host names in the servers' certificates"
	case isInvalid && invalid.Reason == x509.Expired:
		e.Remedy = "renew the servers' certificates, or correct this machine's clock"
	case isInvalid:
		e.Remedy = "give the servers certificates that are valid for server authentication"
	case errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted):
		e.Remedy = "nats.url and the servers disagree about TLS: use tls:// for servers with a tls block, nats:// for others"
	default:
		return nil
	}
	return e
}
