package env

import "time"

// The guest itself walks and searches, so neither needs a program of the image. Neither
// follows symbolic links below the given directory. Both visit names in natural order
// (a2 before a10).

// WalkSpec describes a walk of a directory tree.
type WalkSpec struct {
	Dir   string // "" = the workspace
	Depth int    // levels below Dir; 0 = all
	// Ignore are globs of names. A directory with such a name is listed, but its entries
	// are not.
	Ignore     []string
	MaxEntries int           // number of entries to return, the first ones; 0 = DefaultMaxEntries
	Timeout    time.Duration // 0 = DefaultSearchTimeout
}

// WalkResult is the result of a walk. In Entries, the entries of a directory follow it.
type WalkResult struct {
	Entries []WalkEntry
	// Levels has the number of entries directly in Dir, then that one level below, and so
	// on, whether they are returned or not.
	Levels     []int
	Unreadable int // directories that could not be opened
	// Incomplete is set if the walk ended before it had counted everything.
	Incomplete bool
}

// Total returns the number of entries on all levels.
func (r WalkResult) Total() (n int) {
	for _, level := range r.Levels {
		n += level
	}
	return n
}

// WalkEntry is one entry of a tree.
type WalkEntry struct {
	Path   string // relative to Dir; any bytes except NUL
	Kind   byte   // 'd' directory, 'f' file, 'l' symbolic link, '?' anything else
	Mode   uint32 // permission bits
	Size   int64
	Target string // of a symbolic link
}

// SearchSpec describes a search for lines of text files that match a pattern.
type SearchSpec struct {
	// Path is a directory or one file; "" = the workspace.
	Path string
	// Pattern is a regular expression of Go's package regexp, or plain text if Literal
	// is set. It is matched with one line at a time, without the line ending (LF or
	// CRLF). The empty pattern matches every line.
	Pattern             string
	Literal, IgnoreCase bool
	// Within are globs of paths relative to Path: a file is searched only if a glob
	// matches the file or a directory above it. Include and Exclude are also globs. A
	// glob with a slash is matched with the path relative to Path, a glob without a slash
	// with the name. Empty lists exclude no file. The search does not enter excluded
	// directories or directories whose name matches a glob in Ignore. Globs support **,
	// {a,b} and [a-z].
	Within, Include, Exclude, Ignore []string
	// First and Last are the first and the last line number to search; 0 = no limit.
	First, Last int
	Context     int           // lines to return before and after each matching line
	MaxMatches  int           // matching lines to return; 0 = 100
	MaxBytes    int           // bytes of text to return; 0 or more than 1 MiB = 1 MiB
	MaxLine     int           // bytes to return of one line, around the match; 0 = 2000
	Timeout     time.Duration // 0 = DefaultSearchTimeout
}

// SearchResult has the first matching lines and the number of all matching lines.
type SearchResult struct {
	Lines   []SearchLine // in order, grouped by file
	Matches int64        // matching lines found, returned or not
	Files   int64        // files with a matching line
	// LineCount and Bytes are the numbers of lines and bytes read. A search of a single
	// file larger than 16 MiB stops at Last; smaller files are read to the end.
	LineCount, Bytes int64
	Searched         int64 // files read as text
	Binary           int64 // files skipped because of a NUL in their first 8 KiB
	Unreadable       int64 // files and directories that could not be opened
	// Incomplete is set if the search ran out of time or reached the maximum number of
	// files before it had read everything. Stopped is set if it ended at Last before the
	// end of the file.
	Incomplete, Stopped bool
}

// SearchLine is one line of a result.
type SearchLine struct {
	File   string // relative to Path; "" if Path is the file
	Number int64  // counted from 1
	Text   string // raw bytes without LF, but with a CR before it
	Match  bool   // false for a line of context
	// Cut is the offset in the line at which Text begins, and Size the length of the
	// whole line, both in bytes.
	Cut, Size int64
}

// Defaults of WalkSpec and SearchSpec.
const (
	DefaultSearchTimeout = 30 * time.Second
	DefaultMaxEntries    = 1000
)
