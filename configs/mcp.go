package configs

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
)

// MCP maps ids that the user chooses to the Model Context Protocol servers whose tools
// an agent has in addition to agent.tools.
type MCP map[string]MCPServer

// MCPServer is a program to start, which communicates over its standard input and
// output, or a URL. A program runs on the host, outside every sandbox, with PATH, HOME,
// LANG, TMPDIR and Env as its environment.
type MCPServer struct {
	Command string   `mapstructure:"command" json:"command,omitempty"` // program to start; it communicates over its standard input and output
	Args    []string `mapstructure:"args" json:"args,omitempty"`       // its arguments
	// Variables that the program gets in addition to PATH, HOME, LANG and TMPDIR, as NAME: env:HOST_VARIABLE.
	// For example, TOKEN: env:DOCS_TOKEN passes the value of DOCS_TOKEN as TOKEN.
	Env map[string]string `mapstructure:"env" json:"env,omitempty"`

	URL          string            `mapstructure:"url" json:"url,omitempty"`                     // address of a server, instead of command
	Headers      map[string]string `mapstructure:"headers" json:"headers,omitempty"`             // headers of every request; a value may end in env:NAME
	Transport    string            `mapstructure:"transport" json:"transport,omitempty"`         // protocol: stdio, http or sse; unset = chosen by command or url
	AllowPrivate bool              `mapstructure:"allow_private" json:"allow_private,omitempty"` // allow addresses of private networks and of this machine

	Prefix       *string       `mapstructure:"prefix" json:"prefix,omitempty"`               // beginning of the names of its tools; unset = the id and two underscores
	Tools        []string      `mapstructure:"tools" json:"tools,omitempty"`                 // names or globs of the tools that agents get; unset = all
	Timeout      time.Duration `mapstructure:"timeout" json:"timeout,omitempty"`             // time limit of one call
	StartTimeout time.Duration `mapstructure:"start_timeout" json:"start_timeout,omitempty"` // time limit of the start
	Scope        string        `mapstructure:"scope" json:"scope,omitempty"`                 // lifetime of a connection: run (one for all episodes) or episode (one for each)
	Optional     bool          `mapstructure:"optional" json:"optional,omitempty"`           // run without the server if it cannot be reached
}

// DefaultMCPServer returns the defaults of a server with a command.
func DefaultMCPServer() MCPServer {
	s := MCPServer{Command: "program"}.withDefaults("ID")
	s.Command = ""
	return s
}

// decodeMCP decodes the section without viper, which would convert its keys to lower case.
func decodeMCP(section any) (MCP, error) {
	if section == nil {
		return nil, nil
	}
	var out MCP
	dec, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: &out, ErrorUnused: true, DecodeHook: mapstructure.StringToTimeDurationHookFunc(),
	})
	if err == nil {
		err = dec.Decode(section)
	}
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	for id, s := range out {
		out[id] = s.withDefaults(id)
	}
	return out, nil
}

func (s MCPServer) withDefaults(id string) MCPServer {
	if s.Transport == "" {
		s.Transport = "http"
		if s.Command != "" {
			s.Transport = "stdio"
		}
	}
	if s.Prefix == nil {
		prefix := id + "__"
		s.Prefix = &prefix
	}
	s.Timeout = cmp.Or(s.Timeout, time.Minute)
	s.StartTimeout = cmp.Or(s.StartTimeout, 30*time.Second)
	s.Scope = cmp.Or(s.Scope, "run")
	return s
}

var (
	mcpID      = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)
	mcpPrefix  = regexp.MustCompile(`^[A-Za-z0-9_-]{0,40}$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`)
	// secretHeaders matches headers with credentials, whose values must come from the environment.
	secretHeaders = regexp.MustCompile(`(?i)authori[sz]ation|cookie|token|secret|api-?key|password`)
)

// validate reports the problems of each server.
func (m MCP) validate(report func(field, format string, a ...any)) {
	for _, id := range slices.Sorted(maps.Keys(m)) {
		s := m[id]
		reportField := func(field, format string, a ...any) { report("mcp."+id+field, format, a...) }
		if !mcpID.MatchString(id) {
			reportField("", "a server id is a letter and up to 31 letters, digits, underscores or dashes")
		}
		if s.Prefix == nil || !mcpPrefix.MatchString(*s.Prefix) {
			reportField(".prefix", "write up to 40 letters, digits, underscores or dashes")
		}
		if s.Scope != "run" && s.Scope != "episode" {
			reportField(".scope", "%q: choose run (one connection for all episodes) or episode (one per episode)", s.Scope)
		}
		if s.Timeout < 0 || s.StartTimeout < 0 {
			reportField(".timeout, start_timeout", "must not be negative (0 = the default)")
		}
		for _, glob := range s.Tools {
			if _, err := path.Match(glob, ""); err != nil {
				reportField(".tools", "%q is not a name or a glob", glob)
			}
		}
		s.validateEndpoint(reportField)
	}
}

// validateEndpoint checks the program or the URL of the server.
func (s MCPServer) validateEndpoint(report func(field, format string, a ...any)) {
	if (s.Command == "") == (s.URL == "") {
		report("", "give either command (a program to start) or url")
		return
	}
	if s.Command != "" {
		if s.Transport != "stdio" {
			report(".transport", "%q: a command uses stdio; http and sse need url", s.Transport)
		}
		if len(s.Headers) > 0 || s.AllowPrivate {
			report("", "headers and allow_private belong to url, not to command")
		}
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			from, ok := strings.CutPrefix(s.Env[name], "env:")
			if !envName.MatchString(name) || !ok || !envName.MatchString(from) {
				report(".env."+name, "write NAME: env:HOST_VARIABLE, such as TOKEN: env:DOCS_TOKEN, "+
					"to pass a variable of this process; never write a value")
			}
		}
		return
	}
	if s.Transport != "http" && s.Transport != "sse" {
		report(".transport", "%q: choose http (streamable HTTP) or sse for a url", s.Transport)
	}
	if len(s.Args) > 0 || len(s.Env) > 0 {
		report("", "args and env belong to command, not to url")
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		report(".url", "not an http(s) address")
	case u.User != nil:
		report(".url", "no user or password in an address: use headers with env:NAME")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		value := s.Headers[name]
		from := value[strings.LastIndexByte(value, ' ')+1:]
		variable, isReference := strings.CutPrefix(from, "env:")
		switch {
		case !headerName.MatchString(name) || strings.EqualFold(name, "host") || strings.ContainsAny(value, "\r\n"):
			report(".headers", "%q is not a header that can be set", name)
		case isReference && !envName.MatchString(variable):
			report(".headers."+name, "write env:NAME, with a word before it if needed, as in Bearer env:NAME")
		case secretHeaders.MatchString(name) && !isReference:
			report(".headers."+name, "never write a secret here: write env:NAME (or Bearer env:NAME) and put it into that environment variable")
		}
	}
}
