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

// StageArg is the first argument that makes an executable a stage: a program that a driver
// starts before bwrap to make file systems that bwrap cannot make, with a limit on the
// number of files. It runs in a mount namespace of its own, as root of a user namespace or
// as root, and becomes the program in its arguments.
//
//	tracesmith-guest-stage BYTES:FILES:MODE... -- PROGRAM ARG...
const StageArg = "tracesmith-guest-stage"

// stageDir exists everywhere, and no sandbox shows anything below it.
const stageDir = "/sys"

// StagePlace is where a stage mounts the file system of argument i, from 0.
func StagePlace(i int) string { return stageDir + "/" + strconv.Itoa(i) }

// stage returns only with an error.
func stage(args []string) error {
	end := slices.Index(args, "--")
	if end < 0 || end+1 == len(args) {
		return errors.New("a stage without a program")
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
			return fmt.Errorf("%q describes no file system", arg)
		}
		if err := os.Mkdir(StagePlace(i), 0o755); err != nil {
			return err
		}
		options := fmt.Sprintf("size=%s,nr_inodes=%s,mode=%s", f[0], f[1], f[2])
		if err := unix.Mount("tmpfs", StagePlace(i), "tmpfs", flags, options); err != nil {
			return fmt.Errorf("mounting a file system of %s: %w", options, err)
		}
	}
	program := args[end+1:]
	return fmt.Errorf("starting %s: %w", program[0], unix.Exec(program[0], program, os.Environ()))
}
