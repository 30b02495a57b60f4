package normalise

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
)

// An AWS secret access key has no prefix, so it is searched for only if the episode contains an
// access key ID.
func TestAWSSecretAccessKey(t *testing.T) {
	secretKey := "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEZ"
	ep := golden()
	ep.Steps[2].Observation.Text = "found " + secretKey // the access key ID appears only later
	ep.Steps[3].Observation.Text = planted["aws_key"] + "\n" + secretKey
	s := normalised(t, ep, Config{})
	if got := *s.Steps[2].Observation + *s.Steps[3].Observation; got != "found [REDACTED:aws_secret:1][REDACTED:aws_key:1]\n[REDACTED:aws_secret:1]" {
		t.Errorf("%s", got)
	}
}

// A value that was assigned to the name of a secret is also found without the name, even in
// earlier texts.
func TestLearnedSecrets(t *testing.T) {
	ep := golden()
	value := planted["assigned"]
	ep.Steps[2].Observation.Text = "it says " + value
	ep.Steps[3].Observation.Text = "DB_PASSWORD=" + value
	ep.Patch = []byte(strings.Replace(patch, "a + b", "'"+value+"'", 1))
	body, err := schemas.CanonicalJSON(normalised(t, ep, Config{}))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), value) {
		t.Error("a learned secret is still in the rows")
	}
	var counts map[string]int
	if err := json.Unmarshal([]byte(*normalised(t, ep, Config{}).Episode.RedactionsJSON), &counts); err != nil || counts["assigned"] != 3 {
		t.Errorf("counts are %v, %v, want 3: those of the last pass only", counts, err)
	}
}

// redactions_json counts the placeholders in the rows.
func TestRedactionCountsMatch(t *testing.T) {
	ep := golden()
	text := planted["aws_key"] + " " + planted["github_token"] + " " + planted["aws_key"]
	ep.Steps[2].Reply.Message = text
	ep.Steps[2].Observation.Text = text + "\n" + planted["openai_key"]
	ep.Steps[3].Observation.Text = planted["google_key"] + " " + planted["slack_token"]
	ep.Steps[4].ToolCall.Arguments = json.RawMessage(`{"command":"p '` + planted["slack_token"] + `'"}`)
	s := normalised(t, ep, Config{})
	raw, err := schemas.CanonicalJSON(s.Steps)
	if err != nil {
		t.Fatal(err)
	}
	inRows := map[string]int{}
	for _, m := range regexp.MustCompile(`\[REDACTED:(\w+):\d+\]`).FindAllSubmatch(raw, -1) {
		inRows[string(m[1])]++
	}
	var counted map[string]int
	if err := json.Unmarshal([]byte(*s.Episode.RedactionsJSON), &counted); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"aws_key": 4, "github_token": 2, "openai_key": 1, "google_key": 1, "slack_token": 2}
	if !maps.Equal(counted, want) || !maps.Equal(inRows, want) {
		t.Errorf("redactions_json has %v, the rows contain %v, want %v", counted, inRows, want)
	}
	rows := 0
	for _, st := range s.Steps {
		rows += int(*st.Redacted)
	}
	if rows != 10 {
		t.Errorf("the sum of the column redacted is %d, want 10", rows)
	}
}

// Tool definitions can contain secrets, for example in descriptions from MCP servers. They get
// placeholders, and every row has the hash of the redacted list.
func TestToolDefinitionsAreRedacted(t *testing.T) {
	ep := golden()
	shown := []schemas.ToolSchema{{
		Name: "view", Description: "Shows files of " + planted["known"] + ". Key: " + planted["github_token"],
		Parameters: json.RawMessage(`{"properties":{"token":{"default":"` + planted["openai_key"] + `","type":"string"}},"type":"object"}`),
	}, {Name: "pdb", Description: "Debugs.", Parameters: json.RawMessage(`{"type": "object"}`)}}
	ep.Tools, ep.ToolSets = shown, [][]schemas.ToolSchema{shown[:1]}
	ep.Steps[2].Reply.ToolSet = schemas.Hash(shown[:1])
	ep.Steps[4].Reply.ToolSet = schemas.Hash(shown)
	s := normalised(t, ep, Config{Secrets: redact.NewKnown([]string{planted["known"]})})
	if got := s.Tools[0].Description; got != "Shows files of [REDACTED:known:1]. Key: [REDACTED:github_token:1]" {
		t.Error(got)
	}
	if got := string(s.Tools[0].Parameters); !strings.Contains(got, "[REDACTED:openai_key:1]") {
		t.Error(got)
	}
	if string(s.Tools[1].Parameters) != `{"type": "object"}` || strings.Contains(ep.Tools[0].Description, "REDACTED") {
		t.Error("a definition without a secret, or the episode itself, was changed")
	}
	if *s.Episode.ToolSetSHA256 != schemas.Hash(s.Tools) || *s.Steps[2].ToolSetSHA256 != schemas.Hash(s.ToolSets[0]) || *s.Steps[4].ToolSetSHA256 != schemas.Hash(s.Tools) {
		t.Error("rows have the hash of a list that is not staged")
	}
	ep.Tools[0].Name = planted["github_token"]
	if _, err := Episode(ep, Config{}); err == nil || !strings.Contains(err.Error(), "tool_names[0] still holds a secret (github_token)") {
		t.Errorf("a secret as the name of a tool: %v", err)
	}
}

// A secret that is recognized by its name is also found as a member of a JSON object.
func TestSecretsInJSONObjects(t *testing.T) {
	ep := golden()
	value := "kq7w" + "2mz9"
	ep.Steps[4].ToolCall.Arguments = json.RawMessage(`{"command":"p x","env":{"DB_PASSWORD":"` + value + `","HOME":"/root"}}`)
	s := normalised(t, ep, Config{})
	if got := *s.Steps[4].ArgumentsJSON; strings.Contains(got, value) || !strings.Contains(got, `"DB_PASSWORD":"[REDACTED:assigned:1]"`) || !strings.Contains(got, `"HOME":"/root"`) {
		t.Error(got)
	}
}

// With its quotes and line breaks escaped, this command looks as if a string had a password. The episode
// is staged without that part, because the check of what is staged would refuse it.
func TestTextsThatLookSecretWhenEscaped(t *testing.T) {
	ep := golden()
	for _, command := range []string{
		"print(\"1. widget with id='id_password':\")\nprint(f\"   Result: {label_of(widget.id_for_label)}\")",
		`assert setting('PASSWORD', 'super_secret') == reporter.cleansed_substitute` + "\nprint('PASSWORD -> ********')\n" + `print('\\nTest 3: case')`,
	} {
		arguments, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		ep.Steps[4].ToolCall.Arguments = arguments
		s := normalised(t, ep, Config{})
		if got := *s.Steps[4].ArgumentsJSON; !strings.Contains(got, "[REDACTED:assigned:") || !json.Valid([]byte(got)) || !strings.Contains(got, "print(") {
			t.Error(got)
		}
	}
}
