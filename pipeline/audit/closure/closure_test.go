package closure

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

const view = "shop/cart.py, lines 1-4 of 90\n    1  def total(items):\n    2      price = 0.074999\n    3      return sum(items)\n    4  \n"

// step returns a row of the agent.
func step(turn int32, message, tool string, args map[string]any, observation string) schemas.StepRow {
	row := schemas.StepRow{Source: "agent", TurnIndex: &turn, Message: message}
	if tool != "" {
		raw, _ := json.Marshal(args) // cannot fail
		row.ToolName, row.ToolCategory, row.ArgumentsJSON, row.Observation = &tool, &tool, new(string(raw)), &observation
	}
	return row
}

// opening returns the task and a step that shows the start of a file.
func opening() []schemas.StepRow {
	return []schemas.StepRow{
		{Source: "user", Message: "The total of 7.5 percent is wrong in shop/cart.py."},
		step(0, "", "view", map[string]any{"path": "shop/cart.py"}, view),
	}
}

// unseen returns the texts of what the last row names.
func unseen(rows ...schemas.StepRow) (out []string) {
	c := NewClosure(nil, map[string]bool{"Basket": true, "levels": true, "total": true})
	episode := metrics.Read(rows, "")
	for i := range rows {
		out = nil
		for _, e := range c.Step(&rows[i], episode.Readings[i].Lines) {
			out = append(out, e.Kind+" "+e.Text)
		}
	}
	return out
}

func pdb(command string) schemas.StepRow {
	return step(1, "", "pdb", map[string]any{"command": command}, "")
}

func bash(command string) schemas.StepRow {
	return step(1, "", "bash", map[string]any{"command": command}, "")
}

func say(message string) schemas.StepRow { return step(1, message, "", nil, "") }

