package redact

// Rules are data: those of gitleaks, and in rules.toml what it lacks. A rule runs
// only where one of its keywords stands, on a window of the text.

import (
	_ "embed"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	ahocorasick "github.com/BobuSumisu/aho-corasick"
	toml "github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

//go:embed rules.toml
var ownRules string

// ruleSet is what is read of a file of rules.
type ruleSet struct {
	Calls    []secretCall
	Commands []command
	Rules    []struct {
		ID          string
		Kind        string // of the placeholder; "" follows from the ID
		Regex       string
		Keywords    []string
		Entropy     float64
		SecretGroup int
		Needs       string // must follow the keyword in its line
		Value       string // "password", "striking" or "generated": what the secret must look like; "" is anything
	}
}

// Some rules are left out: names, hosts and public halves are not secret, and
// assignments, headers, curl and private keys are covered by rules of ours, which
// know more forms and fewer false alarms.
var excludedRules = regexp.MustCompile(`^(?:generic-api-key|hashicorp-tf-password|curl-.*|kubernetes-secret-yaml|private-key|pkcs12-file|slack-webhook-url|jwt-base64|sourcegraph-access-token|.*-(?:client|access)-id|.*-pub(?:lic)?-.*key|.*-public-key)$`)

// kinds are the types of placeholders of vendors with several rules.
var kinds = [...][2]string{
	{"github-", "github_token"}, {"gitlab-", "gitlab_token"}, {"slack-", "slack_token"}, {"aws-access-token", "aws_key"}, {"anthropic-", "anthropic_key"},
	{"openai-", "openai_key"}, {"gcp-api-key", "google_key"}, {"huggingface-", "huggingface_token"}, {"npm-", "npm_token"}, {"pypi-", "pypi_token"},
	{"digitalocean-", "digitalocean_token"}, {"sendgrid-", "sendgrid_key"}, {"stripe-", "stripe_key"}, {"jwt", "jwt"},
}

func kindOf(id string) string {
	for _, k := range kinds {
		if strings.HasPrefix(id, k[0]) {
			return k[1]
		}
	}
	return strings.ReplaceAll(id, "-", "_")
}

// keyword is what makes the finder look: rules that run, or a name such as "token".
type keyword struct {
	rules []*rule
	looks []look
}

// look looks for secrets around the word at f.text[from:to].
type look func(f *finder, from, to int)

type dictionary struct {
	trie     *ahocorasick.Trie
	keywords []keyword
}

// compiled are all rules and their keywords, read once per process.
var compiled = sync.OnceValue(func() *dictionary {
	words := map[string]*keyword{}
	word := func(text string) *keyword {
		text = strings.ToLower(text)
		if words[text] == nil {
			words[text] = &keyword{}
		}
		return words[text]
	}
	look := func(l look, texts ...string) {
		for _, text := range texts {
			k := word(text)
			k.looks = append(k.looks, l)
		}
	}
	for i, text := range []string{ownRules, config.DefaultConfig} {
		var set ruleSet
		if err := toml.Unmarshal([]byte(text), &set); err != nil {
			panic(fmt.Sprintf("redact: reading rules: %v", err)) // they are part of the program
		}
		for _, c := range set.Calls {
			look(c.look, c.Words...)
		}
		for _, c := range set.Commands {
			look(c.look, c.Words...)
			for _, w := range c.Words { // in a list of arguments
				if name, ok := strings.CutSuffix(w, " "); ok && name != "" {
					look(c.look, name+"', ", name+`", `)
				}
			}
		}
		for _, r := range set.Rules {
			if r.Regex == "" || i > 0 && excludedRules.MatchString(r.ID) {
				continue
			}
			c := &rule{kind: r.Kind, group: r.SecretGroup, ahead: window, needs: r.Needs, entropy: min(r.Entropy, capBits), password: r.Value == "password" || r.Value == "striking", striking: r.Value == "striking", mixed: r.Value == "generated"}
			if c.kind == "" {
				c.kind = kindOf(r.ID)
			}
			bounded := strings.HasPrefix(r.Regex, `\b`)
			expr := c.shorten(r.Regex)
			c.line = strings.Contains(expr, `[^\n`)
			c.sign = c.vendor && !strings.Contains(expr, `|\b`)
			begins := prefixes(expr)
			if slices.Contains(begins, "") {
				if len(r.Keywords) == 0 {
					panic("redact: rule " + r.ID + " has no keyword")
				}
				c.back, begins = lookback, r.Keywords
				c.re = regexp.MustCompile(expr)
			} else {
				c.re = regexp.MustCompile(`^(?:` + expr + `)`)
			}
			c.cost = perRun + size(c.re)/3
			for _, b := range begins {
				k := word(b)
				k.rules = append(k.rules, c)
				c.bare = c.bare || len(b) < 3
				c.begins = c.begins || bounded && (i == 0 || !strings.ContainsAny(b, "_-.~"))
			}
		}
	}
	for text, l := range keywordLooks {
		look(l, text)
	}
	d := &dictionary{}
	b := ahocorasick.NewTrieBuilder()
	for text, k := range words {
		b.AddString(text)
		d.keywords = append(d.keywords, *k)
	}
	d.trie = b.Build()
	return d
})

// size is how many steps an expression has: what a run of it costs at least.
func size(re *regexp.Regexp) int {
	parsed, _ := syntax.Parse(re.String(), syntax.Perl)
	prog, _ := syntax.Compile(parsed.Simplify()) // it was compiled before
	return len(prog.Inst)
}

// A rule for a value behind the name of a vendor begins with what may stand before
// that name, and most rules end with what may stand behind the secret: both cost
// time, and the end misses secrets before a comma or a bracket.
var (
	vendorHead = regexp.MustCompile(`^(?:\[\\w\.-\]\{0,50\}\?)?\(\?i[:)]\[\\w\.-\]\{0,50\}\?`)
	anyTail    = strings.NewReplacer("(?:[\\x60'\"\\s;]|\\\\[nr]|$)", "", "(?:[\\x60'\"\\s;]|\\\\[nr]|$|\\b)", "")
)

// shorten takes from an expression what only says where a secret may stand.
func (c *rule) shorten(expr string) string {
	expr = anyTail.Replace(expr)
	if head := vendorHead.FindString(expr); head != "" {
		c.vendor = true
		if expr = expr[len(head):]; strings.HasSuffix(head[:strings.LastIndex(head, "[")], ":") {
			return `(?i:` + expr
		}
		return `(?i)` + expr
	}
	expr = strings.TrimPrefix(expr, `\b`)
	if rest, ok := strings.CutPrefix(expr, `(?i)\b`); ok {
		expr = `(?i)` + rest
	}
	return strings.TrimSuffix(expr, `\b`)
}

// prefixes returns lower-case texts so that every match of an expression begins with one
// of them. It includes "" if there are no such texts.
func prefixes(expr string) []string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(fmt.Sprintf("redact: rule %s: %v", expr, err))
	}
	out, _ := starts(re)
	slices.Sort(out)
	return slices.Compact(out)
}

