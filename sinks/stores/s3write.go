package stores

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func (s *s3Store) Create(ctx context.Context, key string, body []byte) error {
	if err := checkNewKey(key); err != nil {
		return err
	}
	return s.create(ctx, key, body)
}

func (s *s3Store) create(ctx context.Context, key string, body []byte) error {
	meta := s3Meta(schemas.HashBytes(body))
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: s.key(key), Body: bytes.NewReader(body),
		IfNoneMatch: aws.String("*"), Metadata: meta,
	})
	return s.confirm(ctx, key, meta, s.mapErr("creating", key, err))
}

// s3Meta returns the metadata of a new object: sha, the hash of its content, and a nonce that
// identifies the put.
func s3Meta(sha string) map[string]string {
	return map[string]string{s3MetaSHA: sha, s3MetaNonce: rand.Text()}
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
	meta := s3Meta(hex.EncodeToString(h.Sum(nil)))
	_, err = s.uploads.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: &s.bucket, Key: s.key(key), Body: f,
		IfNoneMatch: aws.String("*"), Metadata: meta,
	})
	return s.confirm(ctx, key, meta, s.mapErr("creating", key, err))
}

// confirm checks whether a put or copy that returned err was successful after all. If the object
// has the nonce in meta, an earlier attempt wrote it and only the answer was lost, so confirm
// returns nil. Otherwise it returns err.
func (s *s3Store) confirm(ctx context.Context, key string, meta map[string]string, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, sinks.ErrDenied) {
		return err
	}
	out, herr := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.key(key)})
	if herr == nil && out.Metadata[s3MetaNonce] == meta[s3MetaNonce] {
		return nil
	}
	return err
}

// Copy lets the server copy the object. Some servers ignore If-None-Match when they copy, so
// Copy first checks that key does not exist. On such servers, Copy can still overwrite an
// object that another writer creates after the check.
func (s *s3Store) Copy(ctx context.Context, from, key string) error {
	if err := checkNewKey(key); err != nil {
		return err
	}
	src, err := s.Head(ctx, from)
	if err != nil {
		return err
	}
	switch _, err := s.Head(ctx, key); {
	case err == nil:
		return fmt.Errorf("copying to %s: %w", key, sinks.ErrExists)
	case !errors.Is(err, sinks.ErrNotFound):
		return err
	}
	meta := s3Meta(src.SHA256)
	// EscapedPath keeps a +, which S3 would decode as a space.
	source := (&url.URL{Path: s.bucket + "/" + s.prefix + from}).EscapedPath()
	_, err = s.client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: &s.bucket, Key: s.key(key), CopySource: aws.String(strings.ReplaceAll(source, "+", "%2B")),
		IfNoneMatch: aws.String("*"), Metadata: meta, MetadataDirective: types.MetadataDirectiveReplace,
	})
	return s.confirm(ctx, key, meta, s.mapErr("copying", key, err))
}

func (s *s3Store) Swap(ctx context.Context, key string, old, body []byte) error {
	if err := checkNewKey(key); err != nil {
		return err
	}
	current, tag, err := s.getWithETag(ctx, key)
	if errors.Is(err, sinks.ErrNotFound) || err == nil && !bytes.Equal(current, old) {
		return fmt.Errorf("replacing %s in %s: %w", key, s.URI(), sinks.ErrChanged)
	}
	if err != nil {
		return err
	}
	return s.replace(ctx, key, tag, body)
}

// replace writes body to key if the ETag of the object is still tag. If it is not, or the
// object is gone, replace returns sinks.ErrChanged.
func (s *s3Store) replace(ctx context.Context, key string, tag *string, body []byte) error {
	meta := s3Meta(schemas.HashBytes(body))
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: s.key(key), Body: bytes.NewReader(body), IfMatch: tag, Metadata: meta,
	})
	err = s.mapErr("replacing", key, err)
	if errors.Is(err, sinks.ErrExists) || errors.Is(err, sinks.ErrNotFound) { // mapErr reports a failed If-Match as ErrExists
		err = fmt.Errorf("replacing %s in %s: %w", key, s.URI(), sinks.ErrChanged)
	}
	return s.confirm(ctx, key, meta, err)
}

func (s *s3Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.key(key)})
	if err = s.mapErr("deleting", key, err); errors.Is(err, sinks.ErrNotFound) {
		return nil
	}
	return err
}
