package mock

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Fault makes an answer fail or arrive late. Kind is the name of a predefined fault (see
// Kinds). Other fields that are set override those of the kind.
type Fault struct {
	Kind        string            `yaml:"kind"`
	Status      int               `yaml:"status"` // with Body; 0: 200
	Body        string            `yaml:"body"`
	ContentType string            `yaml:"content_type"` // default application/json
	Headers     map[string]string `yaml:"headers"`
	// Delay is the time before anything is sent. Alone it only delays the answer.
	Delay time.Duration `yaml:"delay"`
	// Break is how the connection fails, a key of breaks.
	Break string `yaml:"break"`
	// Every is the pause between the bytes of Break drip; default 100ms.
	Every time.Duration `yaml:"every"`
	// Times limits how often the fault is applied to each turn of a conversation; 0: to every
	// request.
	Times int `yaml:"times"`
	// On limits the fault to these requests, counted from 1 in order of arrival over
	// all conversations.
	On []int `yaml:"on"`
	// P is the probability that the fault is applied; 0: always. The random choice depends
	// only on the seed, the conversation, the turn and the attempt.
	P    float64 `yaml:"p"`
	Seed int64   `yaml:"seed"`
}

// breaks describes the ways in which a connection can fail.
var breaks = map[string]string{
	"reset":       "connection reset before any header",
	"silence":     "nothing at all until the client leaves",
	"headers":     "the headers, then silence until the client leaves",
	"stall":       "headers and half the answer, then silence until the client leaves",
	"cut":         "half the announced length, then the connection closes",
	"reset_body":  "half the answer, then a connection reset",
	"reset_end":   "the whole answer, then a connection reset",
	"truncate":    "half the answer with a regular end",
	"drip":        "one byte at a time",
	"alert":       "a TLS alert instead of HTTP, as TLS servers answer plain HTTP",
	"error":       "an error object with status 200",
	"gzip":        "the answer compressed, whether the client accepts it or not",
	"gzip_broken": "an answer that claims to be compressed but is not",
}

// kind is a predefined fault. If it has a code, the body is an error in the format of the
// request's API.
type kind struct {
	Fault
	code, message string
}

const invalidRequest = "invalid_request_error"

var kinds = map[string]kind{
	"overflow_openai":       {Fault{Status: 400}, "context_length_exceeded", "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. Please reduce the length of the messages."},
	"overflow_anthropic":    {Fault{Status: 400}, invalidRequest, "prompt is too long: 212345 tokens > 200000 maximum"},
	"overflow_vllm":         {Fault{Status: 400, Body: `{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 4096. Make sure that max_model_len is no smaller than the number of text tokens.","type":"BadRequestError","param":null,"code":400}`}, "", ""},
	"overflow_gemini":       {Fault{Status: 400, Body: `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`}, "", ""},
	"unsupported_parameter": {Fault{Status: 400}, "unsupported_parameter", "Unsupported parameter: 'temperature' is not supported with this model."},
	"auth":                  {Fault{Status: 401}, "invalid_api_key", "Incorrect API key provided."},
	"payment":               {Fault{Status: 402}, "billing_error", "Insufficient balance: add credit and try again."},
	"forbidden":             {Fault{Status: 403}, "permission_error", "This key may not use this model."},
	"model_not_found":       {Fault{Status: 404}, "model_not_found", "The model does not exist or you do not have access to it."},
	"request_timeout":       {Fault{Status: 408}, "timeout", "The request took too long."},
	"conflict":              {Fault{Status: 409}, "conflict", "Another request holds this resource."},
	"too_large":             {Fault{Status: 413}, "request_too_large", "The request exceeds the maximum size."},
	"unprocessable":         {Fault{Status: 422, Body: `{"detail":[{"loc":["body","seed"],"msg":"extra fields not permitted","type":"value_error.extra"}]}`}, "", ""},
	"rate_limit":            {Fault{Status: 429, Headers: map[string]string{"Retry-After": "1"}}, "rate_limit_exceeded", "Rate limit reached for requests per minute."},
	"rate_limit_date":       {Fault{Status: 429, Headers: map[string]string{"Retry-After": "date+1s"}}, "rate_limit_exceeded", "Rate limit reached for tokens per minute."},
	"rate_limit_ms":         {Fault{Status: 429, Headers: map[string]string{"Retry-After-Ms": "20"}}, "rate_limit_exceeded", "Rate limit reached for requests per minute."},
	"rate_limit_bare":       {Fault{Status: 429}, "rate_limit_exceeded", "Rate limit reached for requests per minute."},
	"quota":                 {Fault{Status: 429}, "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."},
	"server_error":          {Fault{Status: 500}, "server_error", "The server had an error while processing your request."},
	"bad_gateway":           {Fault{Status: 502, ContentType: "text/html", Body: "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"}, "", ""},
	"unavailable":           {Fault{Status: 503}, "unavailable", "The model is starting."},
	"overloaded":            {Fault{Status: 529}, "overloaded_error", "Overloaded"},
	"error_in_200":          {Fault{Break: "error"}, "server_error", "The upstream provider failed."},
	"reset":                 {Fault{Break: "reset"}, "", ""},
	"reset_body":            {Fault{Break: "reset_body"}, "", ""},
	"reset_end":             {Fault{Break: "reset_end"}, "", ""},
	"cut":                   {Fault{Break: "cut"}, "", ""},
	"stall_start":           {Fault{Break: "silence"}, "", ""},
	"stall_headers":         {Fault{Break: "headers"}, "", ""},
	"stall_body":            {Fault{Break: "stall"}, "", ""},
	"slow_loris":            {Fault{Break: "drip"}, "", ""},
	"tls_port":              {Fault{Break: "alert"}, "", ""},
	"truncated_json":        {Fault{Break: "truncate"}, "", ""},
	"web_page":              {Fault{Status: 200, ContentType: "text/html", Body: "<!doctype html><title>Welcome</title>"}, "", ""},
	"wrong_type":            {Fault{ContentType: "text/plain"}, "", ""},
	"gzip":                  {Fault{Break: "gzip"}, "", ""},
	"gzip_broken":           {Fault{Break: "gzip_broken"}, "", ""},
	"redirect":              {Fault{Status: 307, Body: "moved", ContentType: "text/plain", Headers: map[string]string{"Location": "http://127.0.0.1:9/elsewhere"}}, "", ""},
}

// Kinds lists the predefined faults.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// check returns the first mistake in a fault.
func (f Fault) check() error {
	if _, ok := kinds[f.Kind]; f.Kind != "" && !ok {
		return fmt.Errorf("unknown kind of fault %q: choose one of %s", f.Kind, strings.Join(Kinds(), ", "))
	}
	if _, ok := breaks[f.Break]; f.Break != "" && !ok {
		return fmt.Errorf("unknown break %q: choose one of %s", f.Break, strings.Join(slices.Sorted(maps.Keys(breaks)), ", "))
	}
	switch {
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("status %d: choose one between 200 and 599", f.Status)
	case f.P < 0 || f.P > 1 || math.IsNaN(f.P):
		return fmt.Errorf("probability p is %g: choose one between 0 and 1", f.P)
	case f.Times < 0 || f.Delay < 0 || f.Every < 0:
		return fmt.Errorf("times, delay and every cannot be negative")
	case slices.ContainsFunc(f.On, func(n int) bool { return n < 1 }):
		return fmt.Errorf("on is %d: requests are counted from 1", f.On)
	}
	return nil
}

// resolve returns the fault with the fields of its kind filled in, and the body of
// an error in the form of req's API.
func (f Fault) resolve(req conversation) Fault {
	k := kinds[f.Kind]
	f.Status, f.Break, f.ContentType = cmp.Or(f.Status, k.Status), cmp.Or(f.Break, k.Break), cmp.Or(f.ContentType, k.ContentType)
	f.Every = cmp.Or(f.Every, 100*time.Millisecond)
	headers := map[string]string{}
	maps.Copy(headers, k.Headers)
	maps.Copy(headers, f.Headers)
	if wait, ok := strings.CutPrefix(headers["Retry-After"], "date+"); ok { // the header is a date, in whole seconds
		now := time.Now().UTC()
		d, _ := time.ParseDuration(wait)
		headers["Date"], headers["Retry-After"] = now.Format(httpDate), now.Add(d).Format(httpDate)
	}
	f.Headers = headers
	switch {
	case f.Body != "":
	case k.Body != "":
		f.Body = k.Body
	case k.code != "":
		f.Body = string(req.failure(cmp.Or(f.Status, 502), k.code, k.message))
	}
	return f
}

const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"

func (f Fault) name() string {
	switch {
	case f.Kind != "":
		return f.Kind
	case f.Break != "":
		return f.Break
	}
	return fmt.Sprintf("status %d", cmp.Or(f.Status, 200))
}

// fails reports whether the client does not get the regular answer. A delay or
// another encoding of the answer is not a failure.
func (f Fault) fails() bool {
	switch f.Break {
	case "":
		return f.Status != 0 || f.Body != ""
	case "gzip", "drip", "reset_end":
		return false
	}
	return true
}

// pickFault returns the fault to apply to a request for this turn, or nil if there is none:
// the first fault of the turn, the session or the script, in this order, that was not yet
// applied as often as its Times. The request must be in the log. The caller holds h.mu.
func (h *Handler) pickFault(key turnKey, turn *Turn, session *Session) *Fault {
	var all []*Fault
	if turn.Fault != nil {
		all = append(all, turn.Fault)
	}
	for _, list := range [][]Fault{turn.Faults, session.Faults, h.script.Faults} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	for i, f := range all {
		countKey := faultKey{key, i}
		if f.Times > 0 && h.faultCounts[countKey] >= f.Times {
			continue
		}
		if len(f.On) > 0 && !slices.Contains(f.On, len(h.log)) {
			continue
		}
		if f.P > 0 && draw(f.Seed, key, h.attempts[key], i) >= f.P {
			continue
		}
		h.faultCounts[countKey]++
		return f
	}
	return nil
}

// faultKey identifies a fault of a turn by its position.
type faultKey struct {
	turnKey
	fault int
}

// draw returns a number in [0, 1) that depends only on its arguments.
func draw(seed int64, key turnKey, attempt, fault int) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %q %d %d %d", seed, key.session, key.id, key.turn, attempt, fault))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}