// starts returns the prefixes of a part of an expression, and whether each is all that
// the part matches.
func starts(re *syntax.Regexp) (out []string, whole bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}, true
	case syntax.OpCapture:
		return starts(re.Sub[0])
	case syntax.OpEmptyMatch, syntax.OpWordBoundary:
		return []string{""}, true
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			for c := re.Rune[i]; c <= re.Rune[i+1]; c++ {
				if out = append(out, strings.ToLower(string(c))); len(out) > 6 {
					return []string{""}, false
				}
			}
		}
		return out, true
	case syntax.OpAlternate:
		whole = true
		for _, sub := range re.Sub {
			some, all := starts(sub)
			out, whole = append(out, some...), whole && all
		}
		return out, whole
	case syntax.OpConcat:
		out = []string{""}
		for _, sub := range re.Sub {
			some, all := starts(sub)
			var next []string
			for _, a := range out {
				for _, b := range some {
					next = append(next, a+b)
				}
			}
			if len(next) > 256 {
				return out, false
			}
			if out = next; !all {
				return out, false
			}
		}
		return out, true
	}
	return []string{""}, false
}

// keywordLooks are the words that make the finder look at what stands around them.
var keywordLooks = map[string]look{
	"pass": lookName, "assword": lookName, "pwd": lookName, "pswd": lookName, "psw": lookName, "pw": lookName, "secret": lookName, "token": lookName, "key": lookName,
	"cred": lookName, "auth": lookName, "_pat": lookName, "psk": lookName, "sessionid": lookName,
	"://": lookAddress, "@": lookAt, "bearer": lookBearer, "basic": lookBasic, "-----begin": lookKeyBegin, "-----end": lookKeyEnd,
}
