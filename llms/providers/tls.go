package providers

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// tlsProblem describes a failed TLS handshake, or a connection on which only one side uses
// TLS, with the remedy. It returns "" for other errors. After
// such an error, the server cannot have processed the request.
func tlsProblem(err error, base string) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return "the server speaks plain HTTP: write http:// in base_url"
	}
	// A TLS server answers a plain HTTP request with an alert record (RFC 8446, section 5.1:
	// type 21, version 3) or, like net/http and nginx, with status 400.
	if strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`) {
		return "the server speaks TLS: write https:// in base_url"
	}
	var reason string
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		reason = fmt.Sprintf("%v: if the server is yours, set SSL_CERT_FILE to the PEM file of its certificate or of the authority that signed it", unknown)
	} else if other, ok := errors.AsType[x509.HostnameError](err); ok {
		reason = fmt.Sprintf("%v: use a name in base_url for which it is valid", other)
	} else if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		reason = fmt.Sprintf("%v: if the clock of this machine is right, the server needs a new certificate", invalid)
	} else if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		reason = bad.Error()
	} else {
		return ""
	}
	return fmt.Sprintf("the certificate of %s is not trusted: %s", base, strings.TrimPrefix(reason, "x509: "))
}
