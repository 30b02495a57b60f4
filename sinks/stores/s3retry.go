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

// s3Retryer tries each request up to 8 times. No other layer may repeat requests. In
// addition to the errors that the SDK considers temporary, it retries a conditional
// put that conflicts with another one and an answer that breaks off. It does not
// retry if the server's certificate is not trusted.
func s3Retryer(maxBackoff time.Duration) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = 8, maxBackoff
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

// s3Client returns an HTTP client that ends a request if its connection transfers
// nothing in either direction for the given time. A slow upload continues.
func s3Client(silence time.Duration) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		dial := t.DialContext
		t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &idleTimeoutConn{c, silence}, nil
		}
	})
}

// idleTimeoutConn is a connection whose reads fail if nothing was read or written
// for the time of silence.
type idleTimeoutConn struct {
	net.Conn
	silence time.Duration
}

func (c *idleTimeoutConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *idleTimeoutConn) Write(b []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if err == nil {
		err = c.SetReadDeadline(time.Now().Add(c.silence))
	}
	return n, err
}
