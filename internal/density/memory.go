package density

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/guest"
)

// Memory is the memory of this process and of the processes of its sandboxes, by role.
type Memory struct {
	Host   Part `json:"host"`   // this process
	Helper Part `json:"helper"` // the driver's processes outside the sandbox: bwrap, containerd's shim
	Guest  Part `json:"guest"`
	Python Part `json:"python"`
	Shell  Part `json:"shell"`
	Other  Part `json:"other"`
}

// Part holds the totals of the processes of one role. Sizes are in bytes. The proportional set
// size (PSS) counts a page that n processes share as 1/n for each of them, and the resident
// set size (RSS) counts it in full for each.
type Part struct {
	Processes int   `json:"processes"`
	Threads   int   `json:"threads"`
	PSS       int64 `json:"pss"`
	RSS       int64 `json:"rss"`

	cpu time.Duration
}

// cpu returns the CPU time that all sandboxes have used so far. It excludes Host.
func (m Memory) cpu() time.Duration {
	return m.Helper.cpu + m.Guest.cpu + m.Python.cpu + m.Shell.cpu + m.Other.cpu
}

// PSS returns the sum over all parts.
func (m Memory) PSS() int64 {
	return m.Host.PSS + m.Helper.PSS + m.Guest.PSS + m.Python.PSS + m.Shell.PSS + m.Other.PSS
}

// Kernel is memory in bytes that does not belong to a process, from /proc/meminfo.
type Kernel struct {
	Slab       int64 `json:"slab"`
	Stacks     int64 `json:"stacks"`
	PageTables int64 `json:"page_tables"`
	PerCPU     int64 `json:"per_cpu"`
	Shmem      int64 `json:"shmem"` // pages of tmpfs: workspaces
}

func (k Kernel) minus(o Kernel) Kernel {
	return Kernel{k.Slab - o.Slab, k.Stacks - o.Stacks, k.PageTables - o.PageTables, k.PerCPU - o.PerCPU, k.Shmem - o.Shmem}
}

// machine is the state of the machine's memory.
type machine struct {
	available int64
	kernel    Kernel
}

func readMachine() (machine, error) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return machine{}, fmt.Errorf("reading the machine's memory: %w", err)
	}
	size := func(name string) int64 { return field(raw, name+":") << 10 }
	return machine{size("MemAvailable"), Kernel{
		size("Slab"), size("KernelStack"), size("PageTables"), size("Percpu"), size("Shmem"),
	}}, nil
}

// field returns the number after a name at the start of a line, or 0 if there is none.
func field(raw []byte, name string) int64 {
	_, rest, _ := bytes.Cut(append([]byte("\n"), raw...), []byte("\n"+name))
	if f := bytes.Fields(rest[:min(len(rest), 40)]); len(f) > 0 {
		n, _ := strconv.ParseInt(string(f[0]), 10, 64)
		return n
	}
	return 0
}

// process is one process in /proc.
type process struct {
	pid, parent int
	name        string
	part        Part
	guest       bool
	owner       string // from the command line of a guest or of the process that starts it
	start       int    // clock ticks since boot
}

// readMemory reads the memory of this process, its guests, their programs and their
// helpers. containers says whether the guests are in containers. It ignores processes that
// end in the meantime.
func readMemory(containers bool) (Memory, error) {
	all, err := processes()
	if err != nil {
		return Memory{}, err
	}
	var m Memory
	add := func(to *Part, p process) {
		to.Processes++
		to.Threads += p.part.Threads
		to.PSS, to.RSS, to.cpu = to.PSS+p.part.PSS, to.RSS+p.part.RSS, to.cpu+p.part.cpu
	}
	host := os.Getpid()
	helpers := map[int]bool{}
	for _, p := range all {
		switch {
		case p.pid == host:
			add(&m.Host, p.withSizes())
		case ownGuest(all, p, containers):
			add(&m.Guest, p.withSizes())
			if p.parent != host && !helpers[p.parent] {
				helpers[p.parent] = true
				add(&m.Helper, all[p.parent].withSizes())
			}
		case inSandbox(all, p, containers):
			p = p.withSizes()
			switch {
			case strings.HasPrefix(p.name, "python"), strings.HasPrefix(p.name, "pytest"):
				add(&m.Python, p)
			case p.name == "bash", p.name == "sh":
				add(&m.Shell, p)
			default:
				add(&m.Other, p)
			}
		}
	}
	return m, nil
}

// ownGuest reports whether p is a guest that this process started. The owner is in the
// guest's command line or, if the guest runs in its own namespace and has cleared it there,
// in the parent's. containerd's shim does not have it. Under a shim, every guest that is
// younger than this process counts as its own.
func ownGuest(all map[int]process, p process, containers bool) bool {
	if !p.guest {
		return false
	}
	host, parent := os.Getpid(), all[p.parent]
	isOwn := func(owner string) bool { // the fourth of the five fields is the pid
		f := strings.Split(owner, ".")
		return len(f) == 5 && f[3] == strconv.Itoa(host)
	}
	return isOwn(p.owner) || isOwn(parent.owner) ||
		containers && strings.HasPrefix(parent.name, "containerd-shim") && p.start >= all[host].start
}

// inSandbox reports whether a guest of this process is an ancestor of p.
func inSandbox(all map[int]process, p process, containers bool) bool {
	for range 64 {
		ancestor, ok := all[p.parent]
		if !ok {
			return false
		}
		if ownGuest(all, ancestor, containers) {
			return true
		}
		p = ancestor
	}
	return false
}

func processes() (map[int]process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	out := map[int]process{}
	for _, dir := range dirs {
		raw, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
		f := bytes.Fields(raw[end+1:])
		if open < 0 || len(f) < 20 {
			continue
		}
		num := func(i int) int { n, _ := strconv.Atoi(string(f[i])); return n }
		p := process{parent: num(1), name: string(raw[open+1 : end]), start: num(19)}
		p.pid, _ = strconv.Atoi(filepath.Base(dir))
		const tick = time.Second / 100 // USER_HZ
		p.part = Part{Threads: num(17), cpu: time.Duration(num(11)+num(12)) * tick}
		if line, err := os.ReadFile(dir + "/cmdline"); err == nil {
			a := strings.Split(string(line), "\x00")
			at := slices.Index(a, guest.ServeArg)
			p.guest = at == 1
			if at > 0 && len(a) > at+2 && a[at+1] == "-owner" {
				p.owner = a[at+2]
			}
		}
		out[p.pid] = p
	}
	return out, nil
}

// withSizes returns p with its memory sizes. Reading them is slow, because the kernel
// walks over all pages.
func (p process) withSizes() process {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
	if err == nil {
		p.part.PSS, p.part.RSS = field(raw, "Pss:")<<10, field(raw, "Rss:")<<10
	}
	return p
}

// summarize returns nearest-rank quantiles of the durations, which it sorts in place.
func summarize(all []time.Duration) Latency {
	if len(all) == 0 {
		return Latency{}
	}
	slices.Sort(all)
	quantile := func(q float64) float64 {
		i := int(math.Ceil(q*float64(len(all)))) - 1
		return float64(all[max(i, 0)]) / float64(time.Millisecond)
	}
	return Latency{N: len(all), Median: quantile(0.5), P99: quantile(0.99), Max: quantile(1)}
}
