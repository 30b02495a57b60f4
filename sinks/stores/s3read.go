package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tracesmith/tracesmith/sinks"
)

func (s *s3Store) Get(ctx context.Context, key string) ([]byte, error) {
	body, _, err := s.getWithETag(ctx, key)
	return body, err
}

// getWithETag reads an object and its ETag.
func (s *s3Store) getWithETag(ctx context.Context, key string) ([]byte, *string, error) {
	r, err := s.open(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, nil, err
	}
	return body, r.tag, nil
}

func (s *s3Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := s.open(ctx, key)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s *s3Store) open(ctx context.Context, key string) (*s3Body, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: s.key(key)})
	if err != nil {
		return nil, s.mapErr("opening", key, err)
	}
	return &s3Body{ctx: ctx, store: s, key: key, tag: out.ETag, body: out.Body}, nil
}

// s3Body reads an object. If the connection breaks, it requests the rest of the same
// content. The SDK does not do that, because it counts a request as successful once the
// body begins.
type s3Body struct {
	ctx   context.Context
	store *s3Store
	key   string
	tag   *string
	body  io.ReadCloser
	read  int64
	tries int // failed reads since the last byte
	err   error
}

func (b *s3Body) Read(p []byte) (int, error) {
	for b.err == nil {
		n, err := b.body.Read(p)
		if b.read += int64(n); n > 0 {
			b.tries = 0
			return n, nil
		}
		switch {
		case errors.Is(err, io.EOF):
			b.err = io.EOF
		case err != nil:
			b.err = b.resume(err)
		}
	}
	return 0, b.err
}

// resume requests the rest, after a pause that the SDK's retryer chooses.
func (b *s3Body) resume(cause error) error {
	cause = b.store.mapErr("reading", b.key, cause)
	retryer := b.store.client.Options().Retryer
	if b.tries++; b.tries >= retryer.MaxAttempts() || b.ctx.Err() != nil {
		return errors.Join(cause, b.ctx.Err())
	}
	pause, err := retryer.RetryDelay(b.tries, cause)
	if err != nil {
		return cause
	}
	select {
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-time.After(pause):
	}
	_ = b.body.Close() // it has failed already
	out, err := b.store.client.GetObject(b.ctx, &s3.GetObjectInput{
		Bucket: &b.store.bucket, Key: b.store.key(b.key), IfMatch: b.tag, Range: aws.String(fmt.Sprintf("bytes=%d-", b.read)),
	})
	if err != nil {
		b.body = io.NopCloser(strings.NewReader(""))
		if err = b.store.mapErr("reading", b.key, err); errors.Is(err, sinks.ErrExists) {
			err = fmt.Errorf("reading %s: %w", b.key, sinks.ErrChanged)
		}
		return err
	}
	b.body = out.Body
	return nil
}

func (b *s3Body) Close() error { return b.body.Close() }

func (s *s3Store) Head(ctx context.Context, key string) (sinks.Object, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.key(key)})
	if err != nil {
		return sinks.Object{}, s.mapErr("looking up", key, err)
	}
	return sinks.Object{Key: key, Size: aws.ToInt64(out.ContentLength), SHA256: out.Metadata[s3MetaSHA]}, nil
}

// List leaves SHA256 empty.
func (s *s3Store) List(ctx context.Context, prefix string) iter.Seq2[sinks.Object, error] {
	return func(yield func(sinks.Object, error) bool) {
		pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.key(prefix)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(sinks.Object{}, s.mapErr("listing", prefix, err))
				return
			}
			for _, o := range page.Contents {
				key := strings.TrimPrefix(aws.ToString(o.Key), s.prefix)
				if strings.HasPrefix(key, reserved) {
					continue
				}
				if !yield(sinks.Object{Key: key, Size: aws.ToInt64(o.Size)}, nil) {
					return
				}
			}
		}
	}
}
