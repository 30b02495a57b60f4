package stores

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/tracesmith/tracesmith/sinks"
)

// UnfinishedWrites implements sinks.Sweeper: it lists multipart uploads that were neither
// completed nor aborted.
func (s *s3Store) UnfinishedWrites(ctx context.Context) ([]sinks.UnfinishedWrite, error) {
	found, err := s.unfinished(ctx, s.prefix)
	if err == nil && len(found) == 0 && s.prefix != "" { // MinIO treats the prefix as a whole key
		found, err = s.unfinished(ctx, "")
	}
	var out []sinks.UnfinishedWrite
	for _, u := range found {
		key, ok := strings.CutPrefix(aws.ToString(u.Key), s.prefix)
		if !ok { // not an object of this store
			continue
		}
		out = append(out, sinks.UnfinishedWrite{
			Key: key, Name: s.URI() + "/" + key + "?uploadId=" + aws.ToString(u.UploadId), Since: aws.ToTime(u.Initiated),
			Remove: func(ctx context.Context) error { return s.abort(ctx, key, u) },
		})
	}
	slices.SortFunc(out, func(a, b sinks.UnfinishedWrite) int { return a.Since.Compare(b.Since) })
	return out, err
}

// unfinished lists the unfinished uploads of keys with a prefix.
func (s *s3Store) unfinished(ctx context.Context, prefix string) (all []types.MultipartUpload, err error) {
	pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err = s.mapErr("listing unfinished uploads below", prefix, err); errors.Is(err, sinks.ErrNotFound) {
			break // some servers report a bucket without uploads this way
		} else if err != nil {
			return all, err
		}
		all = append(all, page.Uploads...)
	}
	return all, nil
}

func (s *s3Store) abort(ctx context.Context, key string, u types.MultipartUpload) error {
	_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: u.Key, UploadId: u.UploadId})
	if err = s.mapErr("removing an unfinished upload of", key, err); errors.Is(err, sinks.ErrNotFound) {
		return nil // it was completed or removed in the meantime
	}
	return err
}
