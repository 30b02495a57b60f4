package hostile

import "time"

// python returns a shell command that runs a Python program.
func python(program string) string {
	return "python3 - <<'END_OF_PROGRAM'\n" + program + "\nEND_OF_PROGRAM"
}

// framingCases forge or disrupt the framing of the shell's output, or steal the nonce that
// protects it.
var framingCases = []Case{
	{Name: "prints a debugger prompt", Surface: Bash, Harmless: true,
		Text: `printf '(Pdb) \n(Pdb) '; echo done`, Want: Want{Exit: exits(0), Has: []string{"(Pdb) done"}}},
	{Name: "frame with a wrong nonce", Surface: Bash, Harmless: true,
		Text: `printf '\e]7717;ABCDEFGHIJKLMNOPQRSTUVWXYZ;2;%s;1;1;MTAw\a' $$; echo after; (exit 3)`,
		Want: Want{Exit: exits(3), Has: []string{"after"}}},
	{Name: "frames truncated everywhere", Surface: Bash, Harmless: true,
		Text: `f=$(printf '\e]7717;ABCDEFGHIJKLMNOPQRSTUVWXYZ;2;%s;1;1;MTAw\a' $$)
for ((i = 1; i < ${#f}; i++)); do printf %s "${f:0:i}"; done; printf '\e'`, Want: Want{Exit: exits(0)}},
	{Name: "frames nested", Surface: Bash, Harmless: true,
		Text: `for i in 1 2 3 4 5 6 7 8 9; do printf '\e]7717;\e]7717;A;1;1;1;1;\e\e]7717;'; done; echo; echo end`,
		Want: Want{Exit: exits(0), Has: []string{"end\n"}}},
	{Name: "huge frame", Surface: Bash, Harmless: true, Rare: 3,
		Text: `printf '\e]7717;A;1;1;1;1;'; head -c 3000000 /dev/zero | tr '\0' A; printf '\a'; echo end`,
		Want: Want{Exit: exits(0), MaxBytes: 70_000}},
	{Name: "nonce stolen by a trap", Surface: Bash, Harmless: true,
		Text: `trap 'case $BASH_COMMAND in *_frame*) eval "set -- $BASH_COMMAND"; trap - DEBUG; printf "\e]7717;%s;2;%s;1;1;MTk5\a" "$3" $$ >&198;; esac' DEBUG; echo on`},
	{Name: "nonce stolen, numbers used up", Surface: Bash, Harmless: true,
		Text: `trap 'case $BASH_COMMAND in *_frame*) eval "set -- $BASH_COMMAND"; trap - DEBUG; printf "\e]7717;%s;18446744073709551615;%s;1;1;MTAw\a" "$3" $$ >&198;; esac' DEBUG; echo on`},
	{Name: "nonce stolen from the shell's memory", Surface: Bash, Text: python(`
import os, re, time
shell = os.getppid()
try:
    with open("/proc/%d/maps" % shell) as maps, open("/proc/%d/mem" % shell, "rb", 0) as mem:
        for line in maps:
            if "[heap]" not in line and "rw-p" not in line:
                continue
            low, high = (int(x, 16) for x in line.split()[0].split("-"))
            mem.seek(low)
            for nonce in set(re.findall(rb"_frame [0-9] ([A-Z2-7]{26}) ", mem.read(high - low))):
                os.write(1, b"\x1b]7717;%s;2;%d;1;1;MTAw\x07" % (nonce, shell))
except OSError:
    pass
time.sleep(0.3)`)},
	{Name: "pipes of the shell stolen", Surface: Bash, Leaves: true, Limit: time.Second, Want: Want{Time: Either},
		Text: `for f in /proc/$$/fd/*; do [[ $(readlink $f) = pipe:* ]] && (exec cat $f >/dev/null 2>&1 &); done; echo on`},
	{Name: "input of the shell swallowed", Surface: Bash, Limit: time.Second, Want: Want{Time: Either},
		Text: `for n in 10 11 12 13 14 15; do cat <&$n & done 2>/dev/null; wait`},
	{Name: "reads standard input", Surface: Bash, Harmless: true, Text: `read x; echo "[$x]"; cat; python3 -c 'input()' 2>&1 | tail -n 1`,
		Want: Want{Exit: exits(0), Has: []string{"[]\n", "EOFError"}}},
	{Name: "descriptors closed", Surface: Bash, Limit: 2 * time.Second, Want: Want{Time: Either},
		Text: `for n in $(seq 0 255); do eval "exec $n>&-"; done`},
	{Name: "descriptors replaced", Surface: Bash, Limit: 2 * time.Second, Want: Want{Time: Either},
		Text: `for n in $(seq 0 255); do eval "exec $n>/dev/null"; done; echo lost`},
	{Name: "descriptor of the shell replaced", Surface: Bash, Harmless: true, Text: `exec 198>/dev/null; echo on`,
		Want: Want{Exit: exits(0), Has: []string{"on\n"}}},
	{Name: "descriptors of the shell written to", Surface: Bash,
		Text: `for f in /proc/$$/fd/*; do (printf '\e]7717;A;1;1;1;1;MQ==\a' >$f) 2>/dev/null; done; echo on`},
	{Name: "shell's own functions gone", Surface: Bash, Harmless: true,
		Text: `for f in $(compgen -A function); do unset -f $f; done 2>/dev/null; echo on`, Want: Want{Has: []string{"on\n"}}},
	{Name: "shell's frames turned off", Surface: Bash, Limit: time.Second, Text: `set -n`, Want: Want{Time: Either}},
	{Name: "commands skipped", Surface: Bash, Limit: time.Second, Text: `shopt -s extdebug; trap false DEBUG`, Want: Want{Time: Either}},
	{Name: "restricted shell", Surface: Bash, Limit: time.Second, Text: `set -r`, Want: Want{Time: Either}},
	{Name: "terminal modes changed", Surface: Bash, Harmless: true, Want: Want{Exit: exits(0), Has: []string{"end\n"}},
		Text: `stty raw -echo 2>/dev/null; python3 -c 'import pty; pty.spawn(["stty", "raw", "-echo"])' >/dev/null; echo end`},
}
