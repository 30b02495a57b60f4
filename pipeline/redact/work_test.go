package redact

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostile holds texts whose repetition causes much work.
var hostile = []string{
	"KEY=", "sk-a1", "sk-a1b2c3d4e5f6g-", "AKIA", "-----BEGIN ", "-----BEGIN RSA " + "PRIVATE KEY-----\n", "-----END RSA " + "PRIVATE KEY-----", "aGVsbG8gd29ybGQg",
	`\\\\\\"`, `password=\"`, `password="a`, "password='x1y2", "adafruit = ", "curl -u ", "curl ", "machine a login b password ", "https://a:b", "://:@", "bearer ", "eyJa.eyJ",
	"token token = a1b2c3d4 ", "key: key: ", "api_key=a1B2c3D4e5F6g7H8i9J0 ", "passwordpassword", "_mmk", "q~", "facebook 123456789012345|", "atlasv1.", "ey", ":5432:",
	"auth=('a', '", "mysql -p", "xoxb-", "key=\n", "key = = = ", "glpat-glpat-", "secret_secret_", "default login a ", "echo a", "set password ", `{"a": "{\"b\": \"`, "%25", "\\u003d",
	"set password", "set password \t\t", "set password a b c d ", "config set password ", "password is a", "password {", "password value=", "secret=a1b2c3#", "<secret>a1", "facebook ", "twitter ", "okta ", "jira ",
	"heroku a", "docker login ", "curl -u a:b ", "define('PASSWORD', ", "postgres://a:b1c2d3@", "login password ", "-----BEGIN PRIVATE KEY" + "-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBK\n", " -u a -p ", "tochararray(", "chpasswd ",
	"pass a 1\n", "log in as a:", "set_password(a, ", "cookie: a=b; ", "net use a ", "password of joe 1 is ", "secret set a --value ", "'].type('", " auth ",
	"connect('a1', ", "login('a', 'b1', ", "login(", "(login(", "hashpw('a1'", "create_user(a, 'b1c2d3'", " -u -p ", " -p a1b2c3d4", "mysql -pa1b2c3d4 ", "mysql -p -p ", "curl -u a:b1c2d3 ", "a:b1c2d3@", "@", "a1@b", "password\").x(\"a1",
	"password\", \"a1", "use a1 as password ", "use a1b2c3d4 as the password ", "'a1b2' == password ", "where 'a1' = password ", "value='a1b2' name='password'", "(Pdb) p password\na1b2\n", "$ echo password\n", ">>> token)\n", "password\n",
	"password:\n\n", "password (a1) ", "password - a1 ", "token a1 is ", "api key a1 ", "key a1 ", "key 1 ", "password) values (", "variable \"password\" {\n default = ", "password {\n  a = 1\n", "try admin/a", "use a / b", "/user:a ", "kinit <<< a", "echo a1 | sudo -S",
	"password='a1b2c3d4'\n", "creds for a b c ", "log in with a / b", "expect password\nsend '", "password.data == 'a1", "password.send_keys('a1", "pass 1 2 3 ", "basic_auth 'a', '", "login: [", "sqlplus a/", "?key=a1&",
	"a LOGIN b ", " IDENTIFY a", "pw", "a,password\n", "|a|password|\n|--|--|\n", "password, 'a1', ", "PASSWORD, 'a1", "admin / a1b2", " root:a", "<<< a", "passwd <<< a1b2c3 ", "a1b2c3d4 as password ", "password with a1 ", "(gdb) p password\n0x1: ",
	"password = 0x1 \"a", "security -p -P a1", "name=\"password\"\n\na1", "pre-shared-key a1 ", "net user a ", "openssl passwd -1 ", "hash::make('a1", "a, password = 'b', 'c1', ",
}

