package verify

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

// isChosen reports whether attack i of a list runs: all of them if the suite is on, otherwise a
// fifth.
func isChosen(t *testing.T, i int) bool { return suite.Hostile.Value(t) != "" || i%5 == 0 }

// A program cannot get the key of another interpreter, no matter how the tests are started: not itself,
// not through a child or an orphan, and not by changing files that the next interpreter loads before it
// asks for its key.
func TestHostileProgramsCannotTakeAnotherInterpretersKey(t *testing.T) {
	thief, err := os.ReadFile("testdata/thief.py")
	if err != nil {
		t.Fatal(err)
	}
	v, base := verifier(t), fixture(t)
	base = base.edited("Makefile", "test:\n\tpython3 -m pytest -q tests/test_basket.py\n\tpython3 -m pytest -q\n").
		edited("all.sh", "#!/bin/sh\npython3 -c 'import shop.prices'\npython3 -m pytest -q tests; code=$?\nexit $code\n")
	for i, entry := range []string{
		"cd . && python3 -m pytest -q", "PATH=/usr/bin:$PATH python3 -m pytest -q", `bash -c "python3 -m pytest -q"`,
		"python3 -c 'import shop.prices'; python3 -m pytest -q", "python3 -m pytest -q tests/test_basket.py; python3 -m pytest -q tests/test_prices.py",
		"python3 -m unittest discover tests; python3 -m pytest -q", "python3 -m pytest -q | cat", "./all.sh", "make -k test", pytestEntry,
	} {
		for j, method := range []string{"here", "child", "orphan", "sibling", "in_user_site", "in_sealed_file"} {
			if testing.Short() && (i+j)%3 != 0 || !isChosen(t, i) { // a third of the pairs has each entry and each method; make full tests all
				continue
			}
			t.Run(method+" "+entry, func(t *testing.T) {
				t.Parallel()
				text := fmt.Sprintf("METHOD = %q\n%s\n%s", method, thief, base.text(t, "shop/prices.py"))
				patch, sha := patchTo(t, v, base, base.edited("shop/prices.py", text))
				got, err := v.Verify(t.Context(), task(base, entry, pytestSpec), base, patch, sha)
				if err != nil || got.Status != schemas.VerifiedFail {
					t.Fatalf("%+v, %v", got, err)
				}
				if got.F2PPassed > 0 {
					t.Errorf("%d tests were reported as passed: %s", got.F2PPassed, got.Reason)
				}
			})
		}
	}
}

// If a program manipulates the file of test results, the verdict says so, even if the patch fixes the
// bug. It is never an infrastructure error.
func TestHostileChangesOfResultsAreAFinding(t *testing.T) {
	v, base := verifier(t), fixture(t)
	attacks := map[string]string{
		"too long":          `open(file, "ab").truncate(65 << 20)`,
		"one long line":     `open(file, "ab").write(b"x" * (65 << 20))`,
		"many lines":        `open(file, "ab").write((b"0 0 {}" + bytes([10])) * (10 << 20))`,
		"a full disk":       `os.system("cat /dev/zero >> " + file)`,
		"removed":           `os.unlink(file)`,
		"directory removed": `shutil.rmtree(place)`,
		"directory renamed": `os.rename(place, place + "x")`,
		"directory locked":  `os.chmod(place, 0)`,
		"locked":            `os.chmod(file, 0)`,
		"a directory":       `os.unlink(file); os.mkdir(file)`,
		"a pipe":            `os.unlink(file); os.mkfifo(file)`,
		"a socket":          `os.unlink(file); socket.socket(socket.AF_UNIX).bind(file)`,
		"a link to zeros":   `os.unlink(file); os.symlink("/dev/zero", file)`,
		"a link to a file":  `os.unlink(file); os.symlink("/etc/passwd", file)`,
		"a link to itself":  `os.unlink(file); os.symlink(file, file)`,
	}
	for i, name := range slices.Sorted(maps.Keys(attacks)) {
		if !isChosen(t, i) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A child process does it after the last record has been written.
			text := fmt.Sprintf(`
import atexit, glob, os, subprocess, sys
CODE = """
import os, shutil, socket, sys, time
place = os.path.dirname(sys.argv[1]); file = sys.argv[1]
end = time.time() + 20
while time.time() < end and os.path.exists("/proc/" + sys.argv[2]):
    time.sleep(0.01)
%s
open("/tmp/done", "w")
"""
if not os.path.exists("/tmp/begun"):
    open("/tmp/begun", "w")
    for file in glob.glob("/tmp/.tracesmith-*/records"):
        subprocess.Popen([sys.executable, "-c", CODE, file, str(os.getpid())], start_new_session=True)
`, attacks[name]) + honest(t).text(t, "shop/prices.py")
			patch, sha := patchTo(t, v, base, base.edited("shop/prices.py", text))
			entry := "python3 -m pytest -q; code=$?; while ! test -e /tmp/done; do sleep 0.02; done; exit $code"
			got, err := v.Verify(t.Context(), task(base, entry, pytestSpec), base, patch, sha)
			if err != nil || got.Status != schemas.VerifiedFail || !strings.HasPrefix(got.Reason, "tampering: ") {
				t.Errorf("%s: %s, %v\n%s", got.Status, got.Reason, err, got.Log)
			}
		})
	}
}
