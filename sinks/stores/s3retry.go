package stores

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	smithy "github.com/aws/smithy-go"
)

// s3Retryer is the one place where requests are repeated: 8 tries. Beyond what
// the SDK takes for passing, a conditional put that met another is one, and an
// answer that breaks off before it can be read; a certificate that is not trusted
// will not be so later.
func s3Retryer(longest time.Duration) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = 8, longest
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
				return aws.FalseTernary
			}
			return aws.UnknownTernary
		})}, append(o.Retryables,
			retry.RetryableErrorCode{Codes: map[string]struct{}{"ConditionalRequestConflict": {}}},
			retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				if _, broken := errors.AsType[*smithy.DeserializationError](err); broken {
					return aws.TrueTernary
				}
				return aws.UnknownTernary
			}))...)
	})
}

// s3Client ends requests whose connection is silent in both directions; a slow
// upload is not silent.
func s3Client(silence time.Duration) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		dial := t.DialContext
		t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &impatientConn{c, silence}, nil
		}
	})
}

// impatientConn is a connection whose reads fail after a time in which nothing
// was read or written.
type impatientConn struct {
	net.Conn
	silence time.Duration
}

func (c *impatientConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *impatientConn) Write(b []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if err == nil {
		err = c.SetReadDeadline(time.Now().Add(c.silence))
	}
	return n, err
}
