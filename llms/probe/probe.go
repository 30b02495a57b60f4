// Package probe finds out how one model at one server wants to be spoken to: a
// handful of short calls, each of which asks one question. What it finds is a
// Profile, kept per endpoint and model, from which a run can tell beforehand what
// would fail. It imports llms and schemas.
package probe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/tracesmith/tracesmith/llms"
)

// Verdicts of a Finding.
const (
	Yes     = "yes"
	No      = "no"      // accepted, and without effect
	Refused = "refused" // the server answered with an error
	Unknown = "unknown" // it could not be found out
)

// Finding is the answer to one question.
type Finding struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail,omitempty"`
	Millis  int64  `json:"ms"`
}

// Profile is all that was found.
type Profile struct {
	Schema   string    `json:"schema"` // tracesmith.model_profile/1
	Provider string    `json:"provider"`
	BaseURL  string    `json:"base_url"`
	Model    string    `json:"model"`
	At       time.Time `json:"at"`
	Calls    int       `json:"calls"`
	Findings []Finding `json:"findings"`
	// ContextLimit is how many tokens the server takes, 0 where it did not say.
	ContextLimit int64 `json:"context_limit,omitempty"`
	// Settings are those of llm.with that this model needs beside the defaults.
	Settings map[string]any `json:"settings"`
}

// Find returns a finding by its name; the zero Finding if there is none.
func (p Profile) Find(name string) Finding {
	for _, f := range p.Findings {
		if f.Name == name {
			return f
		}
	}
	return Finding{}
}

// Lister is a Client that can say which models its server has.
type Lister interface {
	Models(ctx context.Context) ([]llms.ModelInfo, error)
}

// Target is what is probed.
type Target struct {
	Provider, BaseURL, Model string
	// Build makes a client with further settings of the provider.
	Build func(with map[string]any) (llms.Client, error)
	Clock func() time.Time
}

// Run asks all questions. It ends early, with an error, where no further question
// makes sense: a key is refused, nothing answers, the model is unknown. Errors
// of calls are *llms.Error.
func Run(ctx context.Context, t Target) (Profile, error) {
	p := &prober{target: t, Profile: Profile{
		Schema: "tracesmith.model_profile/1", Provider: t.Provider, BaseURL: t.BaseURL, Model: t.Model,
		At: t.Clock().UTC().Truncate(time.Second), Settings: map[string]any{},
	}}
	if err := p.listed(ctx); err != nil {
		return p.Profile, err
	}
	if err := p.plain(ctx); err != nil {
		return p.Profile, err
	}
	for _, ask := range []func(context.Context) error{p.sampling, p.tools, p.roundTrip, p.extras} {
		if err := ask(ctx); err != nil {
			return p.Profile, err
		}
	}
	return p.Profile, nil
}

// prober is the state of one Run.
type prober struct {
	Profile
	target Target

	reasoningField string
}

// call asks once, with the settings found so far and more. took is its time.
func (p *prober) call(ctx context.Context, r llms.Request, more map[string]any) (resp llms.Response, took int64, err error) {
	with := maps.Clone(p.Settings)
	maps.Copy(with, more)
	client, err := p.target.Build(with)
	if err != nil {
		return resp, 0, err
	}
	p.Calls++
	start := time.Now()
	resp, err = client.Chat(ctx, r)
	return resp, time.Since(start).Milliseconds(), err
}

// fatal is an error after which nothing more can be found out. What concerns
// one question alone is a refusal of it.
func fatal(err error) error {
	switch llms.ClassOf(err) {
	case llms.ClassRefused, llms.ClassServer, llms.ClassContext, llms.ClassRefusal:
		return nil
	}
	return err
}

func (p *prober) found(name, verdict, detail string, millis int64) {
	p.Findings = append(p.Findings, Finding{Name: name, Verdict: verdict, Detail: detail, Millis: millis})
}

// question asks one call and writes down what judge makes of the answer.
func (p *prober) question(ctx context.Context, name string, r llms.Request, with map[string]any, judge func(llms.Response) (verdict, detail string)) error {
	resp, took, err := p.call(ctx, r, with)
	if err != nil {
		p.found(name, Refused, said(err), took)
		return fatal(err)
	}
	verdict, detail := judge(resp)
	p.found(name, verdict, detail, took)
	return nil
}

func said(err error) string {
	if e, ok := errors.AsType[*llms.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// listed asks for the models, where the provider can, and finds a wrong key and
// an unknown name before anything is billed.
func (p *prober) listed(ctx context.Context) error {
	client, err := p.target.Build(nil)
	if err != nil {
		return err
	}
	if c, ok := client.(llms.Checker); ok {
		if err := c.Check(ctx); err != nil {
			return err
		}
	}
	lister, ok := client.(Lister)
	if !ok {
		p.found("listed", Unknown, "this provider is not asked for a list", 0)
		return nil
	}
	start := time.Now()
	models, err := lister.Models(ctx)
	took := time.Since(start).Milliseconds()
	if err != nil {
		p.found("listed", Unknown, said(err), took)
		return nil
	}
	for _, m := range models {
		if m.ID == p.Model {
			p.ContextLimit = m.ContextLimit
			p.found("listed", Yes, fmt.Sprintf("one of %d models", len(models)), took)
			return nil
		}
	}
	p.found("listed", No, fmt.Sprintf("not among the %d models that the server lists", len(models)), took)
	return nil
}
