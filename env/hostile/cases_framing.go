package hostile

// framingCases print what the shell and the debugger say to the host, or nearly.
var framingCases = []Case{
	{Name: "prints a debugger prompt", Door: Bash, Harmless: true,
		Text: `printf '(Pdb) \n(Pdb) '; echo done`, Want: Want{Exit: exits(0), Has: []string{"(Pdb) done"}}},
}
