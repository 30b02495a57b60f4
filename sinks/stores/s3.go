package stores

// The S3 store: objects below a prefix of a bucket. Creation is a put with
// If-None-Match. The answer to a put can be lost and the SDK's retry then be
// refused; a nonce in the object's metadata tells our own first try from
// another writer's.

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	registry.Register(plugin.Spec[sinks.Store, request]{
		Kind: "s3", Summary: "a bucket of an S3-compatible server",
		New: func(_ any, r request) (sinks.Store, error) { return newS3(r.ctx, r.uri, r.s3) },
	})
}

// Metadata names of an object.
const (
	s3MetaSHA   = "sha256"
	s3MetaNonce = "tracesmith-put"
)

type s3Store struct {
	client   *s3.Client
	uploads  *transfermanager.Client
	bucket   string
	prefix   string // "" or ends in a slash
	endpoint string // for messages
}

// newS3 opens bucket/prefix. Retries live in the SDK alone: 8 attempts, up to
// 20 s apart.
func newS3(ctx context.Context, place string, c S3Config) (*s3Store, error) {
	bucket, prefix, _ := strings.Cut(place, "/")
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		if err := checkKey(prefix); err != nil {
			return nil, err
		}
		prefix += "/"
	}
	checksum := aws.RequestChecksumCalculationWhenSupported
	switch c.Checksum {
	case "", "auto":
	case "off":
		checksum = aws.RequestChecksumCalculationWhenRequired
	default:
		return nil, fmt.Errorf("s3 checksum %q: choose auto or off", c.Checksum)
	}
	httpClient := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = 30 * time.Second
	})
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(httpClient),
		config.WithLogger(logging.Nop{}),
		config.WithRetryer(func() aws.Retryer {
			std := retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 8, 20*time.Second })
			return retry.AddWithErrorCodes(std, "ConditionalRequestConflict")
		}))
	if err != nil {
		return nil, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	if c.Region != "" {
		cfg.Region = c.Region
	} else if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	credCtx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(credCtx); err != nil {
		return nil, fmt.Errorf("opening s3://%s: %w: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE", bucket, sinks.ErrDenied)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		if c.Endpoint != "" {
			o.BaseEndpoint = aws.String(c.Endpoint)
		}
		o.UsePathStyle = c.PathStyle || c.Endpoint != ""
		o.RequestChecksumCalculation = checksum
		o.DisableLogOutputChecksumValidationSkipped = true
	})
	uploads := transfermanager.New(client, func(o *transfermanager.Options) {
		o.PartSizeBytes, o.MultipartUploadThreshold = 8<<20, 16<<20
		o.Concurrency, o.FailTimeout = 4, 30*time.Second
		o.RequestChecksumCalculation = checksum
	})
	return &s3Store{client: client, uploads: uploads, bucket: bucket, prefix: prefix, endpoint: c.Endpoint}, nil
}

func (s *s3Store) URI() string {
	return strings.TrimSuffix("s3://"+s.bucket+"/"+s.prefix, "/")
}

func (s *s3Store) key(key string) *string { return aws.String(s.prefix + key) }

func (s *s3Store) Create(ctx context.Context, key string, body []byte) error {
	if err := checkNewKey(key); err != nil {
		return err
	}
	return s.create(ctx, key, body)
}

func (s *s3Store) create(ctx context.Context, key string, body []byte) error {
	meta := map[string]string{s3MetaSHA: schemas.HashBytes(body), s3MetaNonce: rand.Text()}
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: s.key(key), Body: bytes.NewReader(body),
		IfNoneMatch: aws.String("*"), Metadata: meta,
	})
	return s.settle(ctx, key, meta[s3MetaNonce], err)
}

func (s *s3Store) CreateFile(ctx context.Context, key, path string) error {
	if err := checkNewKey(key); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening file for object %s: %w", key, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("reading file for object %s: %w", key, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading file for object %s: %w", key, err)
	}
	meta := map[string]string{s3MetaSHA: hex.EncodeToString(h.Sum(nil)), s3MetaNonce: rand.Text()}
	_, err = s.uploads.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: &s.bucket, Key: s.key(key), Body: f,
		IfNoneMatch: aws.String("*"), Metadata: meta,
	})
	return s.settle(ctx, key, meta[s3MetaNonce], err)
}

// settle maps the error of a conditional put; "taken" by our own nonce means an
// earlier try of the same call had won.
func (s *s3Store) settle(ctx context.Context, key, nonce string, err error) error {
	err = s.mapErr("creating", key, err)
	if !errors.Is(err, sinks.ErrExists) {
		return err
	}
	out, herr := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.key(key)})
	if herr == nil && out.Metadata[s3MetaNonce] == nonce {
		return nil
	}
	return err
}

func (s *s3Store) Replace(ctx context.Context, key string, body []byte) error {
	if err := checkNewKey(key); err != nil {
		return err
	}
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: s.key(key), Body: bytes.NewReader(body),
		Metadata: map[string]string{s3MetaSHA: schemas.HashBytes(body)},
	})
	return s.mapErr("replacing", key, err)
}

func (s *s3Store) Get(ctx context.Context, key string) ([]byte, error) {
	r, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading %s from %s: %w", key, s.URI(), err)
	}
	return body, nil
}

func (s *s3Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: s.key(key)})
	if err != nil {
		return nil, s.mapErr("opening", key, err)
	}
	return out.Body, nil
}

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

func (s *s3Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.key(key)})
	if err = s.mapErr("deleting", key, err); errors.Is(err, sinks.ErrNotFound) {
		return nil
	}
	return err
}

func (s *s3Store) Probe(ctx context.Context) error { return probe(ctx, s, s.create) }