// unseenCases are steps after those of opening, with what the closure reports of them.
var unseenCases = map[string]struct {
	row  schemas.StepRow
	want []string
}{
	"shown name":                     {pdb("p total(items)"), nil},
	"name":                           {pdb("p total(levels)"), []string{"identifier levels"}},
	"builtins and methods":           {pdb("p len(items), sorted(items.values()), None"), nil},
	"bound name":                     {pdb("!x1 = 5 ;; p x1"), nil},
	"English in a sentence":          {say("The levels look wrong, and/or the items."), nil},
	"name in backquotes":             {say("I read `levels` next."), []string{"identifier levels"}},
	"capital in a sentence":          {say("I think that Basket keeps them."), []string{"identifier Basket"}},
	"displayed line":                 {pdb("b shop/cart.py:3"), nil},
	"line":                           {pdb("b shop/cart.py:40"), []string{"line cart.py:40"}},
	"next lines":                     {step(1, "", "view", map[string]any{"path": "shop/cart.py", "start": 6}, ""), nil},
	"view around a line":             {step(1, "", "view", map[string]any{"path": "shop/cart.py", "start": 4, "end": 33}, ""), nil},
	"view of other lines":            {step(1, "", "view", map[string]any{"path": "shop/cart.py", "start": 140, "end": 163}, ""), []string{"line cart.py:163", "line cart.py:140"}},
	"page of sed":                    {bash("sed -n '110,140p' shop/cart.py"), nil},
	"short range of sed":             {bash("sed -n '110,118p' shop/cart.py"), []string{"line cart.py:110"}},
	"range that a text names":        {step(1, "Let me view lines 3-40.", "bash", map[string]any{"command": "sed -n '3,40p' shop/cart.py"}, ""), nil},
	"line of a new file":             {bash("printf 'a\\nb\\n' > shop/new.txt; sed -n '2p' shop/new.txt"), nil},
	"escaped dot of a number":        {bash(`sed -i "s/2\\.25/2\\.5/" shop/cart.py`), []string{"value 2.25", "value 2.5"}},
	"range of sed":                   {bash("sed -n '3,40p' shop/cart.py"), nil},
	"line of sed":                    {bash("sed -n '40p' shop/cart.py"), []string{"line cart.py:40"}},
	"line of a named file":           {say("Line 40 of the cart is wrong."), []string{"line cart.py:40"}},
	"number of output lines":         {bash("python3 -m pytest -q 2>&1 | tail -n 45"), nil},
	"file":                           {bash("cat shop/basket.py"), []string{"file shop/basket.py"}},
	"module":                         {bash("python3 -c 'import shop.basket'"), []string{"file shop/basket.py"}},
	"conventional file":              {bash("cat pyproject.toml"), nil},
	"test":                           {bash("python3 -m pytest -k test_empty_cart"), []string{"test test_empty_cart"}},
	"value":                          {say("It should be 1.5."), []string{"value 1.5"}},
	"hex":                            {say("It should be 0x28."), []string{"value 0x28"}},
	"value in words":                 {say("It should be forty-two."), []string{"value forty-two"}},
	"percentage":                     {say("The rate is 0.075."), nil},
	"cut number":                     {say("It is 0.0749 here."), nil},
	"calculation":                    {say("Four times 7.5 is 30."), nil},
	"condition":                      {pdb("b shop/cart.py:3, len(items) > 6"), []string{"iteration 6"}},
	"ignore count":                   {pdb("ignore 1 12"), []string{"iteration 12"}},
	"later iteration":                {say("The sixth iteration goes wrong."), []string{"iteration sixth iteration"}},
	"parts of the fix":               {say("The fix has 3 parts."), []string{"parts fix has 3 parts"}},
	"order of the fix":               {say("This is the first hunk of the fix."), []string{"order This is the first hunk"}},
	"fixed program":                  {say("With the fix, it returns None."), []string{"value With the fix, it returns"}},
	"joined strings":                 {pdb("p getattr(items, 'lev' + 'els')"), []string{"identifier levels"}},
	"hidden in a pattern":            {step(1, "", "grep", map[string]any{"pattern": `l[e]vels\b`}, ""), []string{"identifier levels"}},
	"part of a shown word":           {step(1, "", "grep", map[string]any{"pattern": "def tot"}, ""), nil},
	"new file":                       {bash("cat > trial_1.py <<'E'\nfrom shop.cart import total\nprint('\\nFound', total([2.75]), 'levels_9')\nE\npython3 trial_1.py"), nil},
	"copy":                           {bash("cp shop/cart.py shop/cart.py.backup && diff shop/cart.py shop/cart.py.backup"), nil},
	"text of a script":               {bash("cat > trial_1.py <<'E'\n# Try another approach_9\nclass Outer9: pass\nprint(f'{total([])} shelves_9', 'Outer9.total', 'shelf_{i}', '✓')\nE"), nil},
	"unit":                           {say("It is 8°C."), nil},
	"program in a command":           {bash(`python3 -c "import sys; print(f'\nLooking {total([9])}')"`), nil},
	"value in a command's program":   {bash("python3 -c 'print(total([9.75]))'"), []string{"value 9.75"}},
	"names of Python's modules":      {bash("python3 - <<'E'\nfrom datetime import timedelta\nprint(timedelta(1).total_seconds())\nE"), nil},
	"name in a command's program":    {bash("python3 -c 'total(levels)'"), []string{"identifier levels"}},
	"script of sed":                  {bash("sed -i '3s/x/y/' shop/cart.py && sed -i '3d' shop/cart.py"), nil},
	"compared string":                {bash("python3 - <<'E'\nif total([]) == 'shelf_9' or 'conftest.py':\n    print(1)\nE"), nil},
	"expected string":                {bash("cat > trial_1.py <<'E'\nassert total([]) == 'shelf_9'\nE"), []string{"value shelf_9"}},
	"name in a string of a script":   {bash("cat > trial_1.py <<'E'\nprint('levels')\nE"), []string{"identifier levels"}},
	"name in a new file":             {bash("cat > trial_1.py <<'E'\nprint(total(levels))\nE"), []string{"identifier levels"}},
	"expected value in a new file":   {bash("python3 - <<'E'\nx = total([2.75])\nassert x == 8.25\nE"), []string{"value 8.25"}},
	"name after a new file":          {bash("cat > trial_1.py <<'E'\nprint(1)\nE\ngrep -n 'levels\\b' shop/cart.py"), []string{"identifier levels"}},
	"numbers and strings of a trial": {bash("python3 -c \"from shop.cart import total; print(total([9.75, 'shelf_9']))\""), nil},
	"trial input in a sentence":      {step(1, "I try 9.75.", "bash", map[string]any{"command": "python3 - <<'E'\nfrom shop import cart\ncart.total([9.75])\nE"}, ""), nil},
	"input in an assertion":          {bash("python3 - <<'E'\nfrom shop import cart\nfor x in [9.75]:\n    assert x == 9.75\nE"), nil},
	"keyword argument":               {bash("python3 - <<'E'\nfrom shop import cart\nprint(cart.total([]), end='')\nE"), nil},
	"attribute that a class sets":    {bash("cat > trial_1.py <<'E'\nclass Outer9:\n    def __init__(self):\n        self.inner_9 = 1\nprint(Outer9().inner_9)\nE"), nil},
	"attribute of an import":         {bash("cat > trial_1.py <<'E'\nfrom shop import cart\nprint(cart.total_of_9([]))\nE"), []string{"identifier total_of_9"}},
	"string of several lines":        {bash("cat > trial_1.py <<'E'\ncode = \"\"\"\nx = old_total(1)\n\"\"\"\nE"), nil},
	"file that a program opens":      {bash("python3 - <<'E'\nprint(open('shop/basket.py').read())\nE"), []string{"file shop/basket.py"}},
	"file that a program writes":     {bash("python3 - <<'E'\nopen('shop/basket.py', 'w').write('')\nE"), nil},
	"names of a patch":               {bash("cat > new_total.patch <<'E'\n@@ -569,7 +571,12 @@\n+    new_total = total(items)\n+    return new_total\nE\ngit apply new_total.patch"), nil},
	"methods of Python's modules":    {bash("python3 - <<'E'\nimport unittest\nclass Trial(unittest.TestCase):\n    def test_9(self):\n        self.assertEqual(1, 1)\nE"), nil},
	"part of a shown word in bash":   {bash("grep -rn 'def tot\\|ITEM' shop | grep -v test_"), nil},
	"other case":                     {bash("grep -rni 'total' shop; ls -d price_9"), []string{"identifier price_9"}},
	"range of three digits":          {bash("sed -n '102,140p' shop/cart.py"), []string{"line cart.py:102"}},
	"range of awk":                   {bash("awk 'NR >= 3 && NR <= 40' shop/cart.py"), nil},
	"file before a pipe":             {bash("cat shop/cart.py | sed -n '3,40p'"), nil},
	"insertion of sed":               {bash("sed -i '3afrom shop import cart' shop/cart.py"), nil},
	"copy with two endings":          {bash("diff shop/cart.py shop/cart.py.fixed"), nil},
	"generator":                      {say("I use `yield from items.total()`."), nil},
	"module in a comment":            {bash("python3 - <<'E'\n# from shop.basket_9 to here\nprint(1)\nE"), nil},
	"compiled file":                  {say("It may be src/project/__init__.pyc or .pyi."), nil},
	"expected date":                  {bash("python3 - <<'E'\nfrom shop import cart\nassert cart.total([]) == '01/01/2023'\nE"), nil},
	"several targets":                {bash("python3 - <<'E'\nfrom shop import cart\nsum_9, rest_9 = cart.total([])\nprint(sum_9)\nE"), nil},
	"package":                        {bash("pip install PyYAML -q 2>&1 | tail -1"), nil},
	"date":                           {bash("git log --since=2019-01-01"), nil},
	"line of a copy":                 {bash("sed -n '3p' shop/cart.py.backup"), nil},
	"placeholder":                    {say("A name such as `some_items` or `foo` stands for the rest."), nil},
	"symbols":                        {say("With `θ2 ≈ 1`, it holds."), nil},
	"comment in a block of code":     {say("```python\ntotal(items)  # Not valid, but clear\n```"), nil},
	"chain of calculations":          {say("1 / 7.5 is 0.133, and 0.133 * 7.5 is 0.998."), nil},
	"variable of the shell and URL":  {bash("curl -s http://localhost:8000/x > $HOME/out_file.txt"), nil},
}

