package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type tool struct {
	c       *client
	name    string // the server's name for the tool
	schema  schemas.ToolSchema
	example string
}

var _ tools.Listener = (*tool)(nil)

// maxDescription limits a tool's description, in characters, because every prompt
// contains it.
const maxDescription = 1000

var notInName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

func newTool(c *client, foreign *sdk.Tool) (*tool, error) {
	name := c.cfg.Prefix + notInName.ReplaceAllString(foreign.Name, "_")
	switch {
	case foreign.Name == "":
		return nil, errors.New("it has no name")
	case len(name) > 64:
		return nil, errors.New("its name with the prefix is longer than the 64 characters that providers allow: choose a shorter prefix")
	}
	params, example, err := convertSchema(foreign.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("its schema cannot be used: %w", err)
	}
	description := cmp.Or(clip(strings.TrimSpace(tools.Clean(foreign.Description)), maxDescription), fmt.Sprintf("Tool %s of the server %s. The server provides no description.", name, c.cfg.ID))
	return &tool{c: c, name: foreign.Name, example: example, schema: schemas.ToolSchema{Name: name, Description: description, Parameters: params}}, nil
}

// clip shortens s to n characters, including a mark.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	const mark = " [... cut]"
	return string([]rune(s)[:n-len(mark)]) + mark
}

// quoteStart quotes the beginning of a server's text for a message.
func quoteStart(s string) string { return strconv.QuoteToASCII(clip(s, 80)) }

// allows reports whether a tool matches the setting tools. name is the server's name for it.
func (c Config) allows(name string) bool {
	for _, glob := range c.Tools {
		if ok, err := path.Match(glob, name); ok && err == nil || glob == name {
			return true
		}
	}
	return len(c.Tools) == 0
}

func (t *tool) Schema() schemas.ToolSchema { return t.schema }
func (t *tool) Category() string           { return "other" }
func (t *tool) Example() string            { return t.example }
func (t *tool) TruncationHint() string     { return "ask the tool for a smaller part if it supports that" }

type episodeClients struct {
	mu      sync.Mutex
	clients map[string]*client // by Config.ID
}

// Close implements io.Closer. The session calls it at its end.
func (e *episodeClients) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range e.clients {
		wg.Go(c.close)
	}
	wg.Wait()
	e.clients = nil
	return nil
}

// client returns the shared client or, if PerEpisode is set, the client of the episode.
func (t *tool) client(s *env.Session) *client {
	if !t.c.cfg.PerEpisode {
		return t.c
	}
	e := env.Local[episodeClients](s)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clients == nil {
		e.clients = map[string]*client{}
	}
	if e.clients[t.c.cfg.ID] == nil {
		e.clients[t.c.cfg.ID] = t.c.fork()
	}
	return e.clients[t.c.cfg.ID]
}

// On implements tools.Listener. A reset closes the connections that only the episode uses,
// so that servers that keep state start over.
func (t *tool) On(_ context.Context, s *env.Session, e env.Event) (schemas.Observation, error) {
	if t.c.cfg.PerEpisode && e.Kind == env.EventReset {
		return schemas.Observation{}, env.Local[episodeClients](s).Close()
	}
	return schemas.Observation{}, nil
}

// Call implements tools.Tool. When an episode is resumed, Call does not send recorded calls to
// a shared server again, but returns the recorded observation. A server that only this episode
// uses gets all calls again, which restores its state.
func (t *tool) Call(ctx context.Context, s *env.Session, args []byte) (schemas.Observation, error) {
	if s.Recorded != nil && !t.c.cfg.PerEpisode {
		return *s.Recorded, nil
	}
	limit := t.c.cfg.Timeout
	if s.CommandTimeout > 0 {
		limit = min(limit, s.CommandTimeout)
	}
	res, err := t.client(s).call(ctx, limit, t.name, args)
	if timeoutErr, ok := errors.AsType[*timeoutError](err); ok {
		return schemas.Observation{Text: timeoutErr.Error(), IsError: true, TimedOut: true, ErrorClass: schemas.ErrTimeout}, nil
	}
	if err != nil {
		return schemas.Observation{}, err
	}
	o := schemas.Observation{Text: render(res), IsError: res.IsError}
	if o.IsError {
		o.ErrorClass = schemas.ErrUserError
	}
	return o, nil
}

// render returns a result as text: its text parts, a line for each other part, and
// its structured content if it does not contain text.
func render(res *sdk.CallToolResult) string {
	var parts []string
	hasText := false
	for _, c := range res.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			parts, hasText = append(parts, c.Text), hasText || c.Text != ""
		case *sdk.ImageContent:
			parts = append(parts, omitted("image", c.MIMEType, len(c.Data)))
		case *sdk.AudioContent:
			parts = append(parts, omitted("audio", c.MIMEType, len(c.Data)))
		case *sdk.EmbeddedResource:
			switch r := c.Resource; {
			case r == nil:
			case r.Text != "":
				parts, hasText = append(parts, fmt.Sprintf("[resource %s]\n%s", clip(r.URI, 200), r.Text)), true
			default:
				parts = append(parts, omitted("resource "+clip(r.URI, 200), r.MIMEType, len(r.Blob)))
			}
		case *sdk.ResourceLink:
			parts = append(parts, fmt.Sprintf("[link to resource %s, which you cannot open]", clip(c.URI, 200)))
		default:
			parts = append(parts, fmt.Sprintf("[content of unknown type omitted: %T]", c))
		}
	}
	if !hasText && res.StructuredContent != nil {
		if b, err := json.Marshal(res.StructuredContent); err == nil {
			parts = append(parts, string(b))
		}
	}
	if res.NeedsInput() {
		parts = append(parts, "[the server asked for user input, but there is no user]")
	}
	if len(parts) == 0 || len(parts) == 1 && parts[0] == "" {
		return "The tool returned no output."
	}
	return strings.Join(parts, "\n")
}

// omitted returns a line that stands for a part that is not text.
func omitted(what, kind string, size int) string {
	kind = cmp.Or(kind, "unknown type")
	return fmt.Sprintf("[%s omitted: %s, %d bytes]", what, clip(kind, 80), size)
}
