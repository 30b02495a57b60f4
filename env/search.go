package env

import "time"

// Walks and searches run inside the sandbox, in the guest: they start no process
// and need no program of the image. Below the directory they are given they
// follow no symbolic link. Names are taken in natural order (a2 before a10).

// WalkSpec asks for a directory tree.
type WalkSpec struct {
	Dir   string // "" = the workspace
	Depth int    // levels below Dir; 0 = all
	// Ignore are globs of names; a directory with such a name is listed, what is
	// in it is not.
	Ignore     []string
	MaxEntries int           // returned, the first ones; 0 = DefaultMaxEntries
	Timeout    time.Duration // 0 = DefaultSearchTimeout
}

// WalkResult is a tree: a directory's entries follow it.
type WalkResult struct {
	Entries []WalkEntry
	// Levels counts the entries, returned or not, of Dir itself, of what is one
	// level below it, and so on.
	Levels     []int
	Unreadable int // directories that could not be opened
	// Incomplete says that the walk was given up before everything was counted.
	Incomplete bool
}

// Total counts the entries of all levels.
func (r WalkResult) Total() (n int) {
	for _, level := range r.Levels {
		n += level
	}
	return n
}

// WalkEntry is one entry of a tree.
type WalkEntry struct {
	Path   string // below Dir; any bytes but NUL
	Kind   byte   // 'd' directory, 'f' file, 'l' symbolic link, '?' anything else
	Mode   uint32 // permission bits
	Size   int64
	Target string // of a symbolic link
}

// SearchSpec asks for the lines of text files that match a pattern.
type SearchSpec struct {
	// Path is a directory or one file; "" = the workspace.
	Path string
	// Pattern is a regular expression as Go's regexp takes it (RE2: its time is
	// linear), or a text when Literal is set. It sees lines one by one, without
	// their ends (LF or CRLF). The empty pattern matches every line.
	Pattern             string
	Literal, IgnoreCase bool
	// Within are globs of paths below Path: a file is searched if one matches it
	// or a directory above it. Include and Exclude are globs, too: one with a
	// slash is matched with the path below Path, one without with the name. Empty
	// lists admit every file. An excluded directory is not entered, nor is one
	// whose name matches a glob of Ignore. Globs know **, {a,b} and [a-z].
	Within, Include, Exclude, Ignore []string
	// First and Last bound the line numbers looked at; 0 = open.
	First, Last int
	Context     int           // lines before and after each matching one
	MaxMatches  int           // matching lines returned; 0 = 100
	MaxBytes    int           // of all texts returned; 0 or more than 1 MiB = 1 MiB
	MaxLine     int           // bytes returned of one line, around the match; 0 = 2000
	Timeout     time.Duration // 0 = DefaultSearchTimeout
}

// SearchResult are the first matching lines and the count of all.
type SearchResult struct {
	Lines   []SearchLine // in order, those of a file together
	Matches int64        // matching lines found, returned or not
	Files   int64        // files with a matching line
	// LineCount are the lines read, and Bytes what was read for them. A search
	// in one file stops at Last, unless the file is small (1 MiB).
	LineCount, Bytes int64
	Searched         int64 // files read as text
	Binary           int64 // files left out because of a NUL in their first 8 KiB
	Unreadable       int64 // files and directories that could not be opened
	// Incomplete says that the search was given up, for its time or for the
	// number of files, before everything was looked at; Stopped that it ended
	// after Last with more of the file to come.
	Incomplete, Stopped bool
}

// SearchLine is one line of a result.
type SearchLine struct {
	File   string // below Path; "" when Path is the file
	Number int64  // counted from 1
	Text   string // raw bytes without LF; a CR before it is still there
	Match  bool   // else it is context
	// Cut is where Text begins in the line, and Size the length of the whole line,
	// in bytes.
	Cut, Size int64
}

// Bounds used where a walk or a search leaves them open.
const (
	DefaultSearchTimeout = 30 * time.Second
	DefaultMaxEntries    = 1000
)
