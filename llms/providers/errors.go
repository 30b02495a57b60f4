package providers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/llms"
)

// maxRetryAfter limits the wait that a server may request. Callers have lower limits.
const maxRetryAfter = 24 * time.Hour

// transportError returns the error of a call without a complete answer.
func (e *endpoint) transportError(ctx, callCtx context.Context, ex *exchange, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("asking the model: %w", ctx.Err())
	}
	if known, ok := errors.AsType[*llms.Error](err); ok { // from requesting a token
		return e.redact(known)
	}
	out := &llms.Error{Class: llms.ClassServer, Status: ex.status, Err: err}
	var netErr net.Error
	switch {
	case tlsProblem(err, e.base) != "":
		out.Class, out.Message = llms.ClassUnreachable, tlsProblem(err, e.base)
	case isUnreachable(err):
		out.Class, out.Message = llms.ClassUnreachable, fmt.Sprintf("%v: is the server running at %s?", rootCause(err), e.base)
	case callCtx.Err() != nil || (errors.As(err, &netErr) && netErr.Timeout()):
		out.Class, out.Message = llms.ClassTimeout, timeoutMessage(ex, e.waited(callCtx))
	case errors.Is(err, errTooLong):
		out.Message = errTooLong.Error()
	case ex.sent == nil && ex.status == 0 && ex.patch != nil:
		// The SDK refused to build the request.
		out.Class, out.Message = llms.ClassBadRequest, err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		out.Message = "the connection was closed before the answer was complete"
	default:
		out.Message = fmt.Sprintf("the connection broke: %v", rootCause(err))
	}
	return e.redact(out)
}

// timedOut is the cause with which the context of a request ends that has another limit than a call.
type timedOut time.Duration

func (d timedOut) Error() string { return fmt.Sprintf("no answer within %s", time.Duration(d)) }

// checkContext returns a context for a request that only asks whether the server works.
func (e *endpoint) checkContext(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := min(e.timeout, 30*time.Second)
	return context.WithTimeoutCause(ctx, limit, timedOut(limit))
}

// waited returns the limit of a request with the given context.
func (e *endpoint) waited(callCtx context.Context) time.Duration {
	if limit, ok := errors.AsType[timedOut](context.Cause(callCtx)); ok {
		return time.Duration(limit)
	}
	return e.timeout
}

// timeoutMessage describes how much of an answer had arrived at the timeout.
func timeoutMessage(ex *exchange, limit time.Duration) string {
	switch {
	case ex.status == 0:
		return fmt.Sprintf("no answer within %s", limit)
	case len(ex.received) == 0:
		return fmt.Sprintf("the answer began, but its body did not arrive within %s", limit)
	}
	return fmt.Sprintf("the answer began, but only %d bytes of it arrived within %s", len(ex.received), limit)
}

func isUnreachable(err error) bool {
	if strings.HasSuffix(err.Error(), "net/http: TLS handshake timeout") { // its type is not exported
		return true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}

// rootCause returns the cause of an error without the "Post URL:" prefix of net/http.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		if _, ok := err.(*net.OpError); ok {
			return err
		}
		err = next
	}
}

// brokenBody returns the error of an answer with status 200 whose body is not the expected
// JSON.
func brokenBody(raw []byte, err error) *llms.Error {
	if isHTML(raw) {
		return &llms.Error{Class: llms.ClassNotFound, Status: 200, Err: err,
			Message: "the server answered with a web page: base_url usually ends in /v1"}
	}
	return &llms.Error{Class: llms.ClassServer, Status: 200, Err: err, Message: "the answer is not complete JSON: " + excerpt(raw)}
}

