package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// A search reads each file once, line by line, through one buffer. These limits apply in
// addition to those of a walk.
const (
	maxPattern = 2000     // bytes
	maxCost    = 5000     // approximate number of instructions of a compiled pattern
	smallFile  = 16 << 20 // bytes; a single file up to this size is read to its end
	binaryHead = 8 << 10  // bytes; a NUL in them makes a file binary, as in git
)

// searcher performs one search.
type searcher struct {
	matches
	re                       *regexp.Regexp // nil if literal is the whole pattern
	literal                  []byte         // every matching line contains it
	within, include, exclude []string
	walk                     *walker
	reader                   lineReader
}

// search finds lines in the file or below the directory at path.
func search(path string, r *guestpb.SearchRequest) (*guestpb.SearchResponse, error) {
	q, err := newSearcher(r)
	if err != nil {
		return nil, err
	}
	root, err := openFile(path, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fi, err := root.Stat()
	switch {
	case err != nil:
		return nil, err
	case fi.IsDir():
		q.walk.visit = q.visit
		q.walk.walkDir(root, "", 1)
	case fi.Mode().IsRegular():
		q.searchFile(root, "", fi.Size() > smallFile)
	default:
		return nil, fmt.Errorf("%s: not a regular file", r.Path)
	}
	q.resp.Unreadable += q.walk.unreadable
	q.resp.Incomplete = q.walk.incomplete
	return q.resp, nil
}

func newSearcher(r *guestpb.SearchRequest) (*searcher, error) {
	q := &searcher{matches: matches{req: r, resp: &guestpb.SearchResponse{}}}
	r.MaxBytes = min(r.MaxBytes, maxFound)
	var err error
	if q.walk, err = newWalker(r.Ignore, time.Duration(r.TimeoutNs)); err != nil {
		return nil, err
	}
	q.reader.end = q.walk.end
	if q.within, err = globs(r.Within); err != nil {
		return nil, err
	}
	if q.include, err = globs(r.Include); err != nil {
		return nil, err
	}
	if q.exclude, err = globs(r.Exclude); err != nil {
		return nil, err
	}
	q.literal, q.re, err = compile(string(r.Pattern), r.Literal, r.IgnoreCase)
	return q, err
}

// compile returns a text that every matching line contains and the expression that it matches.
// The expression is nil if every line that contains the text matches.
func compile(pattern string, literal, ignoreCase bool) ([]byte, *regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, nil, fmt.Errorf("the pattern has %d bytes, more than %d", len(pattern), maxPattern)
	}
	if literal && !ignoreCase {
		return []byte(pattern), nil, nil
	}
	if literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	if ignoreCase {
		pattern = "(?i)" + pattern
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, nil, err
	}
	if cost(tree) > maxCost {
		return nil, nil, errors.New("the pattern repeats too much")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, nil, err
	}
	prefix, _ := re.LiteralPrefix()
	return []byte(prefix), re, nil
}

// cost estimates the number of instructions of a pattern before it is compiled. A search
// takes at most that many steps per byte.
func cost(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += cost(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<20)
}

func (q *searcher) visit(dir *os.File, e *entry) (enter bool) {
	switch {
	case matchPath(q.exclude, e):
		return false
	case e.isDir():
		return true
	case e.stat.Mode&unix.S_IFMT != unix.S_IFREG,
		len(q.include) > 0 && !matchPath(q.include, e),
		len(q.within) > 0 && !matchPathOrParent(q.within, e.path):
		return false
	}
	f, err := openIn(dir, e.name, 0)
	if err != nil {
		q.resp.Unreadable++
		return false
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.Mode().IsRegular() { // it may have been replaced
		q.searchFile(f, e.path, true)
	}
	return false
}

// matchPath reports whether a glob matches an entry. It matches a glob with a slash against the
// path, and any other glob against the name.
func matchPath(globs []string, e *entry) bool {
	for _, g := range globs {
		name := e.name
		if strings.Contains(g, "/") {
			name = e.path
		}
		if anyMatch([]string{strings.TrimPrefix(g, "/")}, name) {
			return true
		}
	}
	return false
}

// matchPathOrParent reports whether a glob matches a path or a directory above it.
func matchPathOrParent(globs []string, path string) bool {
	for path != "" {
		if anyMatch(globs, path) {
			return true
		}
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	}
	return false
}

// searchFile searches one file. If stopAfterLast is true, it stops after the last requested
// line. Otherwise it counts the lines to the end.
func (q *searcher) searchFile(f *os.File, path string, stopAfterLast bool) {
	q.reader.reset(f)
	head := q.reader.peek(binaryHead)
	if bytes.IndexByte(head, 0) >= 0 {
		q.resp.Binary++
		return
	}
	q.resp.Searched++
	n, found := int64(0), false
	results := fileMatches{all: &q.matches, path: path}
	for {
		line, size, err := q.reader.next()
		if err != nil {
			q.walk.incomplete = q.walk.incomplete || !errors.Is(err, io.EOF)
			break
		}
		if q.req.Last > 0 && n >= q.req.Last && stopAfterLast {
			q.resp.Stopped = true
			break
		}
		n++
		if n < q.req.First || q.req.Last > 0 && n > q.req.Last {
			continue
		}
		if at := q.match(line); at >= 0 {
			q.resp.Matches++
			found = true
			results.addMatch(n, line, size, at)
		} else {
			results.addOther(n, line, size)
		}
	}
	if found {
		q.resp.Files++
	}
	q.resp.LineCount += n
	q.resp.Bytes += q.reader.read
}

// match returns the index of the first match in a line, or -1 if the line does not match.
func (q *searcher) match(line []byte) int {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	at := 0
	if len(q.literal) > 0 {
		at = bytes.Index(line, q.literal)
	}
	if at < 0 || q.re == nil {
		return at
	}
	var loc []int
	if len(line) < longLine {
		loc = q.re.FindIndex(line)
	} else {
		runes := &deadlineRunes{text: line, end: q.walk.end}
		loc = q.re.FindReaderIndex(runes)
		q.walk.incomplete = q.walk.incomplete || runes.expired
	}
	if loc == nil {
		return -1
	}
	return loc[0]
}

// deadlineRunes reads the runes of a text and reports its end when the time limit has passed.
// This limits even a slow pattern on a long line.
type deadlineRunes struct {
	text    []byte
	at      int
	end     time.Time
	n       int
	expired bool
}

func (r *deadlineRunes) ReadRune() (rune, int, error) {
	r.n++
	r.expired = r.expired || r.n%1024 == 0 && !time.Now().Before(r.end)
	if r.expired || r.at >= len(r.text) {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.text[r.at:])
	r.at += size
	return c, size, nil
}
