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

// Driver starts sandboxes of one kind. It must be safe for concurrent use.
type Driver interface {
	// Name is the kind as written in the configuration: bubblewrap, docker, kubernetes
	// or local.
	Name() string
	// Start returns a sandbox whose guest (the service inside it) responds, or an error
	// that says what to do. Canceling ctx aborts the start but does not end a sandbox
	// that has started.
	Start(ctx context.Context, spec SandboxSpec) (Sandbox, error)
	// LeftoverLister lists the sandboxes that dead processes of this host left behind.
	LeftoverLister
}

// SandboxSpec describes the sandbox to start.
type SandboxSpec struct {
	Label   string   // run and job, for humans and for Leftovers
	Image   string   // docker and kubernetes only; "" = the driver's default
	Python  string   // interpreter of the host, mounted read-only with its prefix (bubblewrap only); "" = the system's
	Workdir string   // absolute path of the writable workspace, created empty if absent
	Env     []string // NAME=value, added to the fixed environment of every sandbox
	Network bool     // only build sandboxes may set it
	Mounts  []Mount  // additional directories of the host (cached results of setup)
	Limits  Limits
	// Meter, unless nil, gets the CPU time of the sandbox and all its processes when the sandbox is
	// closed. The drivers docker and kubernetes do not measure it.
	Meter *Meter
}

// Mount is a directory of the host that the sandbox sees at Path. It is read-only unless
// Write is set, which is for build sandboxes that fill a cache.
type Mount struct {
	Host, Path string
	Write      bool
}

// Limits are the limits of one sandbox. 0 means the value of DefaultLimits, a negative
// value no limit. The episode records them.
type Limits struct {
	MemoryBytes int64         // all processes together
	DiskBytes   int64         // workspace and temporary files together
	Processes   int           // processes and threads alive at once
	CPUs        float64       // cores
	CPUTime     time.Duration // per process
	OpenFiles   int
}

// DefaultLimits are the limits of a sandbox whose spec sets none.
var DefaultLimits = Limits{
	MemoryBytes: 2 << 30, DiskBytes: 1 << 30, Processes: 256, CPUs: 2, CPUTime: time.Hour, OpenFiles: 1024,
}

// Errors of a sandbox. Any other error of a sandbox is a failure of the infrastructure.
var (
	// ErrSandboxDied means that the guest no longer responds. The error is a *DiedError.
	ErrSandboxDied = errors.New("sandbox died")
	// ErrNotExist means that a path does not exist in the sandbox.
	ErrNotExist = errors.New("no such file or directory")
	// ErrRefused means that the sandbox's system refused an operation on a path
	// (permission denied, not a directory, name too long, ...), or that a workspace
	// cannot be read because of hostile entries or exceeded limits. The text of the
	// error says which.
	ErrRefused = errors.New("refused")
	// ErrNoProgram means that the program of a terminal does not exist in the sandbox.
	ErrNoProgram = errors.New("no such program")
	// ErrNoSpace means that the sandbox has reached its disk limit.
	ErrNoSpace = errors.New("no space left in the sandbox")
)

// DiedError is the error of a sandbox that died. It wraps ErrSandboxDied.
type DiedError struct {
	// CausedByCommand is set if a command of the agent was running and nothing outside
	// the sandbox is known to be the cause.
	CausedByCommand bool
	Reason          string
}

func (e *DiedError) Error() string { return ErrSandboxDied.Error() + ": " + e.Reason }
func (e *DiedError) Unwrap() error { return ErrSandboxDied }

// Sandbox is one isolated environment for programs. The time limit of a call comes from
// its arguments or from ctx, and no call exceeds its limit by more than a second. A
// Sandbox is safe for concurrent use.
type Sandbox interface {
	// Key describes how the sandbox is isolated.
	Key() schemas.EnvKey
	// Run executes a command in a new process group and waits for it to end. A command
	// that exits with a non-zero status, is killed or times out is a Result, not an
	// error. After a timeout, Run returns once it has killed everything that the command
	// started.
	Run(ctx context.Context, c Command) (Result, error)
	// Open starts a long-lived process whose input stays open.
	Open(ctx context.Context, t TerminalSpec) (Terminal, error)

	// ReadFile returns the first limit bytes of a file (0 = as many as the guest sends, 256 MiB) and
	// the size of the file.
	ReadFile(ctx context.Context, path string, limit int64) (data []byte, total int64, err error)
	// WriteFile replaces the file at path and creates missing parent directories. With
	// mode 0, an existing file keeps its mode and a new file gets 0644.
	WriteFile(ctx context.Context, path string, data []byte, mode uint32) error
	Stat(ctx context.Context, path string) (FileInfo, error)
	// Walk lists the entries of a directory tree. An invalid glob is ErrRefused.
	Walk(ctx context.Context, w WalkSpec) (WalkResult, error)
	// Search finds lines in files. An invalid pattern or glob is ErrRefused.
	Search(ctx context.Context, q SearchSpec) (SearchResult, error)
	// TarIn unpacks a tar stream below dir.
	TarIn(ctx context.Context, dir string, r io.Reader) error
	// TarOut writes dir as a deterministic tar stream: names are sorted, and times and
	// owners are left out.
	TarOut(ctx context.Context, dir string, w io.Writer) error
	// Close destroys the sandbox and everything in it. It is safe to call twice.
	Close(ctx context.Context) error
}

// HostSandbox is a Sandbox that shares files with the host. A type that wraps a Sandbox must forward
// these methods.
type HostSandbox interface {
	// Workdir is the absolute path of the workspace as programs see it; "" = the
	// Workdir of the SandboxSpec.
	Workdir() string
	// TempDir is the directory for temporary files; "" = /tmp.
	TempDir() string
	// HostPython is the path of the host's interpreter that programs find as python3 and cannot
	// change; "" = none.
	HostPython() string
}

