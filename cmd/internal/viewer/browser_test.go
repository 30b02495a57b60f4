package viewer_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/tracesmith/tracesmith/cmd/internal/viewer"
	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/internal/suite"
)

// tab is a tab of a real browser. It records what pages request and complain about.
type tab struct {
	ctx context.Context

	mu       sync.Mutex
	requests []string
	messages []string // of the console: exceptions, and violations of the policy
}

// openBrowser starts a browser, which NoSandbox permits as root: the pages are those of the viewer.
func openBrowser(t *testing.T) *tab {
	t.Helper()
	suite.Browser.Require(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &tab{ctx: ctx}
	if err := chromedp.Listen(ctx, b.record); err != nil {
		t.Fatalf("starting Chromium, which make browser installs: %v", err)
	}
	return b
}

func (b *tab) record(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *log.EventEntryAdded:
		b.messages = append(b.messages, e.Entry.Text)
	case *runtime.EventExceptionThrown:
		b.messages = append(b.messages, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.messages = append(b.messages, "console."+string(e.Type))
	}
}

// quiet fails the test if a page has requested anything outside of allowed or complained.
func (b *tab) quiet(t *testing.T, allowed string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, address := range b.requests {
		if !strings.HasPrefix(address, allowed) && address != "about:blank" {
			t.Errorf("the browser requested %s", address)
		}
	}
	for _, message := range b.messages {
		t.Errorf("the browser complained: %s", message)
	}
	if len(b.requests) == 0 {
		t.Error("no request was recorded")
	}
}

// visit opens a page. It leaves the previous one first, because the same address with another
// anchor would not load again.
func (b *tab) visit(t *testing.T, address string) {
	t.Helper()
	if err := chromedp.Do(b.ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(address)); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
}

func (b *tab) press(t *testing.T, keys string) {
	t.Helper()
	if err := chromedp.Do(b.ctx, chromedp.KeyEvent(keys)); err != nil {
		t.Fatalf("pressing %s: %v", keys, err)
	}
}

// follow presses keys that lead to another page, and waits for it.
func (b *tab) follow(t *testing.T, keys string) {
	t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(keys)); err != nil {
		t.Fatalf("pressing %s: %v", keys, err)
	}
}

// want waits until an expression of JavaScript holds. A page from another process, such as a file,
// can replace the context of scripts once more after it has loaded.
func (b *tab) want(t *testing.T, expression string) {
	t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression))
	for err != nil && strings.Contains(err.Error(), "Cannot find context") && b.ctx.Err() == nil {
		_, err = chromedp.Run(b.ctx, chromedp.Poll[bool](expression))
	}
	if err != nil {
		t.Errorf("never holds: %s: %v", expression, err)
	}
}

// number returns the value of an expression of JavaScript.
func (b *tab) number(t *testing.T, expression string) float64 {
	t.Helper()
	n, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](expression))
	if err != nil {
		t.Errorf("%s: %v", expression, err)
	}
	return n
}

