package sources

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs/nearest"
)

// Problems selects instances: "all" or nothing for all of them, one id, the name of a split, or a list of ids without
// duplicates. Excluded ids are removed only from "all".
type Problems struct {
	name string
	list []string
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Problems) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &p.name) == nil || json.Unmarshal(text, &p.list) == nil {
		return nil
	}
	return errors.New(`problems: want "all", an id, the name of a split, or a list of ids`)
}

// MarshalJSON implements json.Marshaler.
func (p Problems) MarshalJSON() ([]byte, error) {
	if p.list != nil {
		return json.Marshal(p.list)
	}
	return json.Marshal(p.name)
}

// choose returns the selected ids. "all" gives them in the order of ids, a split or a list in its own order.
func (p Problems) choose(ids []string, splits map[string][]string, excluded []string) ([]string, error) {
	unknown := func(id string) error {
		if near := nearest.Name(id, ids, max(len(id)/4, 1)); near != "" {
			return fmt.Errorf("problems: there is no %q: did you mean %q?", id, near)
		}
		return fmt.Errorf("problems: there is no %q among the %d instances and the splits %s", id, len(ids), splitNames(splits))
	}
	if p.list != nil {
		for i, id := range p.list {
			if !slices.Contains(ids, id) {
				return nil, unknown(id)
			}
			if slices.Contains(p.list[:i], id) {
				return nil, fmt.Errorf("problems: %q is listed twice", id)
			}
		}
		return p.list, nil
	}
	switch named := splits[p.name]; {
	case p.name == "" || p.name == "all":
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
			return slices.ContainsFunc(excluded, func(x string) bool { return id == x || strings.HasPrefix(id, x+".") })
		}), nil
	case slices.Contains(ids, p.name):
		return []string{p.name}, nil
	case named != nil:
		for _, id := range named {
			if !slices.Contains(ids, id) {
				return nil, fmt.Errorf("the split %q names %q, which the dataset does not contain", p.name, id)
			}
		}
		return named, nil
	}
	return nil, unknown(p.name)
}

func splitNames(splits map[string][]string) string {
	names := slices.AppendSeq([]string{"all"}, maps.Keys(splits))
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// convertIDs returns p with converted ids. convert may be nil.
func (p Problems) convertIDs(convert func(string) string) Problems {
	if convert == nil {
		return p
	}
	out := Problems{name: convert(p.name)}
	for _, id := range p.list {
		out.list = append(out.list, convert(id))
	}
	return out
}
