package guest

import (
	"errors"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminalIO connects the guest to the program of a terminal, through a pseudo terminal or a
// pair of pipes.
type terminalIO struct {
	in, out     *os.File // the guest's side; the same file for a pseudo terminal
	programSide [3]*os.File
	isPTY       bool
}

// closeProgramSide closes the program's files in the guest after the program has started.
func (l *terminalIO) closeProgramSide() {
	for i, f := range l.programSide {
		if i == 0 || f != l.programSide[i-1] {
			_ = f.Close()
		}
	}
}

func (l *terminalIO) close() {
	_ = l.in.Close()
	if l.out != l.in {
		_ = l.out.Close()
	}
}

// foregroundGroup returns the process group that reads the pseudo terminal, or leader for a
// pair of pipes. It returns 0 if the group is unknown.
func (l *terminalIO) foregroundGroup(leader int) int {
	if !l.isPTY {
		return leader
	}
	group := 0
	raw, err := l.in.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if g, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil {
			group = g
		}
	})
	return group
}

func openPipes() (*terminalIO, error) {
	inR, inW, err := pipe(noReopen)
	if err != nil {
		return nil, err
	}
	outR, outW, err := pipe(writeOnly)
	if err != nil {
		return nil, errors.Join(err, inR.Close(), inW.Close())
	}
	return &terminalIO{in: inW, out: outR, programSide: [3]*os.File{inR, outW, outW}}, nil
}

// openPTY opens a pseudo terminal that passes bytes through unchanged: no echo, no line
// editing, no limit on the length of a line, no control characters, no CR before LF.
func openPTY() (*terminalIO, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*terminalIO, error) { return nil, errors.Join(err, master.Close(), slave.Close()) }
	mode, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		return fail(err)
	}
	mode.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	mode.Oflag &^= unix.OPOST
	mode.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, mode); err != nil {
		return fail(err)
	}
	// A nonblocking descriptor is polled by the runtime, so that closing it ends a pending read.
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	if err := errors.Join(master.Close(), unix.SetNonblock(fd, true)); err != nil {
		return nil, errors.Join(err, slave.Close(), unix.Close(fd))
	}
	m := os.NewFile(uintptr(fd), "terminal")
	return &terminalIO{in: m, out: m, programSide: [3]*os.File{slave, slave, slave}, isPTY: true}, nil
}