// statusError classifies an error response: by its code, then by its message if the status
// is ambiguous, then by its status.
func statusError(status int, h http.Header, raw []byte) *llms.Error {
	inner, code, message := errorBody(raw)
	if status == 200 && inner != 0 {
		status = inner // an error object in an answer with status 200 has its own status
	}
	e := &llms.Error{Status: status, Message: message, RetryAfter: retryAfter(h), Scripted: code == "mock_script"}
	e.Class = classByCode(code)
	// Some servers also report per-minute limits as insufficient quota.
	if e.Class == llms.ClassQuota && (perMinute.MatchString(message) || e.RetryAfter > 0) {
		e.Class = llms.ClassRateLimit
	}
	if limit, ok := contextSizes(raw); ok {
		e.Class, e.ContextLimit = llms.ClassContext, limit
	}
	if e.Class == "" || e.Class == llms.ClassBadRequest {
		e.Class = classByMessage(status, message, e.Class)
	}
	e.Class = cmp.Or(e.Class, classByStatus(status))
	if e.Class == llms.ClassContext && e.ContextLimit == 0 {
		e.ContextLimit, _ = tooLong(message)
	}
	if e.Class == llms.ClassRateLimit && tooManyParallel.MatchString(message) {
		e.Class = llms.ClassConcurrency
	}
	if status >= 300 && status < 400 {
		e.Message = fmt.Sprintf("the server redirects to %s: set base_url to the final address", cmp.Or(h.Get("Location"), "another address"))
	}
	return e
}

var codes = map[string]llms.Class{
	"context_length_exceeded": llms.ClassContext, "context_window_exceeded": llms.ClassContext,
	"exceed_context_size_error": llms.ClassContext, "request_too_large": llms.ClassContext,
	"insufficient_quota": llms.ClassQuota, "billing_hard_limit_reached": llms.ClassQuota, "billing_not_active": llms.ClassQuota,
	"insufficient_balance": llms.ClassQuota, "insufficient_credits": llms.ClassQuota, "payment_required": llms.ClassQuota,
	"billing_error": llms.ClassQuota, "invalid_api_key": llms.ClassAuth, "authentication_error": llms.ClassAuth, "unauthenticated": llms.ClassAuth,
	"unauthorized": llms.ClassAuth, "permission_error": llms.ClassAuth, "permission_denied": llms.ClassAuth,
	"model_not_found": llms.ClassNotFound, "not_found_error": llms.ClassNotFound, "not_found": llms.ClassNotFound,
	"notfounderror": llms.ClassNotFound, "deploymentnotfound": llms.ClassNotFound,
	"rate_limit_exceeded": llms.ClassRateLimit, "rate_limit_error": llms.ClassRateLimit, "too_many_requests": llms.ClassRateLimit,
	"concurrency_limit_exceeded": llms.ClassConcurrency,
	"content_filter":             llms.ClassRefusal, "content_policy_violation": llms.ClassRefusal, "responsibleaipolicyviolation": llms.ClassRefusal,
	"data_inspection_failed": llms.ClassRefusal, "datainspectionfailed": llms.ClassRefusal,
	"overloaded_error": llms.ClassOverload, "engine_overloaded": llms.ClassOverload, "server_overloaded": llms.ClassOverload,
	"slow_down": llms.ClassOverload, "server_error": llms.ClassServer, "internal_error": llms.ClassServer,
	"internal_server_error": llms.ClassServer, "unavailable": llms.ClassOverload, "timeout": llms.ClassTimeout, "timeout_error": llms.ClassTimeout, "deadline_exceeded": llms.ClassTimeout,
	"invalid_request_error": llms.ClassBadRequest, "invalid_argument": llms.ClassBadRequest, "badrequesterror": llms.ClassBadRequest,
}

// classByCode returns the class of a lower-case code, or "" if the code is unknown.
func classByCode(code string) llms.Class { return codes[code] }

// Messages of servers for errors without a code. classByMessage uses them only with certain
// statuses.
var (
	unknownModel    = regexp.MustCompile(`(?i)\bmodel\b.*(does not exist|not found|not exist|is not available|unknown)|(unknown|no such|invalid) model`)
	invalidKey      = regexp.MustCompile(`(?i)(invalid|incorrect|missing|no|not a valid) (api|auth)[ _-]?(key|token)|api key not valid`)
	noCredit        = regexp.MustCompile(`(?i)insufficient (credit|balance|funds)|out of credit|credit balance`)
	quotaExceeded   = regexp.MustCompile(`(?i)exceeded your current quota|billing|insufficient (credit|balance|funds)|out of credit|credit balance|payment|per.?day`)
	contentPolicy   = regexp.MustCompile(`(?i)content (management|moderation|filter|policy)|violat\w+ .*polic|input was flagged|prohibited content`)
	tooManyParallel = regexp.MustCompile(`(?i)concurren|simultaneous|at the same time|in parallel`)
	perMinute       = regexp.MustCompile(`(?i)per.?(minute|second|min\b|sec\b)|\b[rt]pm\b`)
)

