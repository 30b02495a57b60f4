package sources

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// download is a file that is downloaded once into a cache. An interrupted download continues where it stopped, in this
// process or a later one. Processes wait for each other and share the file.
type download struct {
	URL    string        // address of a fixed revision of the file
	SHA256 string        // hash of the file; "" means the hash that the server sends, or no check if it sends none
	Dir    string        // the cache; the hash of URL names the subdirectory of the file
	Wait   time.Duration // time before the first retry, doubled for each further one; 0 means downloadWait
}

const (
	maxDownload   = 8 << 30 // bytes
	downloadTries = 6       // attempts in a row without any data
	downloadWait  = time.Second
)

// partial describes an incomplete download. It is stored beside the incomplete file.
type partial struct {
	ETag   string `json:"etag,omitempty"`   // of the version that is being downloaded
	SHA256 string `json:"sha256,omitempty"` // hash of the file, from the server
}

// get returns the name of the downloaded file.
func (d download) get(ctx context.Context) (string, error) {
	u, err := url.Parse(d.URL)
	if err != nil || u.Host == "" || path.Base(u.Path) == "/" || path.Base(u.Path) == "." {
		return "", fmt.Errorf("%q is not an address from which a dataset can be downloaded: want https://HOST/PATH/FILE", d.URL)
	}
	sum := sha256.Sum256([]byte(d.URL))
	dir := filepath.Join(d.Dir, hex.EncodeToString(sum[:8]))
	name := filepath.Join(dir, path.Base(u.Path))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the cache of datasets: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return "", fmt.Errorf("waiting for another download of %s: %w", d.URL, err)
	}
	defer func() { _ = lock.Close() }()
	if exists(name) {
		if err := d.check(name, d.SHA256); err != nil {
			return "", fmt.Errorf("%w: delete %s to download it again", err, name)
		}
		return name, nil
	}
	if err := d.fetchAll(ctx, name+".part"); err != nil {
		return "", fmt.Errorf("downloading %s: %w", d.URL, err)
	}
	want := d.SHA256
	if want == "" {
		want = readPartial(name + ".part").SHA256
	}
	if err := d.check(name+".part", want); err != nil {
		return "", errors.Join(err, d.remove(name+".part"))
	}
	if err := os.Rename(name+".part", name); err != nil {
		return "", fmt.Errorf("storing the download: %w", err)
	}
	_ = os.Remove(name + ".part.json") // no longer needed, but harmless
	return name, nil
}

// errRetry is wrapped by errors after which a retry may succeed.
var errRetry = errors.New("the connection was cut")

// fetchAll requests the missing part until the file is complete, or until the server has sent nothing downloadTries
// times in a row.
func (d download) fetchAll(ctx context.Context, part string) error {
	wait := cmp.Or(d.Wait, downloadWait)
	for failed, received := 0, false; ; {
		before := sizeOf(part)
		err := d.fetch(ctx, part)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || !errors.Is(err, errRetry) {
			return err
		}
		if failed++; sizeOf(part) > before {
			failed, received = 1, true
		}
		// A server that cannot be reached at the start is not retried.
		opErr, unreachable := errors.AsType[*net.OpError](err)
		unreachable = unreachable && opErr.Op == "dial" && !received
		if failed >= downloadTries || unreachable {
			if kept := sizeOf(part); kept > 0 {
				err = fmt.Errorf("%w: %d bytes are kept, and the same command continues the download", err, kept)
			}
			return fmt.Errorf("%w: this machine may be offline", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait << (failed - 1)):
		}
	}
}

// sizeOf returns the size of a file, or 0 if it does not exist.
func sizeOf(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (d download) remove(part string) error {
	err := os.Remove(part)
	if jsonErr := os.Remove(part + ".json"); !errors.Is(jsonErr, fs.ErrNotExist) {
		err = errors.Join(err, jsonErr)
	}
	return err
}

func readPartial(part string) (p partial) {
	text, err := os.ReadFile(part + ".json")
	if err == nil {
		_ = json.Unmarshal(text, &p) // if this fails, the download starts from the beginning
	}
	return p
}

// check compares the hash of a file with the expected one. "" accepts any file.
func (d download) check(name, want string) error {
	if want == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%s has the SHA-256 %s, want %s: it is another revision, or was changed during the download", d.URL, got, want)
	}
	return nil
}

// fetch sends one request and appends the missing bytes to part. If the file on the server has changed, or if the
// server does not support ranges, it starts from the beginning.
func (d download) fetch(ctx context.Context, part string) (err error) {
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	have, known := sizeOf(part), readPartial(part)
	res, err := d.request(ctx, have, known)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch code := res.StatusCode; {
	case code == http.StatusPartialContent && strings.HasPrefix(res.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
	case code == http.StatusRequestedRangeNotSatisfiable && res.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", have):
		return nil // part is complete
	case code == http.StatusOK, code == http.StatusPartialContent, code == http.StatusRequestedRangeNotSatisfiable:
		// Start from the beginning: the file has changed, or the server does not support ranges.
		if err := f.Truncate(0); err != nil {
			return err
		}
		if code != http.StatusOK {
			return errors.Join(fmt.Errorf("%w: the server sent another range", errRetry), os.WriteFile(part+".json", []byte("{}"), 0o600))
		}
		if err := notePartial(part, res); err != nil {
			return err
		}
	case code == http.StatusTooManyRequests, code >= 500:
		return fmt.Errorf("%w: the server answers %s", errRetry, res.Status)
	default:
		return fmt.Errorf("the server answers %s", res.Status)
	}
	n, err := io.Copy(f, io.LimitReader(res.Body, maxDownload+1))
	switch {
	case err == nil && n > maxDownload:
		err = fmt.Errorf("it is larger than %d GB", maxDownload>>30)
	case err != nil && ctx.Err() == nil:
		err = fmt.Errorf("%w: %w", errRetry, err)
	}
	return errors.Join(err, f.Sync())
}

// request requests the bytes after the first have ones. If the file has changed, If-Range makes the server send all of
// it.
func (d download) request(ctx context.Context, have int64, known partial) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity") // ranges must count the bytes that are hashed
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if strings.HasPrefix(known.ETag, `"`) { // If-Range does not allow weak ETags
			req.Header.Set("If-Range", known.ETag)
		}
	}
	client := &http.Client{Timeout: time.Hour, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 30 * time.Second, ResponseHeaderTimeout: time.Minute,
		ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}}
	res, err := client.Do(req)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", errRetry, err)
	}
	return res, err
}

var sha256Pattern = regexp.MustCompile(`^"?([0-9a-f]{64})"?$`)

// notePartial stores the ETag and the hash of the file from a response. The Hugging Face Hub sends the SHA-256 of large
// files as X-Linked-ETag in its redirects.
func notePartial(part string, res *http.Response) error {
	p := partial{ETag: res.Header.Get("ETag")}
	for step := res; step != nil; step = step.Request.Response {
		if m := sha256Pattern.FindStringSubmatch(step.Header.Get("X-Linked-ETag")); m != nil {
			p.SHA256 = m[1]
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(part+".json", text, 0o600)
}
