package viewer_test

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// showAs sets the theme and the width of the screen.
func (b *tab) showAs(t *testing.T, theme string, width int64) {
	t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 800)); err != nil {
		t.Fatal(err)
	}
}

// click clicks a link and waits for the page that it leads to.
func (b *tab) click(t *testing.T, selector string) {
	t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		t.Fatalf("clicking %s: %v", selector, err)
	}
}

// Hostile names and texts neither run nor widen the pages, and the themes apply to them.
func TestBrowserShowsHostileTextsOnAllPages(t *testing.T) {
	b := openBrowser(t)
	staged, unresolved := hostile(), hostile()
	unresolved.Episode.Resolved = new(false)
	staged.Episode.TaskKey = new("task")
	dir, jobs, publish, _ := liveRun(t)
	stage(t, dir, staged)
	jobs.Begin(schemas.Job{EpisodeID: "e1", Instance: attack + strings.Repeat("wide", 50)}, 40, observe.InSandboxStart)
	jobs.Set("e1", observe.InTool, attack)
	publish()
	s := open(t, "", dir, runDir(t, unresolved))
	s.ShowGold(map[string]string{"task": *staged.Episode.Patch})
	server := httptest.NewServer(s)
	defer server.Close()
	for theme, width := range map[string]int64{"light": 400, "dark": 1200} {
		b.showAs(t, theme, width)
		for _, path := range []string{"/", "/jobs", "/compare?all=1", "/compare?by=%3Cimg%20src=x%3E", "/?in=steps&q=%3Cscript%3E", "/t/1/" + staged.Episode.EpisodeID + "?list=q%3D%253Cscript%253E"} {
			b.visit(t, server.URL+path)
			b.want(t, `document.title.endsWith("tracesmith") && document.readyState === "complete"`)
			if n := b.number(t, `document.querySelectorAll("img, iframe, object, base, [onerror], [onload], a[href^='javascript'], main script").length`); n != 0 {
				t.Errorf("%s: %v elements of the episode became part of the page", path, n)
			}
			if n := b.number(t, `document.documentElement.scrollWidth`); n > float64(width) {
				t.Errorf("%s is %v pixels wide on a screen of %d", path, n, width)
			}
			red := b.number(t, `Number(getComputedStyle(document.body).backgroundColor.match(/\d+/)[0])`)
			if isLight := red > 200; isLight != (theme == "light") {
				t.Errorf("%s: the theme is %s and the red of the background %v", path, theme, red)
			}
		}
	}
	b.quiet(t, server.URL+"/")
}

func TestBrowserComparesWithTheKeyboard(t *testing.T) {
	b := openBrowser(t)
	left, right := attempt("a", "left", 0, true), attempt("b", "left", 0, false)
	server := httptest.NewServer(open(t, "", runDir(t, left, attempt("a", "right", 0, false)), runDir(t, right, attempt("b", "right", 0, true))))
	defer server.Close()
	b.visit(t, server.URL+"/")
	b.click(t, "a[href^='/compare']")
	b.want(t, `document.querySelectorAll(".tasks tbody tr").length === 2`)
	b.press(t, "jj")
	b.want(t, `document.querySelector(".chosen th").textContent === "builtin/right"`)
	b.press(t, "k")
	b.want(t, `document.querySelector(".chosen th").textContent === "builtin/left" && document.activeElement.textContent === "#0 resolved"`)
	b.follow(t, "\r")
	b.want(t, `location.pathname === `+quote("/t/1/"+left.Episode.EpisodeID))
	b.visit(t, server.URL+"/compare")
	b.press(t, "?")
	b.want(t, `document.getElementById("help").open`)
	b.visit(t, server.URL+"/compare")
	b.press(t, "u")
	b.want(t, `location.pathname === "/"`)
	b.quiet(t, server.URL+"/")
}

