package audit

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// Claims fills the columns about claims. A row's claims_json holds the claims that the policy stored, if it did;
// otherwise the claims are extracted from the message. Claims are checked against the rows before theirs. Claims returns
// the record of the episode.
func Claims(e *schemas.EpisodeRow, episode *metrics.Episode) (*Record, error) {
	record, rows := newRecord(episode.Workspace), episode.Rows
	var total counts
	hasMessages, namesCause := false, false
	for i := range rows {
		row := &rows[i]
		row.NClaimsTrue, row.NClaimsFalse, row.NClaimsUnchecked = nil, nil, nil
		if row.Source == "agent" && row.Message != "" {
			hasMessages = true
			n, err := checkRow(row, record)
			if err != nil {
				return nil, fmt.Errorf("claims of step %d: %w", row.StepIndex, err)
			}
			for v := range n {
				total[v] += n[v]
			}
			namesCause = namesCause || len(record.Values) > 0 && strings.Contains(*row.ClaimsJSON, causeKind)
		}
		record.add(row, &episode.Readings[i])
	}
	e.NClaimsTrue, e.NClaimsFalse, e.NClaimsUnchecked, e.FalseClaimShare, e.NamesCause = nil, nil, nil, nil, nil
	if hasMessages {
		e.NamesCause = &namesCause
		e.NClaimsTrue, e.NClaimsFalse, e.NClaimsUnchecked = new(total[0]), new(total[1]), new(total[2])
	}
	if decided := total[0] + total[1]; decided > 0 {
		e.FalseClaimShare = new(float64(total[1]) / float64(decided))
	}
	e.Ending = new(ending(rows, namesCause))
	return record, nil
}

// causeKind is in the claims of a row that names a cause, because they are canonical JSON.
const causeKind = `"kind":"` + schemas.ClaimCause + `"`

// ending returns how an episode ended, a value of the column ending.
func ending(rows []schemas.StepRow, namesCause bool) string {
	out := schemas.EndingNone
	if namesCause {
		out = schemas.EndingConclusion
	}
	for i := range rows {
		row := &rows[i]
		switch {
		case row.IsError != nil && *row.IsError:
		case row.GoldEdit != nil && *row.GoldEdit:
			return schemas.EndingGoldEdit
		case row.ActionKind == metrics.Edit:
			out = schemas.EndingEdit
		case out == schemas.EndingNone && row.ToolName != nil && *row.ToolName == handover.Name:
			out = schemas.EndingConclusion
		}
	}
	return out
}

// counts has the numbers of true, false and unchecked claims.
type counts [3]int32

func checkRow(row *schemas.StepRow, record *Record) (n counts, err error) {
	claims, extracted, err := claimsOf(row, record)
	if err != nil {
		return n, err
	}
	out := make([]schemas.CheckedClaim, len(claims))
	for i, c := range claims {
		out[i] = Check(c, record)
		out[i].Extracted = extracted
		switch out[i].Verdict {
		case schemas.ClaimTrue:
			n[0]++
		case schemas.ClaimFalse:
			n[1]++
		default:
			n[2]++
		}
	}
	text, err := encode(out)
	if err != nil {
		return n, err
	}
	row.ClaimsJSON = new(string(text))
	row.NClaimsTrue, row.NClaimsFalse, row.NClaimsUnchecked = new(n[0]), new(n[1]), new(n[2])
	return n, nil
}

// claimsOf returns the claims that the policy stored. If it stored no list, claimsOf extracts them from the text.
func claimsOf(row *schemas.StepRow, record *Record) (claims []schemas.Claim, extracted bool, err error) {
	if row.ClaimsJSON == nil {
		return Extract(row.Message, record), true, nil
	}
	var stored []schemas.CheckedClaim
	if err := json.Unmarshal([]byte(*row.ClaimsJSON), &stored); err != nil {
		return nil, false, err
	}
	for _, c := range stored {
		if c.Extracted {
			return Extract(row.Message, record), true, nil
		}
		claims = append(claims, c.Claim)
	}
	return claims, false, nil
}

// sortedClaim has the fields of a CheckedClaim in the order of canonical JSON.
type sortedClaim struct {
	Caller     string `json:"caller,omitempty"`
	Count      *int   `json:"count,omitempty"`
	Expression string `json:"expression,omitempty"`
	Extracted  bool   `json:"extracted,omitempty"`
	File       string `json:"file,omitempty"`
	Function   string `json:"function,omitempty"`
	Hit        int    `json:"hit,omitempty"`
	Kind       string `json:"kind"`
	Line       int    `json:"line,omitempty"`
	Message    string `json:"message,omitempty"`
	Other      string `json:"other,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Test       string `json:"test,omitempty"`
	Text       string `json:"text,omitempty"`
	Value      string `json:"value,omitempty"`
	Verdict    string `json:"verdict"`
	Why        string `json:"why,omitempty"`
}

// encode returns claims as canonical JSON.
func encode(claims []schemas.CheckedClaim) ([]byte, error) {
	list := make([]sortedClaim, len(claims))
	for i, c := range claims {
		list[i] = sortedClaim{c.Caller, c.Count, c.Expression, c.Extracted, c.File, c.Function, c.Hit, c.Kind, c.Line, c.Message, c.Other, c.Reason, c.Test, c.Text,
			c.Value, c.Verdict, c.Why}
	}
	return schemas.SortedJSON(list)
}
