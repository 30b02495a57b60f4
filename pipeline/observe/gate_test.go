package observe

import (
	"strings"
	"testing"
)

func TestGates(t *testing.T) {
	r := sample()
	r.Calls.CostUSD = 1.5
	for text, want := range map[string]bool{
		"resolved_rate<0.5": true, "resolved_rate < 0.3": false, "resolved>=1": true, "resolved>1": false, "missing<=1": true,
		"missing>1": false, "infra>0": true, "agent_error>0": false, "cost_usd>1.4": true,
	} {
		g, err := ParseGate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if said, got := g.Fails(r); got != want {
			t.Errorf("%s fails: %v (%s)", text, got, said)
		}
	}
	for text, want := range map[string]string{
		"resolved_rate": "no comparison", "solved<1": "choose from agent_error, cost_usd, infra, missing, resolved, resolved_rate",
		"infra>many": `"many" is not a number`, "infra=0": "no comparison",
	} {
		if _, err := ParseGate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
