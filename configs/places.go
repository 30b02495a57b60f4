package configs

import (
	"maps"
	"slices"
	"strings"
)

// Places maps the paths of settings (llm.with.call_ids) to where they were written: file
// and line, or the override. A later source replaces an earlier one.
type Places map[string]string

// ExactPlace returns where a setting, or a setting below it, was written; "" if neither was.
func (c Config) ExactPlace(path string) string {
	rest, inLLM := strings.CutPrefix(path, "llm.")
	candidates := []string{path}
	if inLLM && c.LLM.ModelsEntry != "" { // section llm was filled from there
		candidates = append(candidates, "models."+c.LLM.ModelsEntry+"."+rest)
	}
	for _, candidate := range candidates {
		if place, ok := c.Places[candidate]; ok {
			return place
		}
		for _, written := range slices.Sorted(maps.Keys(c.Places)) {
			if strings.HasPrefix(written, candidate+".") || strings.HasPrefix(written, candidate+"[") {
				return c.Places[written]
			}
		}
	}
	return ""
}

// Place returns where a setting, or else the innermost written block around it, was
// written; "" if neither was.
func (c Config) Place(path string) string {
	rest, inLLM := strings.CutPrefix(path, "llm.")
	if place, ok := c.Places[path]; ok {
		return place
	}
	if inLLM && c.LLM.ModelsEntry != "" { // section llm was filled from there
		if place, ok := c.Places["models."+c.LLM.ModelsEntry+"."+rest]; ok {
			return place
		}
	}
	for path != "" {
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
		if place, ok := c.Places[path]; ok {
			return place
		}
	}
	return ""
}