// The length of a text limits the work on it. A text that needs more is withheld. The last match
// may exceed the limit a little.
func TestWorkIsBounded(t *testing.T) {
	for _, part := range hostile {
		text := strings.Repeat(part, 256<<10/len(part))
		r := New(nil)
		got := r.Text(text)
		if limit := atLeast + perByte*len(text) + 4*perRead*maxWindow; r.work.spent > limit {
			t.Errorf("%q: %d units of work, more than the limit of %d", part, r.work.spent, limit)
		}
		if r.work.over() != strings.HasPrefix(got, marker+withheld+":") || r.work.over() != (r.Counts()[withheld] == 1) {
			t.Errorf("%q: over budget is %v, but the result is %.60q and the counts are %v", part, r.work.over(), got, r.Counts())
		}
	}
}

// Go's package regexp runs an expression of more than 500 steps on another engine, which takes ten
// times as long per byte. The expressions of this package must be shorter.
func TestExpressionsAreShort(t *testing.T) {
	exprs := []*regexp.Regexp{gap, blanks, address, bearer, basic, lead, scheme, comment, template, placeholderWord, nameWords, call, numeric, pemBegin, pemEnd, pemBody, pemRest, setCommand, filledIn, columns, prompt, result, precedes, columnNames, ruleLine, innerNumber, fileName, verb, mailAddress}
	for _, k := range compiled().keywords {
		for _, r := range k.rules {
			if r.password {
				exprs = append(exprs, r.re)
			}
		}
	}
	for _, re := range exprs {
		if n := programSize(re); n > 500 {
			t.Errorf("%d steps: %.80s", n, re)
		}
	}
}

// A rule that reads to the end of its line does not read the line again for every command in it.
// Otherwise it would take 90 or more units of work per byte.
func TestOverlappingWindowsAreReadOnce(t *testing.T) {
	for _, part := range []string{"curl ", "docker login ", "set password "} {
		m := &meter{budget: 1 << 40}
		find(strings.Repeat(part, 64<<10/len(part)), m)
		if perByte := float64(m.spent) / (64 << 10); perByte > 20 {
			t.Errorf("%q: %.1f units of work per byte", part, perByte)
		}
	}
}

// docs/secrets.md states the number of rules.
func TestNumberOfRules(t *testing.T) {
	rules := map[*rule]bool{}
	for _, k := range compiled().keywords {
		for _, r := range k.rules {
			rules[r] = true
		}
	}
	checkDocumented(t, fmt.Sprintf("%d rules", len(rules)))
}

// A text that needs too much work is replaced as a whole, and its placeholder is not changed again.
func TestTextsThatNeedTooMuchWorkAreWithheld(t *testing.T) {
	text := strings.Repeat("KEY=", 64<<10)
	r := New(nil)
	if got := r.Text(text); got != "[REDACTED:withheld:1]" {
		t.Errorf("%.60q", got)
	}
	if r.Counts()[withheld] != 1 {
		t.Errorf("%v", r.Counts())
	}
	if err := NewChecker(nil).Check("a file", text); err == nil {
		t.Error("the checker accepts a text that it could not search")
	}
	if err := NewChecker(nil).Check("a file", "[REDACTED:withheld:1]"); err != nil {
		t.Error(err)
	}
}

// Programs and tests about secrets name many of them. They are searched, not withheld, however long they are.
func TestTextsAboutSecretsAreSearched(t *testing.T) {
	part := `    {"token": "value", "secret": "value", "name": "value"}, # cleanse_setting hides the password, not the name
    result = reporter.cleanse_setting("MY_TOKEN", {"api_key": [{"secret": "value"}, {"signature": "value"}]})
`
	for _, n := range []int{1, 10, 1000} {
		text := strings.Repeat(part, n)
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{text, string(quoted)} {
			r := New(nil)
			if r.Text(s); r.Counts()[withheld] > 0 {
				t.Errorf("%d bytes need %d units of work and may use %d", len(s), r.work.spent, r.work.budget)
			}
		}
	}
}