func TestWhatIsUnseen(t *testing.T) {
	for name, c := range unseenCases {
		if diff := cmp.Diff(c.want, unseen(append(opening(), c.row)...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Only what comes before the first edit can give away the parts and the order of the fix, also if a shell command edits.
func TestShellCommandsEdit(t *testing.T) {
	for _, command := range []string{"sed -i '3s/x/y/' shop/cart.py", "git diff", "python3 -c \"open('shop/cart.py', 'w').write('')\""} {
		edit := step(1, "", "bash", map[string]any{"command": command}, "")
		if got := unseen(append(opening(), edit, step(2, "The fix has 3 parts.", "", nil, ""))...); got != nil {
			t.Errorf("after %s: %v", command, got)
		}
	}
}

// A line that grep finds shows the module that it imports, and a name shows its parts.
func TestDerivedNames(t *testing.T) {
	grep := step(1, "", "bash", map[string]any{"command": "grep -rn tax"}, "tests/std_L016_x.py:from shop.taxes import rate\n")
	use := step(2, "Rule L016 is next.", "bash", map[string]any{"command": "find shop -name taxes.py"}, "")
	if got := unseen(append(opening(), grep, use)...); got != nil {
		t.Errorf("%q", got)
	}
}

// The texts of scripts are the agent's own, also if the names of the repository are unknown.
func TestTextsOfScripts(t *testing.T) {
	for _, command := range []string{
		"cat > a_9.patch <<'E'\n@@ -1 +1,2 @@\n+    # This replicates the rest\nE",
		"cat > trial_1.sql <<'E'\nSELECT col_9 FROM table_9 -- levelled\nE",
		"python3 - <<'E'\nimport re\nprint(re.compile('x').sub('y', 'z'))\nE",
		"python3 - <<'E'\nfrom shop import cart\nprint('shop/cart.py', '60s', cart)\nE",
	} {
		c := NewClosure(nil, nil)
		rows := append(opening(), step(1, "", "bash", map[string]any{"command": command}, ""))
		var got []Entity
		for i := range rows {
			got = c.Step(&rows[i], nil)
		}
		if len(got) > 0 {
			t.Errorf("%s: %v", command, got)
		}
	}
}

// A window that includes a displayed line is an ordinary view, whatever number it starts with.
func TestWindowAroundALine(t *testing.T) {
	grep := step(1, "", "bash", map[string]any{"command": "grep -n rate shop/tax.py"}, "347:x\n")
	view := step(2, "", "bash", map[string]any{"command": "sed -n '330,370p' shop/tax.py"}, "")
	if got := unseen(append(opening(), grep, view)...); got != nil {
		t.Errorf("%q", got)
	}
}

// The calls of a turn are made before any of their observations.
func TestCallsOfATurnSeeEarlierTurnsOnly(t *testing.T) {
	first := opening()[1]
	second := step(0, "", "pdb", map[string]any{"command": "b shop/cart.py:3"}, "")
	if got := unseen(opening()[0], first, second); !slices.Contains(got, "line cart.py:3") {
		t.Errorf("the second call of a turn knows the answer to the first: %v", got)
	}
}

func TestEntitiesCountOnceAndOnlyBeforeTheyAreShown(t *testing.T) {
	again := []schemas.StepRow{opening()[0], step(1, "`Basket` is new.", "", nil, ""), step(2, "`Basket` again.", "", nil, "")}
	if got := unseen(again...); got != nil {
		t.Errorf("%v", got)
	}
	edit := append(opening(), step(1, "", "edit", map[string]any{"path": "shop/cart.py", "start": 3}, ""), step(2, "The fix has 3 parts.", "", nil, ""))
	if got := unseen(edit...); got != nil {
		t.Errorf("after the edit: %v", got)
	}
}

// The lines that shell commands print are known, although their output has no numbers or no path.
func TestLinesOfShellCommands(t *testing.T) {
	bash := func(command, output string) schemas.StepRow {
		return step(1, "", "bash", map[string]any{"command": command}, output)
	}
	for command, want := range map[string][]string{
		"sed -n '14,20p' shop/tax.py": nil, "sed -n '91,99p' shop/tax.py": nil, "sed -n '80,95p' shop/tax.py": nil,
		"sed -n '53,59p' shop/tax.py": {"line tax.py:53"}, "sed -n '92p' shop/tax.py": {"line tax.py:92"},
	} {
		rows := append(opening(), bash("sed -n '1,12p' shop/tax.py", strings.Repeat("x\n", 12)), bash("grep -n rate shop/tax.py", "91:x\n"))
		last := bash(command, "")
		last.TurnIndex = new(int32(2))
		if diff := cmp.Diff(want, unseen(append(rows, last)...)); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}

// The agent's program may use names of its own. Later sentences may repeat them.
func TestTextsOfTheAgentMayBeRepeated(t *testing.T) {
	program := bash("python3 - <<'EOF'\nprint({'basket_levels': 5120.25})\nEOF")
	later := step(2, "I made `basket_levels` from 5120.25.", "", nil, "")
	if got := unseen(append(opening(), program, later)...); len(got) > 0 {
		t.Errorf("the repetition: %v", got)
	}
	if got := unseen(append(opening(), later)...); len(got) == 0 {
		t.Error("Step reports nothing for the sentence alone")
	}
}

// A step may use the files and names that an earlier one made.
func TestInventionsStayKnown(t *testing.T) {
	make := step(1, "", "bash", map[string]any{"command": "cat > trial_1.py <<'E'\ndef halved_twice(x):\n    return x\nE"}, "")
	use := step(2, "I call `halved_twice`.", "bash", map[string]any{"command": "python3 -c 'import trial_1; trial_1.halved_twice(3)' > out_1.txt; cat out_1.txt"}, "")
	if got := unseen(append(opening(), make, use)...); got != nil {
		t.Errorf("%q", got)
	}
}

// In an import, a name counts only if a reading call shows at any time that it exists. Lines
// that the agent has written show nothing.
func TestImportsCountWhatExists(t *testing.T) {
	look := func(n int32, command, observation string) schemas.StepRow {
		row := step(n, "", "bash", map[string]any{"command": command}, observation)
		row.ActionKind = metrics.SeekStatic
		return row
	}
	rows := append(opening(),
		step(1, "I think of `Basket`, `my_example`, `own_name` and shop/prices.py, of shop/none.py and of 7731. First, I change two places.", "", nil, ""),
		step(2, "", "bash", map[string]any{"command": "cat > trial_2.py <<'E'\nclass own_name:\n    pass\nE"}, ""),
		look(3, "grep -n class shop/cart.py trial_2.py", "shop/cart.py:40:class Basket:\ntrial_2.py:1:class own_name:\n"),
		look(4, "ls shop", "shop/prices.py\n"), look(5, "cat shop/none.py", "cat: shop/none.py: No such file or directory\n"))
	var e schemas.EpisodeRow
	if err := FillGrounding(&e, metrics.Read(rows, ""), nil, nil, true); err != nil {
		t.Fatal(err)
	}
	if got := schemas.Value(rows[2].UnseenJSON); got != `[{"kind":"identifier","text":"Basket"},{"kind":"file","text":"shop/prices.py"}]` {
		t.Error(got)
	}
	rows[2].UnseenJSON, rows[2].NUnseen = nil, nil
	if err := FillGrounding(&e, metrics.Read(rows, ""), nil, nil, false); err != nil {
		t.Fatal(err)
	}
	if got := schemas.Value(rows[2].NUnseen); got != 5 {
		t.Errorf("in a run, %d: %s", got, schemas.Value(rows[2].UnseenJSON))
	}
}

func TestColumns(t *testing.T) {
	rows := append(opening(), step(1, "I read `Basket`.", "view", map[string]any{"path": "shop/cart.py", "start": 1}, ""), step(2, "Done.", "", nil, ""))
	var e schemas.EpisodeRow
	if err := FillGrounding(&e, metrics.Read(rows, ""), nil, nil, false); err != nil {
		t.Fatal(err)
	}
	if *e.NUnseen != 1 || math.Abs(*e.GroundedShare-2./3) > 1e-9 || *rows[2].UnseenJSON != `[{"kind":"identifier","text":"Basket"}]` || rows[1].UnseenJSON != nil || *rows[3].NUnseen != 0 {
		t.Errorf("%+v %v", e, schemas.Value(rows[2].UnseenJSON))
	}
	if rows[3].SurpriseBits != nil || math.Abs(*e.SurpriseBits-*rows[1].SurpriseBits-*rows[2].SurpriseBits) > 1e-9 {
		t.Errorf("%v", *e.SurpriseBits)
	}
}

// The probabilities of the targets add up to 1, and a function in a traceback is less surprising.
func TestSurprise(t *testing.T) {
	c := NewClosure(nil, nil)
	rows := []schemas.StepRow{step(0, "", "eval", nil, "FAILED tests/test_cart.py::test_tax\n  File \"shop/tax.py\", line 4, in rate\n"),
		step(1, "", "view", map[string]any{"path": "shop/tax.py"}, "shop/tax.py, lines 3-9 of 9\n    3  def rate(x):\n    4      return x\n    8  def unused(x):\n    9      return x\n")}
	for i := range rows {
		c.Step(&rows[i], nil)
	}
	c.flush()
	sum := 0.0
	bits := map[string]float64{}
	for _, p := range c.targets.places {
		args := map[string]any{"path": p.file, "start": float64(p.line)}
		row := step(2, "", "view", args, "")
		b, ok := c.surprise(&row, args)
		if !ok {
			t.Errorf("%+v is no target", p)
		}
		sum += math.Exp2(-b)
		bits[p.name] = b
	}
	if math.Abs(sum-1) > 1e-9 || bits["rate"] >= bits["unused"] {
		t.Errorf("sum %v, bits %v", sum, bits)
	}
}
