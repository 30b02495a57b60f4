package hostile

import "time"

// limitCases use up memory, disk and processors.
var limitCases = []Case{
	{Name: "full disk", Surface: Bash, Damages: true, Rare: 5, Limit: 120 * time.Second, Text: `for d in /testbed /tmp /dev/shm $HOME; do cat /dev/zero >$d/full 2>/dev/null; done; echo on`, Want: Want{Time: Either, Has: []string{"on\n"}}},
	{Name: "disk full of files", Surface: Bash, Damages: true, Rare: 5, Limit: 20 * time.Second, Text: python(`
import os
os.mkdir("many")
try:
    for i in range(20000):
        os.close(os.open("many/%d" % i, os.O_CREAT))
except OSError as e:
    print(e.strerror)
print("made")`), Want: Want{Time: Either}},
	{Name: "deep directories", Surface: Bash, Damages: true, Rare: 3, Limit: 120 * time.Second, Text: python(`
import os
for i in range(3000):
    os.mkdir("d")
    os.chdir("d")
print("made")`), Want: Want{Has: []string{"made\n"}}},
	{Name: "memory", Surface: Bash, Rare: 3, Limit: 10 * time.Second, Text: python(`
hold = []
while True:
    hold.append(bytearray(1 << 20))`), Want: Want{Exit: exits(1, 137), Time: Either}},
	{Name: "memory mapped and touched", Surface: Bash, Rare: 3, Limit: 10 * time.Second, Text: python(`
import mmap
m = mmap.mmap(-1, 1 << 30)
for i in range(0, 1 << 30, 4096):
    m[i] = 1`), Want: Want{Exit: exits(1, 137), Time: Either}},
	{Name: "memory of many processes", Surface: Bash, Rare: 3, Limit: 10 * time.Second, Text: python(`
import os, time
for i in range(20):
    if os.fork() == 0:
        hold = bytearray(60 << 20)
        time.sleep(100)
time.sleep(100)`), Want: Want{Time: Either}},
	{Name: "shared memory", Surface: Bash, Rare: 3, Damages: true, Limit: 120 * time.Second, Text: `cat /dev/zero >/dev/shm/full; ls -l /dev/shm >/dev/null; echo on`, Want: Want{Has: []string{"on\n"}}},
	{Name: "all processors", Surface: Bash, Rare: 2, Limit: time.Second, Text: `for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; wait`, Want: Want{Time: TimesOut}},
	{Name: "endless loop in C", Surface: Bash, Harmless: true, Limit: time.Second, Text: `python3 -c 'import re; re.match("(a+)+$", "a" * 60 + "b")'`, Want: Want{Time: TimesOut}},
	{Name: "all descriptors", Surface: Bash, Text: python(`
import os
held = []
try:
    while True:
        held.append(os.open("/dev/null", 0))
except OSError as e:
    print(e.strerror)`), Want: Want{Exit: exits(0), Has: []string{"Too many open files"}}},
	{Name: "endless file", Surface: Bash, Damages: true, Text: python(`
try:
    with open("sparse", "wb") as f:
        f.truncate(1 << 50)
except OSError as e:
    print(e.strerror)
print("on")`), Want: Want{Has: []string{"on\n"}}},
	{Name: "segmentation fault", Surface: Bash, Harmless: true, Text: `python3 -X faulthandler -c 'import ctypes; ctypes.string_at(0)'; echo $?`, Want: Want{Has: []string{"139\n"}}},
}

// outputCases print too much output or control sequences.
var outputCases = []Case{
	{Name: "100 MB without a line end", Surface: Bash, Rare: 5, Limit: 300 * time.Second, Text: `head -c 100000000 /dev/zero | tr '\0' x`, Want: Want{Exit: exits(0), MaxBytes: 70_000, Has: []string{"xxx", "cut"}}},
	{Name: "100 MB of lines", Surface: Bash, Rare: 5, Limit: 300 * time.Second, Text: `yes 0123456789012345678901234567890123456789 | head -c 100000000`, Want: Want{Exit: exits(0), MaxBytes: 70_000}},
	{Name: "100 MB of errors", Surface: Bash, Rare: 5, Limit: 300 * time.Second, Text: `head -c 100000000 /dev/zero | tr '\0' e >&2`, Want: Want{Exit: exits(0), MaxBytes: 70_000}},
	{Name: "100 MB of a command", Surface: Run, Rare: 5, Limit: 300 * time.Second, Text: `head -c 100000000 /dev/zero`, Want: Want{Exit: exits(0), MaxBytes: 70_000}},
	{Name: "endless output", Surface: Bash, Harmless: true, Limit: time.Second, Text: `yes`, Want: Want{Time: TimesOut, MaxBytes: 70_000}},
	{Name: "endless output of a background job", Surface: Bash, Leaves: true, Text: `(while :; do yes | head -n 200; sleep 0.02; done) & echo on`},
	{Name: "random bytes", Surface: Bash, Harmless: true, Text: `head -c 100000 /dev/urandom`, Want: Want{Exit: exits(0), MaxBytes: 300_000}},
	{Name: "endless random bytes", Surface: Bash, Harmless: true, Limit: time.Second, Text: `cat /dev/urandom`, Want: Want{Time: TimesOut, MaxBytes: 300_000}},
	{Name: "NULs", Surface: Bash, Harmless: true, Text: `head -c 1000 /dev/zero; echo end`, Want: Want{Exit: exits(0), Has: []string{"end\n"}}},
	{Name: "all control codes", Surface: Bash, Harmless: true, Text: `for i in $(seq 0 255); do printf "\\x$(printf %x $i)"; done; echo; echo end`, Want: Want{Exit: exits(0), Has: []string{"end\n"}}},
	{Name: "alternate screen", Surface: Bash, Harmless: true, Text: `printf '\e[?1049h\e[2J\e[H\e[?25l\ec\e[6n\e[c'; echo end`, Want: Want{Exit: exits(0), Has: []string{"end\n"}}},
	{Name: "unterminated strings", Surface: Bash, Harmless: true, Text: `printf '\e]0;title'; printf '\ePq'; printf '\e_x'; printf '\e^y'; printf '\eX'`, Want: Want{Exit: exits(0)}},
	{Name: "cut characters", Surface: Bash, Harmless: true, Text: `for c in '\xe6' '\xbc' '\xa2' '\xf0\x9f' '\x98\x80' '\xc3'; do printf "$c"; sleep 0.01; done`, Want: Want{Exit: exits(0), Has: []string{"漢😀"}}},
}
