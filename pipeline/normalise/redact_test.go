package normalise

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// The secret half of an AWS key has no mark: it is looked for where there is a key.
func TestSecretHalfOfAnAWSKey(t *testing.T) {
	half := "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEZ"
	ep := golden()
	ep.Steps[2].Observation.Text = "found " + half // before the key itself is seen
	ep.Steps[3].Observation.Text = planted["aws_key"] + "\n" + half
	s := normalised(t, ep, Config{})
	if got := *s.Steps[2].Observation + *s.Steps[3].Observation; got != "found [REDACTED:aws_secret:1][REDACTED:aws_key:1]\n[REDACTED:aws_secret:1]" {
		t.Errorf("%s", got)
	}
}

// What was assigned to the name of a secret is found without its name too, also
// in what was said before.
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
		t.Error("a value that is known to be a secret stays where its name is not")
	}
	var counts map[string]int
	if err := json.Unmarshal([]byte(*normalised(t, ep, Config{}).Episode.RedactionsJSON), &counts); err != nil || counts["assigned"] != 3 {
		t.Errorf("counts are of one reading: %v %v", counts, err)
	}
}
