package providers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/tracesmith/tracesmith/llms"
)

// Entra configures tokens of Entra ID for an application with a secret (OAuth 2.0 client
// credentials, RFC 6749 section 4.4). The tenant and the client ID may have the form
// env:NAME or file:PATH; the secret must have it.
type Entra struct {
	Scope        string `json:"scope"`         // scope of the token; if set, calls use Entra ID instead of a key
	Tenant       string `json:"tenant"`        // tenant of the application
	ClientID     string `json:"client_id"`     // id of the application
	ClientSecret string `json:"client_secret"` // secret of the application, as env:NAME or file:PATH
	Authority    string `json:"authority"`     // server that issues tokens
}

// tokenTimeout limits one request for a token.
const tokenTimeout = 30 * time.Second

// tokens holds one token for all calls. It requests a new one if the token is about to
// expire or was refused. It is safe for concurrent use.
type tokens struct {
	cfg    clientcredentials.Config
	client *http.Client

	mu      sync.Mutex
	current *oauth2.Token
}

func newTokens(cfg Entra, e *endpoint, deps llms.Deps) (*tokens, error) {
	if !llms.IsSecretRef(cfg.ClientSecret) {
		return nil, errors.New(`client_secret must say where the secret is, as "env:AZURE_CLIENT_SECRET" or "file:PATH"`)
	}
	if u, err := url.Parse(cfg.Authority); err != nil || u.Host == "" {
		return nil, errors.New("authority must be a full URL")
	}
	values := map[string]string{"tenant": cfg.Tenant, "client_id": cfg.ClientID, "client_secret": cfg.ClientSecret}
	for name, value := range values {
		if value == "" {
			return nil, fmt.Errorf("%s is missing", name)
		}
		got, err := e.resolve(name, value, deps.Getenv)
		if err != nil {
			return nil, err
		}
		values[name] = got
	}
	tokenURL, err := url.JoinPath(cfg.Authority, url.PathEscape(values["tenant"]), "oauth2/v2.0/token")
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	return &tokens{client: e.http, cfg: clientcredentials.Config{
		ClientID: values["client_id"], ClientSecret: values["client_secret"], TokenURL: tokenURL,
		Scopes: []string{cfg.Scope}, AuthStyle: oauth2.AuthStyleInParams,
	}}, nil
}

// get returns a token other than the refused one. It returns an *llms.Error, or the error of
// ctx.
func (t *tokens) get(ctx context.Context, refused string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.Valid() && t.current.AccessToken != refused {
		return t.current.AccessToken, nil
	}
	callCtx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, t.client), tokenTimeout)
	defer cancel()
	token, err := t.cfg.Token(callCtx)
	switch {
	case err == nil:
		t.current = token
		return token.AccessToken, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("asking for a token: %w", ctx.Err())
	}
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response != nil {
		class := llms.ClassAuth
		if e.Response.StatusCode >= 500 || e.Response.StatusCode == http.StatusTooManyRequests {
			class = llms.ClassServer
		}
		return "", &llms.Error{Class: class, Status: e.Response.StatusCode, Message: clip(fmt.Sprintf("Entra ID issued no token: %d %s %s", e.Response.StatusCode, e.ErrorCode, e.ErrorDescription))}
	}
	return "", &llms.Error{Class: llms.ClassUnreachable, Message: clip(fmt.Sprintf("Entra ID issued no token: %v", rootCause(err)))}
}

func (t *tokens) mask(s string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return s
	}
	return replaceSecret(s, t.current.AccessToken)
}