func TestBrowserGoesThroughTheFoundSteps(t *testing.T) {
	b := openBrowser(t)
	all := many(6)
	for i := range all {
		all[i].Steps[2].Message = fmt.Sprintf("the needle of %d", i%2)
	}
	server := httptest.NewServer(open(t, "", runDir(t, all...)))
	defer server.Close()
	b.visit(t, server.URL+"/?sort=-n_turns")
	b.press(t, "/")
	b.press(t, "\bNEEDLE of 1\t ") // to the box, which a space checks
	b.follow(t, "\r")
	b.want(t, `document.querySelectorAll(".episodes tbody tr:not(.hits)").length === 3 && document.querySelector("mark").textContent === "needle of 1"`)
	b.press(t, "jj")
	b.want(t, `document.querySelector(".chosen td:nth-child(4)").textContent === "3"`)
	b.click(t, ".hits a")
	b.want(t, `location.hash === "#s2" && location.pathname.endsWith(`+quote(all[5].Episode.EpisodeID)+`)`)
	b.want(t, inView("s2"))
	for _, i := range []int{3, 1} {
		b.follow(t, "]")
		b.want(t, `document.readyState === "complete" && location.pathname.endsWith(`+quote(all[i].Episode.EpisodeID)+`)`)
	}
	b.follow(t, "[")
	b.want(t, `document.readyState === "complete" && location.pathname.endsWith(`+quote(all[3].Episode.EpisodeID)+`)`)
	b.follow(t, "u")
	b.want(t, `document.querySelectorAll(".hits").length === 3 && location.search.includes(`+quote("q="+url.QueryEscape("NEEDLE of 1"))+`)`)
	b.quiet(t, server.URL+"/")
}

func TestBrowserFollowsRunningJobs(t *testing.T) {
	b := openBrowser(t)
	dir, jobs, publish, stop := liveRun(t)
	server := httptest.NewServer(open(t, "", dir))
	defer server.Close()
	b.visit(t, server.URL+"/")
	jobs.Begin(schemas.Job{EpisodeID: "e1", Instance: "slow"}, 40, observe.InSandboxStart)
	publish()
	b.want(t, `document.querySelector(".jobs th[scope=row]")?.textContent === "slow#0"`)
	jobs.SetTurn("e1", 7)
	jobs.Set("e1", observe.InTool, "pdb")
	publish()
	b.want(t, `document.querySelector(".jobs tbody").textContent.includes("7/40") && document.querySelector(".jobs tbody").textContent.includes("running pdb")`)
	if n := b.number(t, `document.querySelectorAll(".top").length`); n != 1 {
		t.Errorf("the page has %v headers", n)
	}
	stop()
	b.want(t, `document.querySelector(".jobs section") === null && document.querySelector(".live") === null`)
	b.quiet(t, server.URL+"/")
}

func TestBrowserMarksWithTheKeyboard(t *testing.T) {
	b := openBrowser(t)
	all := many(4)
	s := open(t, "", runDir(t, all...))
	server := httptest.NewServer(s)
	defer server.Close()
	at := func(i int) string {
		return `document.readyState === "complete" && location.pathname.endsWith(` + quote(all[i].Episode.EpisodeID) + `)`
	}
	b.visit(t, server.URL+"/?sort=n_turns")
	b.want(t, `document.querySelectorAll(".episodes tbody tr").length === 4`)
	b.press(t, "j")
	b.follow(t, "\r")
	b.want(t, at(0))
	b.press(t, "m")
	b.want(t, `document.activeElement.name === "note"`)
	b.follow(t, "odd\r") // chromedp types the m as well
	b.want(t, at(0)+` && document.querySelector("[name=note]").value.endsWith("odd") && document.querySelector("[aria-pressed]") === null`)
	b.follow(t, "x")
	b.want(t, at(1))
	b.follow(t, "y")
	b.want(t, at(2))
	b.follow(t, "[")
	b.want(t, at(1)+` && document.querySelector("h1 .mark-keep") !== null`)
	b.press(t, "m")
	b.follow(t, "\b\r") // a note alone changes no mark
	b.want(t, at(1)+` && document.querySelector("h1 .mark-keep") !== null`)
	b.visit(t, server.URL+"/t/1/"+all[3].Episode.EpisodeID+"?list="+url.QueryEscape("mark=unmarked&sort=n_turns"))
	b.follow(t, "x") // the last one leads back to the list
	b.want(t, `location.pathname === "/" && document.querySelectorAll(".episodes tbody tr").length === 1`)
	if got := list(t, s, "?mark=reject"); got.Matched != 2 {
		t.Errorf("%d episodes are rejected, want 2", got.Matched)
	}
	b.quiet(t, server.URL+"/")
}