func quote(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// inView is true if the element with this id is at the top of the window, below the bar.
func inView(id string) string {
	return `(() => { const top = document.getElementById(` + quote(id) + `).getBoundingClientRect().top; return top >= -1 && top < innerHeight / 2 })()`
}

func TestBrowserRunsNothingOfAnEpisode(t *testing.T) {
	b := openBrowser(t)
	staged := hostile()
	s := open(t, "", runDir(t, staged))
	server := httptest.NewServer(s)
	defer server.Close()
	episode := server.URL + "/t/1/" + staged.Episode.EpisodeID
	for _, address := range []string{server.URL + "/", episode, episode + "/sample?gold=1", episode + "/model/3", server.URL + "/stats/1", server.URL + "/?q=%3Cscript%3E&e=%3Cimg%20src=x%3E"} {
		b.visit(t, address)
		b.want(t, `document.title.endsWith("tracesmith") && document.readyState === "complete"`)
		if n := b.number(t, `document.querySelectorAll("img, iframe, object, base, [onerror], [onload], a[href^='javascript'], main script").length`); n != 0 {
			t.Errorf("%s: %v elements of the episode became part of the page", address, n)
		}
	}
	b.quiet(t, server.URL+"/")

	file := filepath.Join(t.TempDir(), "export.html")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := s.Export(t.Context(), out, viewer.Export{}); err != nil {
		t.Fatal(err)
	}
	alone := openBrowser(t)
	alone.visit(t, "file://"+file)
	alone.want(t, `document.title.endsWith("tracesmith") && getComputedStyle(document.querySelector(".step")).contentVisibility === "auto"`)
	alone.press(t, "j")
	alone.want(t, `document.querySelector(".chosen")?.id === "e1-s0"`) // the script runs
	alone.press(t, "5")
	alone.want(t, `document.querySelector(".observation").checkVisibility() === false`)
	alone.quiet(t, "file://"+file)
}

// The whole text of a long episode is in the page: find-in-page reaches what is not laid out.
func TestBrowserOpensALongEpisode(t *testing.T) {
	b := openBrowser(t)
	staged := long(500, 16<<10)
	server := httptest.NewServer(open(t, "", runDir(t, staged)))
	defer server.Close()
	address := server.URL + "/t/1/" + staged.Episode.EpisodeID
	b.visit(t, address)
	t.Logf("500 steps of 16 KB: loaded in %.0f ms, %.0f elements", b.number(t, `performance.getEntriesByType("navigation")[0].loadEventEnd`), b.number(t, `document.querySelectorAll("*").length`))
	if n := b.number(t, `document.querySelectorAll("*").length`); n > 20_000 {
		t.Errorf("%v elements", n)
	}
	b.want(t, `window.find("the needle in the last step")`)
	b.visit(t, address+"#s400")
	b.want(t, inView("s400"))
	b.quiet(t, server.URL+"/")
}

func TestBrowserKeysAndToggles(t *testing.T) {
	b := openBrowser(t)
	staged := sinktest.Episode("run-a", 0)
	staged.Steps[7].IsError = new(true)
	server := httptest.NewServer(open(t, "", runDir(t, staged, sinktest.Episode("run-a", 2))))
	defer server.Close()
	b.visit(t, server.URL+"/")
	b.press(t, "j")
	b.want(t, `document.querySelectorAll(".chosen a").length === 1`)
	b.follow(t, "\r")
	b.want(t, `document.body.className === "episode" && document.readyState === "complete"`)
	b.press(t, "jj")
	b.want(t, `location.hash === "#s1"`)
	b.press(t, "k")
	b.want(t, `location.hash === "#s0"`)
	b.press(t, "n")
	b.want(t, `location.hash === "#s7"`)
	b.want(t, inView("s7"))
	b.press(t, "5")
	b.want(t, `location.search === "?hide=observation" && !document.querySelector(".observation").checkVisibility()`)
	b.visit(t, server.URL+"/t/1/"+staged.Episode.EpisodeID+"?hide=observation,prompt#s7")
	b.want(t, `!document.querySelector(".observation").checkVisibility() && !document.querySelector(".step.prompt").checkVisibility() && document.querySelector(".message").checkVisibility() !== null`)
	b.press(t, "?")
	b.want(t, `document.getElementById("help").open`)
	b.visit(t, server.URL+"/")
	b.press(t, "/")
	b.want(t, `document.activeElement.name === "q"`)
	b.follow(t, "\binst-2\r") // chromedp types the slash although the page has handled the key
	b.want(t, `new URLSearchParams(location.search).get("q") === "inst-2" && document.querySelectorAll(".episodes tbody tr").length === 1`)
	b.quiet(t, server.URL+"/")
}

func TestBrowserFollowsARun(t *testing.T) {
	b := openBrowser(t)
	all := many(3)
	dir := runDir(t, all[:2]...)
	server := httptest.NewServer(open(t, "", dir))
	defer server.Close()
	b.visit(t, server.URL+"/")
	b.want(t, `document.querySelectorAll(".episodes tbody tr").length === 2`)
	stage(t, dir, all[2])
	b.want(t, `document.querySelectorAll(".episodes tbody tr").length === 3`)
	b.quiet(t, server.URL+"/")
}
