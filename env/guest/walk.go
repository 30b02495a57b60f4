package guest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// Limits of one walk or search.
const (
	maxVisited   = 1_000_000 // entries
	maxWalkDepth = 200       // each level keeps a file descriptor open
	maxEntries   = 50_000
	maxFound     = 1 << 20 // bytes of paths and texts in one response
	maxGlob      = 500
)

// walker visits the entries below a directory, depth first, with names in natural order.
// It opens each directory relative to its open parent and follows no symbolic links, so a
// program that changes the tree during the walk cannot lead it outside.
type walker struct {
	ignore     []string
	end        time.Time
	remaining  int // number of entries that it may still visit
	unreadable int64
	incomplete bool
	// visit is called for each entry. Its result matters only for directories.
	visit func(dir *os.File, e *entry) (enter bool)
}

type entry struct {
	name, path string // path is relative to the root
	level      int    // 1 is directly below the root
	stat       unix.Stat_t
}

func (e *entry) isDir() bool { return e.stat.Mode&unix.S_IFMT == unix.S_IFDIR }

func newWalker(ignore [][]byte, timeout time.Duration) (*walker, error) {
	globs, err := globs(ignore)
	return &walker{ignore: globs, end: time.Now().Add(timeout), remaining: maxVisited}, err
}

// walkDir walks dir, whose path relative to the root is path. It returns false if the whole
// walk must stop.
func (w *walker) walkDir(dir *os.File, path string, level int) bool {
	names, _ := dir.Readdirnames(w.remaining + 1)
	if len(names) > w.remaining || level > maxWalkDepth {
		w.incomplete = true
		names = names[:min(len(names), w.remaining)]
	}
	w.remaining -= len(names)
	slices.SortFunc(names, compareNatural)
	for _, name := range names {
		if level > maxWalkDepth {
			break
		}
		if !time.Now().Before(w.end) {
			w.incomplete = true
			return false
		}
		e := &entry{name: name, path: name, level: level}
		if path != "" {
			e.path = path + "/" + name
		}
		if unix.Fstatat(int(dir.Fd()), name, &e.stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // removed since its name was read
		}
		if !w.visit(dir, e) || !e.isDir() || anyMatch(w.ignore, name) {
			continue
		}
		sub, err := openIn(dir, name, unix.O_DIRECTORY)
		if err != nil {
			w.unreadable++
			continue
		}
		more := w.walkDir(sub, e.path, level+1)
		_ = sub.Close()
		if !more {
			return false
		}
	}
	return w.remaining > 0 || !w.incomplete
}

// openIn opens an entry of dir for reading. It fails if the entry is a symbolic link.
func openIn(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// walk lists the entries below the directory at path.
func walk(path string, r *guestpb.WalkRequest) (*guestpb.WalkResponse, error) {
	w, err := newWalker(r.Ignore, time.Duration(r.TimeoutNs))
	if err != nil {
		return nil, err
	}
	dir, err := openFile(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	resp := &guestpb.WalkResponse{}
	size, maxCount := 0, min(int(r.MaxEntries), maxEntries)
	w.visit = func(dir *os.File, e *entry) bool {
		if len(resp.Levels) < e.level {
			resp.Levels = append(resp.Levels, 0)
		}
		resp.Levels[e.level-1]++
		if len(resp.Entries) < maxCount && size < maxFound {
			out := newEntry(dir, e)
			resp.Entries = append(resp.Entries, out)
			size += len(out.Path) + len(out.Target)
		}
		return r.Depth <= 0 || e.level < int(r.Depth)
	}
	w.walkDir(dir, "", 1)
	resp.Unreadable, resp.Incomplete = w.unreadable, w.incomplete
	return resp, nil
}

func newEntry(dir *os.File, e *entry) *guestpb.Entry {
	out := &guestpb.Entry{Path: []byte(e.path), Kind: '?', Mode: e.stat.Mode & 0o777, Size: e.stat.Size}
	switch e.stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		out.Kind = 'd'
	case unix.S_IFREG:
		out.Kind = 'f'
	case unix.S_IFLNK:
		out.Kind = 'l'
		buf := make([]byte, unix.PathMax)
		if n, err := unix.Readlinkat(int(dir.Fd()), e.name, buf); err == nil {
			out.Target = buf[:n]
		}
	}
	return out
}

// globs converts raw to strings. It returns an error if one of them is not a valid glob or has
// too many alternatives, whose number multiplies with each pair of braces.
func globs(raw [][]byte) ([]string, error) {
	out := toStrings(raw)
	if len(out) > 100 {
		return nil, errors.New("more than 100 globs")
	}
	for _, g := range out {
		switch {
		case len(g) > maxGlob, strings.Count(g, "{") > 3, strings.Count(g, ",") > 20:
			return nil, fmt.Errorf("glob %.80q has too many characters or alternatives", g)
		case !doublestar.ValidatePattern(g):
			return nil, fmt.Errorf("glob %q has an unclosed bracket or brace", g)
		}
	}
	return out, nil
}

func anyMatch(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return doublestar.MatchUnvalidated(g, name) })
}

// compareNatural compares two names, and runs of digits in them by value: file2 comes before
// file10.
func compareNatural(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if !isDigit(a[i]) || !isDigit(b[j]) {
			if a[i] != b[j] {
				return int(a[i]) - int(b[j])
			}
			i, j = i+1, j+1
			continue
		}
		x, y := digits(a[i:]), digits(b[j:])
		i, j = i+len(x), j+len(y)
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	if rest := (len(a) - i) - (len(b) - j); rest != 0 {
		return rest
	}
	return strings.Compare(a, b) // they differ only in leading zeros
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits returns the run of digits at the start of s.
func digits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}
