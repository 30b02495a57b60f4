package guest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// StageArg is the first argument that makes an executable a stage. A driver starts the stage
// before bwrap to mount file systems with a limit on the number of files, which bwrap cannot
// do. The stage runs in a new mount namespace, as root or as root of a user namespace, and
// then becomes the program in its arguments with exec.
//
//	tracesmith-guest-stage BYTES:FILES:MODE... -- PROGRAM ARG...
const StageArg = "tracesmith-guest-stage"

// stageDir is where stages mount. It exists everywhere, and sandboxes show nothing below it.
const stageDir = "/sys"

// StageMountPoint returns the directory at which a stage mounts the file system of argument i,
// counted from 0.
func StageMountPoint(i int) string { return stageDir + "/" + strconv.Itoa(i) }

// stage does not return unless it fails.
func stage(args []string) error {
	end := slices.Index(args, "--")
	if end < 0 || end+1 == len(args) {
		return errors.New("no program given after --")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("tmpfs", stageDir, "tmpfs", flags, "size=64k,nr_inodes=64,mode=0755"); err != nil {
		return fmt.Errorf("mounting %s: %w", stageDir, err)
	}
	for i, arg := range args[:end] {
		f := strings.SplitN(arg, ":", 3)
		if len(f) != 3 {
			return fmt.Errorf("%q does not have the form BYTES:FILES:MODE", arg)
		}
		if err := os.Mkdir(StageMountPoint(i), 0o755); err != nil {
			return err
		}
		options := fmt.Sprintf("size=%s,nr_inodes=%s,mode=%s", f[0], f[1], f[2])
		if err := unix.Mount("tmpfs", StageMountPoint(i), "tmpfs", flags, options); err != nil {
			return fmt.Errorf("mounting a file system of %s: %w", options, err)
		}
	}
	program := args[end+1:]
	return fmt.Errorf("starting %s: %w", program[0], unix.Exec(program[0], program, os.Environ()))
}
