package stores

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tracesmith/tracesmith/sinks"
)

// mapErr adds the operation, the key and the store to an SDK error. If package sinks has a
// sentinel for the error, the result wraps the sentinel instead.
func (s *s3Store) mapErr(operation, key string, err error) error {
	if err == nil {
		return nil
	}
	status, code := 0, ""
	if re, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		status = re.HTTPStatusCode()
	}
	if ae, ok := errors.AsType[smithy.APIError](err); ok {
		code = ae.ErrorCode()
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	at := s.URI()
	if s.endpoint != "" {
		at += " at " + s.endpoint
	}
	switch {
	case untrusted:
		return fmt.Errorf("%s %s in %s: %w: set AWS_CA_BUNDLE to the file of the CA that signed the server's certificate", operation, key, at, err)
	case code == "NoSuchBucket":
		return fmt.Errorf("%s %s: bucket %q does not exist (%s): create it or correct the name", operation, key, s.bucket, at)
	case status == http.StatusPreconditionFailed || code == "PreconditionFailed":
		return fmt.Errorf("%s %s in %s: %w", operation, key, at, sinks.ErrExists)
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		return fmt.Errorf("%s %s in %s: %w (%d %s): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the bucket's policy", operation, key, at, sinks.ErrDenied, status, code)
	case status == http.StatusNotImplemented:
		return fmt.Errorf("%s %s in %s: %w: use a server that supports conditional writes; if it rejects checksums, set s3.checksum: off", operation, key, at, err)
	case status == http.StatusNotFound || code == "NoSuchKey":
		return fmt.Errorf("%s %s in %s: %w", operation, key, at, sinks.ErrNotFound)
	}
	return fmt.Errorf("%s %s in %s: %w", operation, key, at, err)
}
