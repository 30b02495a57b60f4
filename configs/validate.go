package configs

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate returns all problems of the configuration.
func (c Config) Validate() error {
	var problems []error
	report := func(field, format string, a ...any) {
		prefix := ""
		if place := c.Place(field); place != "" && !strings.Contains(field, ",") { // field is a single setting
			prefix = place + ": "
		}
		problems = append(problems, fmt.Errorf("%s%s: %s", prefix, field, fmt.Sprintf(format, a...)))
	}
	if c.Version != 1 {
		report("version", "this tracesmith reads version 1, not %d", c.Version)
	}
	c.Run.validate(report)
	if c.Engine.Lease < time.Second || c.Engine.Lease > time.Hour {
		report("engine.lease", "must be between 1s and 1h; an election in a cluster takes up to 10s")
	}
	if c.Engine.InFlight < 0 {
		report("engine.in_flight", "must not be negative")
	}
	if c.NATS.Replicas < 0 || c.NATS.Replicas > 5 {
		report("nats.replicas", "must be between 0 and 5")
	}
	if (c.NATS.TLS.Cert == "") != (c.NATS.TLS.Key == "") {
		report("nats.tls", "cert and key must be set together")
	}
	if strings.TrimSpace(c.Tasks.Source) == "" {
		report("tasks.source", "is empty%s", strings.TrimPrefix(noSource, "tasks.source is empty"))
	}
	if _, err := regexp.Compile(c.Tasks.Filter); err != nil {
		report("tasks.filter", "not a regular expression: %v", err)
	}
	if _, _, err := ParseSlice(c.Tasks.Slice); err != nil {
		report("tasks.slice", "%v", err)
	}
	if c.Agent.MaxSteps < 1 {
		report("agent.max_steps", "must be at least 1")
	}
	if c.Agent.MaxFormatErrors < 1 || c.Agent.MaxRepeats < 2 {
		report("agent", "max_format_errors must be at least 1 and max_repeats at least 2")
	}
	if len(c.Agent.Tools) == 0 {
		report("agent.tools", "name at least one tool")
	}
	if c.Agent.Wall <= 0 || c.Sandbox.CommandTimeout <= 0 || c.Sandbox.VerifyTimeout <= 0 || c.Sandbox.SetupTimeout <= 0 {
		report("agent.wall, sandbox.command_timeout, sandbox.verify_timeout, sandbox.setup_timeout", "must be longer than zero")
	}
	if len(c.Sandbox.With) > 0 && c.Sandbox.Kind == "" {
		report("sandbox.with", "needs sandbox.kind, whose settings these are")
	}
	if c.Agent.MaxPromptTokens < 0 {
		report("agent.max_prompt_tokens", "must not be negative")
	}
	before := len(problems)
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		c.Models[name].validate("models."+name, report)
	}
	if c.LLM.ModelsEntry == "" || len(problems) == before { // otherwise the problems of a named model would be reported twice
		c.LLM.validate("llm", report)
	}
	c.MCP.validate(report)
	if c.S3.Checksum != "auto" && c.S3.Checksum != "off" {
		report("s3.checksum", "%q: choose auto or off", c.S3.Checksum)
	}
	c.Limits.validate(report)
	for i, price := range c.Prices {
		price.validate(fmt.Sprintf("prices[%d]", i), report)
	}
	return errors.Join(problems...)
}

func (r Run) validate(report func(field, format string, a ...any)) {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString(r.Name) {
		report("run.name", "%q must be 1 to 64 letters, digits, dots, dashes or underscores", r.Name)
	}
	if r.Workers < 1 || r.Workers > 4096 {
		report("run.workers", "must be between 1 and 4096")
	}
	if r.Attempts < 1 || r.Attempts > 1000 {
		report("run.attempts", "must be between 1 and 1000")
	}
	for _, limit := range []struct {
		field string
		value int
	}{{"run.starts", r.Starts}, {"run.gradings", r.Gradings}} {
		if limit.value < 0 {
			report(limit.field, "must not be negative; 0 means that only run.workers limits it")
		}
	}
}

func (l Limits) validate(report func(field, format string, a ...any)) {
	for _, limit := range []struct {
		name string
		usd  float64
	}{{"total_cost", l.TotalCost}, {"task_cost", l.TaskCost}, {"episode_cost", l.EpisodeCost}} {
		if limit.usd < 0 || math.IsNaN(limit.usd) || math.IsInf(limit.usd, 0) {
			report("limits."+limit.name, "must be an amount in USD that is not negative")
		}
	}
	if l.TaskCost > 0 && l.EpisodeCost > l.TaskCost {
		report("limits.episode_cost", "is greater than limits.task_cost, which all attempts share")
	}
}

func (p Price) validate(at string, report func(field, format string, a ...any)) {
	for _, price := range []struct {
		name string
		usd  *float64
	}{{"input", &p.Input}, {"cached", p.Cached}, {"cache_write", p.CacheWrite}, {"cache_write_1h", p.CacheWrite1h}, {"output", &p.Output}} {
		if price.usd != nil && (*price.usd < 0 || math.IsNaN(*price.usd) || math.IsInf(*price.usd, 0)) {
			report(at+"."+price.name, "must be an amount in USD per million tokens that is not negative")
		}
	}
}

// ParseSlice parses from:to. If the second number is missing, to is -1.
func ParseSlice(s string) (from, to int, err error) {
	if s == "" {
		return 0, -1, nil
	}
	a, b, ok := strings.Cut(s, ":")
	read := func(t string, open int) int {
		if t == "" {
			return open
		}
		n, convErr := strconv.Atoi(t)
		if convErr != nil || n < 0 {
			err = fmt.Errorf("%q must look like 0:50", s)
		}
		return n
	}
	if !ok {
		return 0, 0, fmt.Errorf("%q must look like 0:50", s)
	}
	from, to = read(a, 0), read(b, -1)
	return from, to, err
}