// WorkdirOf returns the path of the workspace as programs in sb see it. specified is the
// Workdir of the SandboxSpec.
func WorkdirOf(sb Sandbox, specified string) string {
	if placed, ok := sb.(HostSandbox); ok && placed.Workdir() != "" {
		return placed.Workdir()
	}
	return specified
}

// TempDirOf returns the directory of sb for files that are not part of the workspace and
// are removed with the sandbox.
func TempDirOf(sb Sandbox) string {
	if placed, ok := sb.(HostSandbox); ok && placed.TempDir() != "" {
		return placed.TempDir()
	}
	return "/tmp"
}

// HostPythonOf returns the path of the host's interpreter that programs in sb find as python3 and
// cannot change. It returns "" for a sandbox with an interpreter of its own.
func HostPythonOf(sb Sandbox) string {
	if placed, ok := sb.(HostSandbox); ok {
		return placed.HostPython()
	}
	return ""
}

// FileInfo describes one path. If the path is a symlink, it describes the link.
type FileInfo struct {
	Size    int64
	Mode    uint32 // permission bits
	IsDir   bool
	Symlink string // target, "" if it is not a symlink
	// Real is the path with every symlink resolved, "" if it dangles.
	Real string
}

// Command describes a program for Sandbox.Run. The program reads Stdin as its standard
// input.
type Command struct {
	Args      []string // Args[0] is looked up in the sandbox's PATH
	Dir       string   // "" = the workspace
	Env       []string // NAME=value, added to the sandbox's environment
	Stdin     []byte
	Timeout   time.Duration // 0 = DefaultCommandTimeout
	MaxOutput int64         // bytes of output kept, half from the start and half from the end; 0 = DefaultMaxOutput
	// Sealed, unless empty, is the content of a file that no process can change.
	// The command has it open as descriptor SealedFile.
	Sealed []byte
	Keys   *Keys // nil: the guest gives out no keys
}

// SealedFile is the file descriptor of Command.Sealed.
const SealedFile = 57

// Keys asks the guest to give one secret key to each top-level process of a command, so
// that the process can sign what it reports. A process that connects to the abstract Unix
// socket Name reads one line: the number of its key and the key in hexadecimal digits. A
// process that already has a key, or that descends from a process that has one, gets none,
// even if it has detached itself. Before the guest gives out a key, it kills the surviving
// descendants of processes that had earlier keys and have ended.
type Keys struct {
	Name   string
	Secret []byte
}

// Key returns the n-th key, counted from 0.
func (k Keys) Key(n int) []byte {
	mac := hmac.New(sha256.New, k.Secret)
	mac.Write(strconv.AppendInt(nil, int64(n), 10))
	return mac.Sum(nil)
}

// Defaults of Command.
const (
	DefaultCommandTimeout = 300 * time.Second
	DefaultMaxOutput      = 1 << 20
)

// Result is the result of a Command. Output has standard output and standard error in the
// order in which they were written. If Total > len(Output), the middle is missing, and
// Output is the first Head bytes followed by the last bytes.
type Result struct {
	Output   []byte
	Head     int
	Total    int64 // bytes that the command wrote
	ExitCode int   // 128+n if signal n killed the command
	TimedOut bool
	Limit    string        // the limit that ended the command: "memory", "processes", or ""
	Wall     time.Duration // from start to end of the program, measured in the guest
	// Keys has one entry for each key that the guest gave out: whether the process with
	// that key was still running when the guest gave out the next key.
	Keys []bool
}

// TerminalSpec describes a long-lived process such as a shell or a debugger.
type TerminalSpec struct {
	Args []string
	Dir  string
	Env  []string
	PTY  bool // use a pseudoterminal with echo and canonical mode off, not pipes
}

// Terminal is a running process with an open input. Interrupt may be called during Read.
// Apart from that, it is not safe for concurrent use.
type Terminal interface {
	Write(ctx context.Context, p []byte) error
	// Read returns output as soon as there is any. It returns nil if there is none
	// within wait, and io.EOF once the process has ended and all output has been read.
	Read(ctx context.Context, wait time.Duration) ([]byte, error)
	// Interrupt sends SIGINT to the foreground process group.
	Interrupt(ctx context.Context) error
	// KillChildren kills all descendants of the process that started after mark, even if
	// they have detached themselves, but not the process itself. mark comes from Mark;
	// 0 kills all descendants.
	KillChildren(ctx context.Context, mark uint64) error
	// Mark returns a value that stands for the current moment in KillChildren.
	Mark(ctx context.Context) (uint64, error)
	// Close kills the process and its descendants.
	Close(ctx context.Context) error
	// Exit returns the exit code if the process has ended.
	Exit() (code int, ended bool)
}

// LimitReporter is a Terminal that reports which limit of its sandbox its processes exceeded.
type LimitReporter interface {
	// Limit returns the limit that last killed processes of the terminal: "memory",
	// "processes", or "" if none did.
	Limit() string
}

// Source is one origin of tasks. It must be safe for concurrent use.
type Source interface {
	Name() string
	// Tasks returns the tasks in a stable order.
	Tasks(ctx context.Context) ([]schemas.Task, error)
	// Tree returns the repository of a task that Tasks returned.
	Tree(ctx context.Context, instance string) (Tree, error)
}

// Tree is the state of a repository, without its history (.git).
type Tree interface {
	// SHA256 is a hash of the content: names, modes, link targets and bytes.
	SHA256() string
	// WriteTar writes the tree as a deterministic tar stream.
	WriteTar(w io.Writer) error
}
