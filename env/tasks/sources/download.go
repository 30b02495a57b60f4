package sources

import (
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

	"golang.org/x/sys/unix"
)

// download fetches a file once: into Dir, under the hash of its address, whole or
// not at all. What was cut goes on where it ended, at once and in later processes;
// processes wait for each other and share the result.
type download struct {
	URL    string // pinned: it names a revision
	SHA256 string // "" = what the server says of the file, else whatever comes first
	Dir    string
	Client *http.Client  // nil: one with bounds
	Wait   time.Duration // before going on after a cut, longer each time; 0 = downloadWait
}

const (
	maxDownload   = 8 << 30
	downloadTries = 6 // in a row that bring nothing
	downloadWait  = time.Second
)

// partial is what is known of a file that is being downloaded, kept beside it.
type partial struct {
	ETag   string `json:"etag,omitempty"`   // of the version whose bytes are there
	Size   int64  `json:"size,omitempty"`   // of the whole; 0 = not known
	SHA256 string `json:"sha256,omitempty"` // as the server says it
}

func (d download) get(ctx context.Context) (string, error) {
	u, err := url.Parse(d.URL)
	if err != nil || u.Host == "" || path.Base(u.Path) == "/" || path.Base(u.Path) == "." {
		return "", fmt.Errorf("%q is no address to download a dataset from: want https://HOST/PATH/FILE", d.URL)
	}
	sum := sha256.Sum256([]byte(d.URL))
	dir := filepath.Join(d.Dir, hex.EncodeToString(sum[:8]))
	name := filepath.Join(dir, path.Base(u.Path))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the cache of datasets: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("making the cache of datasets: %w", err)
	}
	defer lock.Close()
	if err := waitLock(ctx, lock); err != nil {
		return "", fmt.Errorf("waiting for another download of %s: %w", d.URL, err)
	}
	if exists(name) {
		if err := d.check(name, d.SHA256); err != nil {
			return "", fmt.Errorf("%w: delete %s to download it again", err, name)
		}
		return name, nil
	}
	if err := d.whole(ctx, name+".part"); err != nil {
		return "", fmt.Errorf("downloading %s: %w", d.URL, err)
	}
	want := d.SHA256
	if want == "" {
		want = readPartial(name + ".part").SHA256
	}
	if err := d.check(name+".part", want); err != nil {
		return "", errors.Join(err, d.drop(name+".part"))
	}
	if err := os.Rename(name+".part", name); err != nil {
		return "", fmt.Errorf("keeping the download: %w", err)
	}
	_ = os.Remove(name + ".part.json") // of no use any more, and harmless
	return name, nil
}

// waitLock waits for another process no longer than ctx lasts.
func waitLock(ctx context.Context, f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// errAgain marks a failure after which the same request may do better.
var errAgain = errors.New("the connection was cut")

// whole asks for what is missing until all is there, or the server has brought
// nothing for downloadTries times in a row.
func (d download) whole(ctx context.Context, part string) error {
	wait := d.Wait
	if wait == 0 {
		wait = downloadWait
	}
	for failed, came := 0, false; ; {
		before := sizeOf(part)
		err := d.fetch(ctx, part)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || !errors.Is(err, errAgain) {
			return err
		}
		if failed++; sizeOf(part) > before {
			failed, came = 1, true
		}
		// Who cannot be reached at the start will not be in a minute.
		dial, unreached := errors.AsType[*net.OpError](err)
		unreached = unreached && dial.Op == "dial" && !came
		if failed >= downloadTries || unreached {
			if kept := sizeOf(part); kept > 0 {
				err = fmt.Errorf("%w: %d bytes are kept, and the same command goes on from there", err, kept)
			}
			return fmt.Errorf("%w: this machine may be offline", err)
		}
		if err := pause(ctx, wait<<(failed-1)); err != nil {
			return err
		}
	}
}

func sizeOf(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (d download) drop(part string) error {
	err := os.Remove(part)
	if noted := os.Remove(part + ".json"); !errors.Is(noted, fs.ErrNotExist) {
		err = errors.Join(err, noted)
	}
	return err
}

func readPartial(part string) (p partial) {
	text, err := os.ReadFile(part + ".json")
	if err == nil {
		_ = json.Unmarshal(text, &p) // nothing known is no harm: it is loaded from the start
	}
	return p
}

// check compares a file with the hash it must have; "" is any.
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
		return fmt.Errorf("%s has the SHA-256 %s, want %s: it is another revision, or was changed on its way", d.URL, got, want)
	}
	return nil
}

// fetch appends to part what the server has beyond it, of the same version of the
// file; of another one, or where the server knows no ranges, all of it.
func (d download) fetch(ctx context.Context, part string) (err error) {
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	have, known := sizeOf(part), readPartial(part)
	if known.Size > 0 && have == known.Size {
		return nil
	}
	res, err := d.ask(ctx, have, known)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch code := res.StatusCode; {
	case code == http.StatusPartialContent && strings.HasPrefix(res.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
	case code == http.StatusRequestedRangeNotSatisfiable && res.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", have):
		return nil // there is nothing beyond it
	case code == http.StatusOK, code == http.StatusPartialContent, code == http.StatusRequestedRangeNotSatisfiable:
		// From the start: the file is another one, or ranges are not known here.
		if err := f.Truncate(0); err != nil {
			return err
		}
		if code != http.StatusOK {
			return errors.Join(fmt.Errorf("%w: the server answers with another range", errAgain), os.WriteFile(part+".json", []byte("{}"), 0o600))
		}
		if err := notePartial(part, res); err != nil {
			return err
		}
	case code == http.StatusTooManyRequests, code >= 500:
		return fmt.Errorf("%w: the server answers %s", errAgain, res.Status)
	default:
		return fmt.Errorf("the server answers %s", res.Status)
	}
	n, err := io.Copy(f, io.LimitReader(res.Body, maxDownload+1))
	switch {
	case err == nil && n > maxDownload:
		err = fmt.Errorf("it is larger than %d GB", maxDownload>>30)
	case err != nil && ctx.Err() == nil:
		err = fmt.Errorf("%w: %w", errAgain, err)
	}
	return errors.Join(err, f.Sync())
}

// ask sends the request; If-Range has the server send all where the file is no
// longer the one whose beginning is here.
func (d download) ask(ctx context.Context, have int64, known partial) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity") // a range is of the bytes that are hashed
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if strings.HasPrefix(known.ETag, `"`) { // a weak one is refused there
			req.Header.Set("If-Range", known.ETag)
		}
	}
	client := d.Client
	if client == nil {
		client = &http.Client{Timeout: time.Hour, Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 30 * time.Second, ResponseHeaderTimeout: time.Minute,
			ForceAttemptHTTP2: true, DisableKeepAlives: true,
		}}
	}
	res, err := client.Do(req)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", errAgain, err)
	}
	return res, err
}

var sha256Pattern = regexp.MustCompile(`^"?([0-9a-f]{64})"?$`)

// notePartial keeps what the answer says of the whole file. The Hugging Face Hub
// names the SHA-256 of large files (X-Linked-ETag), on the way to where they lie.
func notePartial(part string, res *http.Response) error {
	p := partial{ETag: res.Header.Get("ETag"), Size: max(res.ContentLength, 0)}
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