// goSource returns source code of the Go distribution as a sample of ordinary text, of about limit
// bytes.
func goSource(t testing.TB, limit int) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	files, err := filepath.Glob(filepath.Join(root, "net", "http", "*.go"))
	more, _ := filepath.Glob(filepath.Join(root, "go", "*", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", root, err)
	}
	var b strings.Builder
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if b.Write(text); b.Len() > limit {
			break
		}
	}
	return b.String()
}

// Ordinary text needs about a tenth of its budget at most, so that none is withheld: programs, and
// one-line documents that contain the names of commands within words.
func TestOrdinaryTextNeedsLittleWork(t *testing.T) {
	documents, err := filepath.Glob("../../schemas/testdata/1.3.0/dataset/*/croissant.json")
	if err != nil || len(documents) == 0 {
		t.Fatalf("no documents found: %v", err)
	}
	texts := map[string]string{"source": goSource(t, 4<<20), "imports": strings.Repeat("from networkx.algorithms.network import recordSet\n", 200)}
	for _, file := range documents {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	for name, text := range texts {
		r := New(nil)
		r.Text(text)
		if share := float64(r.work.spent) / float64(r.work.budget); share > 0.1 {
			t.Errorf("%s: %.2f of the budget", name, share)
		}
	}
}

// A comment in the text does not switch rules off.
func TestCommentsDoNotDisableRules(t *testing.T) {
	secret := planted["github_token"]
	for _, comment := range []string{"gitleaks:allow", "# gitleaks:allow", "// pragma: allowlist secret", "# nosec", "trufflehog:ignore"} {
		if got := New(nil).Text("t = '" + secret + "' " + comment); strings.Contains(got, secret) {
			t.Errorf("%s: %q", comment, got)
		}
	}
}

// Redactors share the index of known values, so that a redactor costs no more with a thousand
// values than with one.
func TestRedactorsShareKnownValues(t *testing.T) {
	cost := func(n int) float64 {
		var values []string
		for i := range n {
			values = append(values, fmt.Sprintf("value-number-%d-of-many", i))
		}
		known := NewKnown(values)
		return testing.AllocsPerRun(100, func() { New(known).Text("short and clear") })
	}
	if one, many := cost(1), cost(1000); many > one {
		t.Errorf("%v allocations with one known value, %v with a thousand", one, many)
	}
}

// Redacting programs must reach 15 MB/s on one core.
func BenchmarkOrdinaryText(b *testing.B) {
	text := goSource(b, 2<<20)
	known := NewKnown([]string{"hunter2-hunter2", "another-secret-0123"})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		New(known).Text(text)
	}
}

// BenchmarkHostileText measures the texts that take the most work, in CPU seconds per MB.
func BenchmarkHostileText(b *testing.B) {
	for _, size := range []int{1 << 10, 8 << 10, 256 << 10} {
		for _, part := range hostile {
			text := strings.Repeat(part, size/len(part)+1)[:size]
			b.Run(fmt.Sprintf("%dKiB/%.16q", size>>10, part), func(b *testing.B) {
				New(nil).Text(text)
				begin := cpuSeconds(b)
				for b.Loop() {
					New(nil).Text(text)
				}
				b.ReportMetric((cpuSeconds(b)-begin)/float64(b.N*size)*1e6, "cpu-s/MB")
			})
		}
	}
}

func cpuSeconds(b testing.TB) float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

// The keywords in placeholders, such as private_key, need no work, so that a text that could be
// redacted can also be checked afterwards.
func TestPlaceholdersNeedLittleWork(t *testing.T) {
	text := strings.Repeat(`"[REDACTED:private_key:1]|[REDACTED:aws_secret:2]|[REDACTED:github_token:1]"; `, 40)
	if got := New(nil).Text(text); got != text {
		t.Errorf("became %.80q", got)
	}
}

// A long line of many commands, as in JSON, does not use up the budget.
func TestLineOfCommandsNeedsLittleWork(t *testing.T) {
	text := strings.Repeat("echo abc; printf def; ", 60)
	if got := New(nil).Text(text); got != text {
		t.Errorf("became %.80q", got)
	}
}
