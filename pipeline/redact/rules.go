package redact

// Compiles the rules, which come from gitleaks and, where that lacks them, from rules.toml. A rule
// runs only at its keywords, on a window of the text.

import (
	"cmp"
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

// ruleSet holds the parts of a file of rules that the package uses.
type ruleSet struct {
	Calls    []secretCall
	Commands []command
	Rules    []struct {
		ID          string
		Kind        string // of the placeholder; "": derived from the ID
		Regex       string
		Keywords    []string
		Entropy     float64
		SecretGroup int
		Needs       string // must follow the keyword in its line
		Value       string // what the secret must look like: "password", "unlike-a-name" or "generated"; "": anything
	}
}

// excludedRules matches the IDs of gitleaks rules that are not used. Some find names, hosts and
// public keys, which are not secret. Others find assignments, headers, curl commands and private
// keys, for which this package has its own rules, with more forms and fewer false alarms.
var excludedRules = regexp.MustCompile(`^(?:generic-api-key|hashicorp-tf-password|curl-.*|kubernetes-secret-yaml|private-key|pkcs12-file|slack-webhook-url|jwt-base64|sourcegraph-access-token|.*-(?:client|access)-id|.*-pub(?:lic)?-.*key|.*-public-key)$`)

// kinds maps prefixes of rule IDs to the placeholder type of the vendor.
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

// keyword holds what runs where a keyword occurs in a text.
type keyword struct {
	rules []*rule
	looks []look
}

// look looks for secrets around the word at f.text[from:to].
type look func(f *finder, from, to int)

// dictionary holds all keywords and a trie that finds them in one pass over a text.
type dictionary struct {
	trie     *ahocorasick.Trie
	keywords []keyword // by the number of the pattern in trie
}

// compiled returns the dictionary of all rules, which is built once per process.
var compiled = sync.OnceValue(func() *dictionary {
	words := map[string]*keyword{}
	word := func(text string) *keyword {
		text = strings.ToLower(text)
		if words[text] == nil {
			words[text] = &keyword{}
		}
		return words[text]
	}
	addLook := func(l look, texts ...string) {
		for _, text := range texts {
			k := word(text)
			k.looks = append(k.looks, l)
		}
	}
	for i, text := range []string{ownRules, config.DefaultConfig} {
		var set ruleSet
		if err := toml.Unmarshal([]byte(text), &set); err != nil {
			panic(fmt.Sprintf("redact: reading rules: %v", err)) // impossible: the rules are part of the program
		}
		for _, c := range set.Calls {
			addLook(c.look, c.Words...)
		}
		for _, c := range set.Commands {
			addLook(c.look, c.Words...)
			for _, w := range c.Words { // the command as an item of a list of arguments
				if name, ok := strings.CutSuffix(w, " "); ok && name != "" {
					addLook(c.look, name+"', ", name+`", `)
				}
			}
		}
		for _, r := range set.Rules {
			if r.Regex == "" || i > 0 && excludedRules.MatchString(r.ID) {
				continue
			}
			c := &rule{kind: r.Kind, group: r.SecretGroup, ahead: window, needs: r.Needs, entropy: min(r.Entropy, capBits), password: r.Value == "password" || r.Value == "unlike-a-name", unlikeAName: r.Value == "unlike-a-name", generated: r.Value == "generated"}
			c.kind = cmp.Or(c.kind, kindOf(r.ID))
			bounded := strings.HasPrefix(r.Regex, `\b`)
			expr := c.shorten(r.Regex)
			c.line = strings.Contains(expr, `[^\n`)
			c.assigned = c.vendor && !strings.Contains(expr, `|\b`)
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
			c.cost = perRun + programSize(c.re)/3
			for _, b := range begins {
				k := word(b)
				k.rules = append(k.rules, c)
				c.shortKeyword = c.shortKeyword || len(b) < 3
				c.hexKeyword = c.hexKeyword || allHex(b)
				c.wordStart = c.wordStart || bounded && (i == 0 || !strings.ContainsAny(b, "_-.~"))
			}
		}
	}
	for text, l := range keywordLooks {
		addLook(l, text)
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

// programSize returns the number of steps of a compiled expression, which is the minimum cost of
// running it.
func programSize(re *regexp.Regexp) int {
	parsed, _ := syntax.Parse(re.String(), syntax.Perl)
	prog, _ := syntax.Compile(parsed.Simplify()) // no error: the expression was compiled before
	return len(prog.Inst)
}

// Parts of gitleaks expressions that shorten removes. vendorHead is the text before the name of a
// vendor, and anyTail the text after a secret. Matching them costs time, and a required tail misses
// secrets before a comma or a bracket.
var (
	vendorHead = regexp.MustCompile(`^(?:\[\\w\.-\]\{0,50\}\?)?\(\?i[:)]\[\\w\.-\]\{0,50\}\?`)
	anyTail    = strings.NewReplacer("(?:[\\x60'\"\\s;]|\\\\[nr]|$)", "", "(?:[\\x60'\"\\s;]|\\\\[nr]|$|\\b)", "")
)

// shorten removes the parts of an expression that only describe the text around a secret. It sets
// c.vendor if the expression begins with the name of a vendor.
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

// prefixes returns lower-case texts such that every match of an expression begins with one of
// them. If there are no such texts, the result contains "".
func prefixes(expr string) []string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(fmt.Sprintf("redact: rule %s: %v", expr, err))
	}
	out, _ := starts(re)
	slices.Sort(out)
	return slices.Compact(out)
}

// starts returns the prefixes of a part of an expression. whole says whether they are complete
// matches of the part.
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

// keywordLooks maps further keywords to the functions that look for secrets around them.
var keywordLooks = map[string]look{
	"pass": lookName, "assword": lookName, "pwd": lookName, "pswd": lookName, "psw": lookName, "pw": lookName, "secret": lookName, "token": lookName, "key": lookName,
	"cred": lookName, "auth": lookName, "_pat": lookName, "psk": lookName, "sessionid": lookName,
	"://": lookAddress, "@": lookAt, "bearer": lookBearer, "basic": lookBasic, "-----begin": lookKeyBegin, "-----end": lookKeyEnd,
}
