package stores

// The S3 store: objects below a prefix of a bucket. Create is a put with
// If-None-Match, Swap a put with If-Match. If the answer to a put is lost, the
// server refuses the SDK's retry. A nonce in the object's metadata then shows
// whether the object comes from this store's first attempt or from another writer.

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/tracesmith/tracesmith/configs/plugin"
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

// newS3 opens the store at place, BUCKET/PREFIX.
func newS3(ctx context.Context, place string, c S3Config) (*s3Store, error) {
	bucket, prefix, _ := strings.Cut(place, "/")
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		if err := checkKey(prefix); err != nil {
			return nil, err
		}
		prefix += "/"
	}
	if u, err := url.Parse(c.Endpoint); c.Endpoint != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return nil, fmt.Errorf("s3 endpoint %q: give a URL: http://HOST:PORT or https://HOST", c.Endpoint)
	}
	checksum := aws.RequestChecksumCalculationWhenSupported
	switch c.Checksum {
	case "", "auto":
	case "off":
		checksum = aws.RequestChecksumCalculationWhenRequired
	default:
		return nil, fmt.Errorf("s3 checksum %q: choose auto or off", c.Checksum)
	}
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(s3Client(cmp.Or(c.Silence, 30*time.Second))),
		config.WithLogger(logging.Nop{}),
		config.WithRetryer(func() aws.Retryer { return s3Retryer(cmp.Or(c.MaxBackoff, 20*time.Second)) }))
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

func (s *s3Store) Probe(ctx context.Context) error {
	return probe(ctx, s, conditionalWrites{
		create: func(key string, body []byte) error { return s.create(ctx, key, body) },
		read: func(key string) (func([]byte) error, error) {
			_, tag, err := s.getWithETag(ctx, key)
			return func(body []byte) error { return s.replace(ctx, key, tag, body) }, err
		},
	})
}
