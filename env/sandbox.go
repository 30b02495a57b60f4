package env

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Driver makes sandboxes of one kind. It must be safe for concurrent use.
type Driver interface {
	// Name is the kind as configured: bubblewrap, docker, local, fake.
	Name() string
	// Start boots a sandbox with the guest answering, or returns an error that
	// names the remedy. Cancelling ctx aborts the start, not the sandbox.
	Start(ctx context.Context, spec SandboxSpec) (Sandbox, error)
	// Reap removes sandboxes that earlier processes of this host left behind
	// and reports how many. It never touches one whose owner is alive.
	Reap(ctx context.Context) (int, error)
}

// SandboxSpec is what a sandbox must offer.
type SandboxSpec struct {
	Label   string   // run and job, for humans and for Reap
	Image   string   // docker only
	Python  string   // host interpreter whose prefix is brought in read-only (bubblewrap); "" = the system's
	Workdir string   // absolute path of the writable workspace, created empty if absent
	Env     []string // NAME=value, added to the sandbox's own fixed environment
	Network bool     // only build sandboxes may ask for it
	Mounts  []Mount  // extra read-only host directories (cached set-up results)
	Limits  Limits
}

// Mount is one host directory seen read-only inside the sandbox, or writable
// when Write is set (build sandboxes filling a cache).
type Mount struct {
	Host, Path string
	Write      bool
}

// Limits of one sandbox. Zero means the default of DefaultLimits, below zero none,
// which is recorded with the episode.
type Limits struct {
	MemoryBytes int64         // all processes together
	DiskBytes   int64         // workspace and tmp together
	Processes   int           // tasks alive at once
	CPUs        float64       // cores
	CPUTime     time.Duration // per process
	OpenFiles   int
}

// DefaultLimits are the limits a sandbox gets where nothing else is asked for.
var DefaultLimits = Limits{
	MemoryBytes: 2 << 30, DiskBytes: 1 << 30, Processes: 256, CPUs: 2, CPUTime: time.Hour, OpenFiles: 1024,
}

// Errors of a sandbox. Everything else a sandbox returns is infrastructure.
var (
	// ErrSandboxDied: the guest is gone; the error is a *DiedError.
	ErrSandboxDied = errors.New("sandbox died")
	// ErrNotExist: no such path in the sandbox.
	ErrNotExist = errors.New("no such file or directory")
	// ErrRefused: the sandbox's system refused the operation on a path
	// (permission, not a directory, name too long, ...), or a workspace cannot be
	// taken as it is (hostile entries, more than the limits); the text says which.
	ErrRefused = errors.New("refused")
	// ErrNoProgram: a terminal was asked for whose program does not exist there.
	ErrNoProgram = errors.New("no such program")
	// ErrNoSpace: the sandbox's disk limit is reached.
	ErrNoSpace = errors.New("no space left in the sandbox")
)

// DiedError is the ErrSandboxDied that a sandbox returns.
type DiedError struct {
	// DuringCommand: a command of the agent was running, which makes it the
	// agent's doing.
	DuringCommand bool
	Reason        string
}

func (e *DiedError) Error() string { return ErrSandboxDied.Error() + ": " + e.Reason }
func (e *DiedError) Unwrap() error { return ErrSandboxDied }

// Sandbox is one isolated place. All methods take wall-clock bounds from their
// arguments or ctx; none can outlive its bound by more than a second. Methods
// may be called from several goroutines.
type Sandbox interface {
	Key() schemas.EnvKey
	// Run executes a command to its end in a process group of its own. A
	// command that exits non-zero, is killed or times out is a Result, not an
	// error. On timeout everything the command started is killed first.
	Run(ctx context.Context, c Command) (Result, error)
	// Open starts a long-lived process whose input stays writable.
	Open(ctx context.Context, t TerminalSpec) (Terminal, error)

	ReadFile(ctx context.Context, path string, limit int64) (data []byte, total int64, err error)
	// WriteFile replaces path whole (parents are made); mode 0 keeps the
	// existing mode or uses 0644.
	WriteFile(ctx context.Context, path string, data []byte, mode uint32) error
	Stat(ctx context.Context, path string) (FileInfo, error)
	// Walk lists a tree, Search finds lines in its files; see WalkSpec and
	// SearchSpec. A pattern or glob that cannot be read is ErrRefused.
	Walk(ctx context.Context, w WalkSpec) (WalkResult, error)
	Search(ctx context.Context, q SearchSpec) (SearchResult, error)
	// TarIn unpacks a tar stream below dir; TarOut streams dir as a
	// deterministic tar (sorted names, no times, no owners).
	TarIn(ctx context.Context, dir string, r io.Reader) error
	TarOut(ctx context.Context, dir string, w io.Writer) error
	// Close destroys the sandbox and everything in it. Safe to call twice.
	Close(ctx context.Context) error
}

// Placed is implemented by sandboxes of drivers that have no file system of their
// own and choose where files go. A type that wraps a Sandbox must pass it on.
type Placed interface {
	// Workdir is the absolute path of the workspace as programs see it; "" = the one
	// that was asked for.
	Workdir() string
	// TempDir is the directory for temporary files; "" = /tmp.
	TempDir() string
}