// classByMessage returns the class of an error by its message, or fallback or "" if the message
// does not match.
func classByMessage(status int, message string, fallback llms.Class) llms.Class {
	switch status {
	case 403:
		if contentPolicy.MatchString(message) {
			return llms.ClassRefusal
		}
	case 200, 400, 413, 422, 500:
		generic := status == 400 || status == 200
		_, long := tooLong(message)
		switch {
		case long:
			return llms.ClassContext
		case generic && contentPolicy.MatchString(message):
			return llms.ClassRefusal
		case generic && noCredit.MatchString(message):
			return llms.ClassQuota
		case generic && invalidKey.MatchString(message):
			return llms.ClassAuth
		case generic && unknownModel.MatchString(message):
			return llms.ClassNotFound
		}
	case 429:
		if quotaExceeded.MatchString(message) && !perMinute.MatchString(message) {
			return llms.ClassQuota
		}
		return llms.ClassRateLimit
	}
	if status <= 400 || status == 422 {
		return fallback
	}
	return "" // the status is more specific than a vague code such as invalid_request_error
}

func classByStatus(status int) llms.Class {
	switch {
	case status == 401 || status == 403:
		return llms.ClassAuth
	case status == 402:
		return llms.ClassQuota
	case status == 404:
		return llms.ClassNotFound
	case status == 408 || status == 504 || status == 524:
		return llms.ClassTimeout
	case status == 413:
		return llms.ClassContext
	case status == 425 || status == 429:
		return llms.ClassRateLimit
	case status == 503 || status == 529:
		return llms.ClassOverload
	case status == 409 || status >= 500 || status < 300:
		return llms.ClassServer
	}
	return llms.ClassBadRequest
}

// errorBody finds status, code and message in the forms of errors that servers send: an
// error object, an error string, a bare object, a detail, or a list of these. status is 0
// and code is "" if the body has none.
func errorBody(raw []byte) (status int, code, message string) {
	if isHTML(raw) {
		return 0, "", "a web page, not an API answer: check base_url, which usually ends in /v1"
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil {
		return 0, "", cmp.Or(excerpt(raw), "no message")
	}
	inner := top
	if e, ok := top["error"]; ok {
		var obj map[string]json.RawMessage
		if json.Unmarshal(e, &obj) == nil && obj != nil {
			inner = obj
		} else {
			message = scalar(e)
		}
	}
	for _, name := range []string{"code", "type", "status"} {
		c := scalar(inner[name])
		if n, err := strconv.Atoi(c); err == nil {
			if status == 0 && n >= 400 && n < 600 {
				status = n
			}
			continue
		}
		if code == "" || classByCode(code) == "" || classByCode(code) == llms.ClassBadRequest {
			code = cmp.Or(strings.ToLower(c), code)
		}
	}
	message = cmp.Or(message, scalar(inner["message"]), scalar(top["message"]), scalar(top["detail"]), excerpt(top["detail"]), excerpt(raw))
	return status, code, clip(message)
}

// scalar returns a JSON string or number as text, or "" for any other value.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

func isHTML(raw []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("<")) }

// excerpt returns the start of a body as one line.
func excerpt(raw []byte) string { return clip(string(raw[:min(len(raw), 1024)])) }

func clip(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if r := []rune(s); len(r) > 300 {
		return string(r[:300]) + "..."
	}
	return s
}

// retryAfter returns the wait in Retry-After-Ms or Retry-After. A date in Retry-After is
// relative to the server's own clock.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return retryDuration(ms / 1000)
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 {
		return retryDuration(s)
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now := time.Now()
	if served, err := http.ParseTime(h.Get("Date")); err == nil {
		now = served
	}
	return retryDuration(date.Sub(now).Seconds())
}

// retryDuration converts seconds to a duration between 0 and maxRetryAfter.
func retryDuration(seconds float64) time.Duration {
	if seconds >= maxRetryAfter.Seconds() {
		return maxRetryAfter
	}
	return max(0, time.Duration(seconds*float64(time.Second)))
}
