package viewer_test

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/tracesmith/tracesmith/cmd/internal/viewer"
)

var (
	update = flag.Bool("update", false, "copy the screenshots of the documentation to docs/images")
	look   = flag.String("place", "", "a dataset or run whose pages TestBrowserLooks opens instead of those of its own data")
)

const repository = "../../.."

// looks are the pages that TestBrowserLooks opens, for the episode with the most debugger commands.
var looks = []struct {
	name, path string
	doc        bool   // docs/images has a picture of it
	at         string // what the picture shows at its top; "" for the top of the page
}{
	{"list", "/", true, ""},
	{"episode", "/t/1/EPISODE", false, ""},
	{"debugger", "/t/1/EPISODE", true, ".stopped:has(.source):has(.values)"},
	{"result", "/t/1/EPISODE", false, ".result"},
	{"sample", "/t/1/EPISODE/sample?gold=1", false, ""},
	{"prompt", "/t/1/EPISODE/model/6", false, ""},
	{"statistics", "/stats/1", true, ""},
	{"export", "/export", false, ""},
	{"compare", "/compare?a=1&b=2", false, ""},
	{"search", "/?in=steps&q=assert", false, ""},
}

//go:embed testdata/looks.js
var looksScript string

// TestBrowserLooks checks what one would see at a glance: nothing is cut off, texts do not overlap, all have enough contrast,
// controls and pictures have names, and the focus is visible. It leaves pictures of all pages in out/screenshots.
func TestBrowserLooks(t *testing.T) {
	b := openBrowser(t)
	places := []string{*look}
	if *look == "" {
		failed := runDir(t, hostile(), many(2)[1])
		write(t, filepath.Join(failed, "dead-letters.jsonl"), `{"run_id":"run-a","unit_key":"0123456789abcdef","state":"failed","error_class":"infra","error_message":"the disk is full","attempts":3}`+"\n")
		places = []string{repository + "/schemas/testdata/1.3.0/dataset", failed}
	}
	s := open(t, "", places...)
	episode := list(t, s, "?place=1&sort=-n_pdb").Episodes[0].EpisodeID
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.HandleFunc("/export", func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.Export(r.Context(), w, viewer.Export{Episode: episode}); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, p := range looks {
		if *look != "" && p.name == "compare" { // one place has nothing to compare
			continue
		}
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 400} {
				b.resize(t, theme, width)
				b.visit(t, server.URL+strings.ReplaceAll(p.path, "EPISODE", episode))
				b.want(t, `document.title.endsWith("tracesmith")`)
				name := fmt.Sprintf("%s-%s-%d", p.name, theme, width)
				for _, complaint := range b.complaints(t) {
					t.Errorf("%s: %s", name, complaint)
				}
				picture := b.picture(t, p.at)
				write(t, filepath.Join(repository, "out/screenshots", name+".png"), picture)
				if *update && p.doc && name == p.name+"-light-1280" {
					write(t, filepath.Join(repository, "docs/images", p.name+".png"), picture)
				}
			}
		}
	}
	b.quiet(t, server.URL+"/")
}

// resize sets the theme and the size of the window for the pages that are opened next.
func (b *tab) resize(t *testing.T, theme string, width int64) {
	t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media)
	if err == nil {
		err = chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 800))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// complaints returns what is wrong with the looks of the page.
func (b *tab) complaints(t *testing.T) []string {
	t.Helper()
	b.press(t, "\t") // from now on, the browser shows where the focus is
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](looksScript))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	named := []string{`"image"`, `"link"`, `"button"`, `"textbox"`, `"searchbox"`, `"checkbox"`, `"progressbar"`}
	for _, node := range tree.Nodes {
		if !node.Ignored && slices.Contains(named, string(node.Role.Value)) && (node.Name == nil || len(node.Name.Value) < len(`"x"`)) {
			found = append(found, fmt.Sprintf("%s %v has no name", node.Role.Value, node.BackendDOMNodeID))
		}
	}
	return found
}

// picture returns a picture of the window, as a PNG file.
func (b *tab) picture(t *testing.T, at string) string {
	t.Helper()
	if at != "" {
		b.want(t, `(() => { const target = document.querySelector(`+quote(at)+`); target?.scrollIntoView(); return target === null || target.getBoundingClientRect().top < innerHeight / 2 })()`)
	}
	raw, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, paletted(decoded)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// alike reports whether an eye can hardly distinguish two colors.
func alike(a, b color.Color) bool {
	const tolerance = 6 << 8
	r1, g1, b1, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	distance := func(x, y uint32) uint32 { return max(x, y) - min(x, y) }
	return max(distance(r1, r2), distance(g1, g2), distance(b1, b2)) < tolerance
}

// paletted reduces a picture to its 256 most frequent distinct colors, which makes a file a third as large.
func paletted(picture image.Image) image.Image {
	uses := map[color.Color]int{}
	var colors color.Palette
	size := picture.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			c := picture.At(x, y)
			if uses[c]++; uses[c] == 1 {
				colors = append(colors, c)
			}
		}
	}
	slices.SortStableFunc(colors, func(a, b color.Color) int { return uses[b] - uses[a] })
	out := image.NewPaletted(size, nil)
	for _, c := range colors {
		if len(out.Palette) < 256 && !slices.ContainsFunc(out.Palette, func(other color.Color) bool { return alike(c, other) }) {
			out.Palette = append(out.Palette, c)
		}
	}
	nearest := map[color.Color]uint8{}
	for y := range size.Dy() {
		for x := range size.Dx() {
			c := picture.At(x, y)
			index, known := nearest[c]
			if !known {
				index = uint8(out.Palette.Index(c))
				nearest[c] = index
			}
			out.SetColorIndex(x, y, index)
		}
	}
	return out
}