// WorkdirOf returns where programs in sb find the workspace that was asked for.
func WorkdirOf(sb Sandbox, asked string) string {
	if placed, ok := sb.(Placed); ok && placed.Workdir() != "" {
		return placed.Workdir()
	}
	return asked
}

// TempDirOf returns the directory in sb for files that are not part of the
// workspace and end with the sandbox.
func TempDirOf(sb Sandbox) string {
	if placed, ok := sb.(Placed); ok && placed.TempDir() != "" {
		return placed.TempDir()
	}
	return "/tmp"
}

// FileInfo describes one path; symlinks are not followed.
type FileInfo struct {
	Size    int64
	Mode    uint32 // permission bits
	IsDir   bool
	Symlink string // target, "" if it is not a symlink
	// Real is the path with every symlink resolved, "" if it dangles.
	Real string
}

// Command is one program run to its end. Its standard input is Stdin, else
// end-of-file at once.
type Command struct {
	Args      []string // Args[0] is looked up in the sandbox's PATH
	Dir       string   // "" = the workspace
	Env       []string // NAME=value, added to the sandbox's environment
	Stdin     []byte
	Timeout   time.Duration // 0 = DefaultCommandTimeout
	MaxOutput int64         // bytes kept (head and tail halves); 0 = DefaultMaxOutput
	// Sealed, unless empty, is the content of a file that no process can change.
	// The command has it open as descriptor SealedFile.
	Sealed []byte
	Keys   *Keys
}

// SealedFile is the descriptor of Command.Sealed.
const SealedFile = 57

// Keys asks the guest to give out keys while a command runs. A process of the
// command that connects to the abstract Unix socket Name reads one line, the number
// of its key and the key in hexadecimal digits. A process that has a key, or that
// descends from one, gets none, however it detached itself. Before a key is given
// out, the guest kills what the ended holders of earlier keys left behind.
type Keys struct {
	Name   string
	Secret []byte
}

// Key is the n-th key, counted from 0.
func (k Keys) Key(n int) []byte {
	mac := hmac.New(sha256.New, k.Secret)
	mac.Write(strconv.AppendInt(nil, int64(n), 10))
	return mac.Sum(nil)
}

// Bounds used where a Command leaves them open.
const (
	DefaultCommandTimeout = 300 * time.Second
	DefaultMaxOutput      = 1 << 20
)

// Result of a Command. Output is standard output and error in the order they
// were written, raw bytes; when Total > len(Output) the middle was cut and
// Output is the first Head bytes followed by the last ones.
type Result struct {
	Output   []byte
	Head     int
	Total    int64
	ExitCode int // 128+n when killed by signal n
	TimedOut bool
	Limit    string        // the limit that ended it: "memory", "processes", or ""
	Wall     time.Duration // from start to end of the program, measured in the guest
	// Keys has one entry for each key that was given out: whether its holder was
	// still running when the next key was given out.
	Keys []bool
}

// TerminalSpec is a long-lived process: a shell or a debugger.
type TerminalSpec struct {
	Args []string
	Dir  string
	Env  []string
	PTY  bool // a pseudo terminal with echo and canonical mode off; else pipes
}

// Terminal is a running process with an open input. Read and Interrupt may run
// beside each other; otherwise one goroutine uses it.
type Terminal interface {
	Write(ctx context.Context, p []byte) error
	// Read returns output as soon as there is any, nil after wait without any,
	// and io.EOF once the process has ended and its output is read.
	Read(ctx context.Context, wait time.Duration) ([]byte, error)
	// Interrupt sends SIGINT to the foreground process group.
	Interrupt(ctx context.Context) error
	// KillChildren kills everything the process started since mark (a value of
	// Mark; 0 = ever), however it detached itself, but not the process itself.
	KillChildren(ctx context.Context, mark uint64) error
	// Mark names this moment for KillChildren.
	Mark(ctx context.Context) (uint64, error)
	// Close kills the process and its descendants. Exit tells how it ended.
	Close(ctx context.Context) error
	Exit() (code int, ended bool)
}

// Limited is a Terminal that knows the limits of its sandbox.
type Limited interface {
	// Limit is the limit that last killed processes of the terminal: "memory",
	// "processes", or "" if none did.
	Limit() string
}

// Source is one origin of tasks. Safe for concurrent use.
type Source interface {
	Name() string
	// Tasks lists the tasks in a stable order.
	Tasks(ctx context.Context) ([]schemas.Task, error)
	// Tree returns the repository of a task it listed.
	Tree(ctx context.Context, instance string) (Tree, error)
}

// Tree is a repository state: what is placed at Workdir. History (.git) is
// never part of it.
type Tree interface {
	// SHA256 identifies the content: names, modes, link targets and bytes.
	SHA256() string
	// WriteTar streams the tree as a deterministic tar.
	WriteTar(w io.Writer) error
}
