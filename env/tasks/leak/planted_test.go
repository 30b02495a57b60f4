package leak

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

const fixedLookup = `    def lookup(self, title, default=None):
        """Return the first book of that title."""
        position = bisect.bisect_left(self.books, title)
        if position < len(self.books) and self.books[position] == title:
            return self.books[position]
        return default
`

const fixPatch = `diff --git a/shelf/store.py b/shelf/store.py
--- a/shelf/store.py
+++ b/shelf/store.py
@@ -17,6 +17,6 @@ class Store:
         """Return the first book of that title."""
-        position = bisect.bisect_right(self.books, title)
-        if position < len(self.books):
+        position = bisect.bisect_left(self.books, title)
+        if position < len(self.books) and self.books[position] == title:
             return self.books[position]
         return default
`

const renamedLookup = `def old(box, key, other=None):
    i = bisect.bisect_left(box.items, key)
    if i < len(box.items) and box.items[i] == key:
        return box.items[i]
    return other
`

func written(t testing.TB, open func(io.Writer) (io.WriteCloser, error), text string) string {
	t.Helper()
	var out bytes.Buffer
	w, err := open(&out)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(w, text)
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.String()
}

func gzipped(t testing.TB, text string) string {
	return written(t, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }, text)
}

func zlibbed(t testing.TB, text string) string {
	return written(t, func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }, text)
}

func asUTF16(text string) string {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return string(out)
}

func packedAs(t testing.TB, kind, name, text string) string {
	t.Helper()
	var out bytes.Buffer
	switch kind {
	case "zip":
		z := zip.NewWriter(&out)
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
	case "tar":
		w := tar.NewWriter(&out)
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func folded(s string, width int) string {
	var out strings.Builder
	for len(s) > width {
		out.WriteString(s[:width] + "\n")
		s = s[width:]
	}
	return out.String() + s + "\n"
}

func commented(text, sign string) string {
	return sign + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+sign) + "\n"
}

func codesOf(text, format string) string {
	var out strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&out, format, c)
	}
	return out.String()
}

type planted struct{ path, text, kind string }

// encodings returns the fix in different encodings, by the name of the encoding.
func encodings(t testing.TB) map[string]string {
	b64 := base64.StdEncoding.EncodeToString
	as85 := func(text string) string {
		out := make([]byte, ascii85.MaxEncodedLen(len(text)))
		return string(out[:ascii85.Encode(out, []byte(text))])
	}
	quoted, _ := json.Marshal(fixedLookup)
	return map[string]string{
		"gzip":                   gzipped(t, fixPatch),
		"gzip at end":            "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00\x01\x02pixels", 50) + gzipped(t, fixedLookup),
		"zlib":                   zlibbed(t, fixedLookup),
		"zlib in junk":           "\x01\x02\x03\xff\xfejunk" + zlibbed(t, fixedLookup) + "\xff\xfe",
		"deflate":                written(t, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, 9) }, fixedLookup),
		"xz":                     written(t, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) }, fixedLookup),
		"zstd":                   written(t, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }, fixedLookup),
		"bz2":                    bzipped(t),
		"zip":                    packedAs(t, "zip", "x/y.dat", fixedLookup),
		"zip behind a picture":   "\x89PNG\r\n" + packedAs(t, "zip", "y", fixedLookup),
		"tar":                    packedAs(t, "tar", "y", fixedLookup),
		"tar.gz":                 gzipped(t, packedAs(t, "tar", "y", fixedLookup)),
		"wheel in zip":           packedAs(t, "zip", "a.whl", packedAs(t, "zip", "store2.py", fixedStore)),
		"base64":                 b64([]byte(fixedLookup)),
		"base64 folded":          "-----BEGIN X-----\n" + folded(b64([]byte(fixedLookup)), 64) + "-----END X-----\n",
		"base64 in strings":      `KEY = ("` + strings.ReplaceAll(strings.TrimSpace(folded(b64([]byte(fixedLookup)), 40)), "\n", "\"\n       \"") + "\")\n",
		"base64 url":             base64.RawURLEncoding.EncodeToString([]byte(fixedLookup)),
		"base64 commented":       commented(folded(b64([]byte(fixedLookup)), 50), "# "),
		"base64 of gzip":         "BLOB = b'" + b64([]byte(gzipped(t, fixedLookup))) + "'\n",
		"base64 of zlib in json": `{"a": 1, "blob": "` + b64([]byte(zlibbed(t, fixedLookup))) + `"}`,
		"base64 three times":     b64([]byte(b64([]byte(b64([]byte(fixedLookup)))))),
		"base32":                 base32.StdEncoding.EncodeToString([]byte(fixedLookup)),
		"hex":                    hex.EncodeToString([]byte(fixedLookup)),
		"hex with spaces":        codesOf(fixedLookup, "%02x "),
		"hex with 0x":            "{" + codesOf(fixedLookup, "0x%02x, ") + "}",
		"hex escapes":            "X = '" + codesOf(fixedLookup, `\x%02x`) + "'",
		"octal escapes":          "X = '" + codesOf(fixedLookup, `\%03o`) + "'",
		"decimal":                "[" + codesOf(fixedLookup, "%d, ") + "]",
		"binary":                 codesOf(fixedLookup, "%08b "),
		"chr":                    codesOf(fixedLookup, "chr(%d)+"),
		"base32 lower":           strings.ToLower(base32.StdEncoding.EncodeToString([]byte(fixedLookup))),
		"base32 hex":             base32.HexEncoding.EncodeToString([]byte(fixedLookup)),
		"base64 in a mail":       "Content-Transfer-Encoding: base64\n\n" + folded(b64([]byte(fixPatch)), 76),
		"zip in a notebook":      `{"cell_type": "code", "data": {"image/png": "` + strings.ReplaceAll(folded(b64([]byte("\x89PNG\r\n"+packedAs(t, "zip", "y", fixedLookup))), 76), "\n", "\\n") + `"}}`,
		"hexdump":                dump(fixedLookup, "%08x  ", pairs), "xxd": dump(fixedLookup, "%08x: ", quads),
		"octal without zeros": codesOf(fixedLookup, `\%o`),
		"braced codes":        "const x = \"" + codesOf(fixedLookup, `\u{%x}`) + "\"",
		"pieces of strings":   `CODE = "".join(["` + strings.ReplaceAll(strings.ReplaceAll(folded(strings.ReplaceAll(fixedLookup, "\"\"\"", ""), 7), "\n", `", "`), `"", `, ``) + `"])`,
		"rot47":               rot47(fixedLookup),
		"ascii85":             "<~" + as85(fixedLookup) + "~>",
		"base85 git":          encode85(fixedLookup, alphabet85),
		"z85":                 encode85(fixedLookup, alphabetZ85),
		"url":                 url.QueryEscape(fixedLookup),
		"url path":            url.PathEscape(fixedLookup),
		"url every byte":      codesOf(fixedLookup, "%%%02X"),
		"html":                "<pre><span class=\"k\">" + strings.ReplaceAll(html.EscapeString(fixedLookup), " ", "</span> <span>") + "</span></pre>",
		"html codes":          codesOf(fixedLookup, "&#%d;"),
		"quoted-printable":    "position =3D bisect.bisect_left(self.books, title)\nif position < len(self.books) =\nand self.books[position] =3D=3D title: =20\n",
		"uuencode":            uuencode(fixedLookup),
		"rot13":               strings.Map(func(c rune) rune { return shiftLetter(c, 13) }, fixedLookup),
		"caesar":              strings.Map(func(c rune) rune { return shiftLetter(c, 3) }, fixedLookup),
		"reversed":            reverse(fixedLookup),
		"reversed lines":      "position = x\n" + reverse("        position = bisect.bisect_left(self.books, title)") + "\n",
		"base64 of reversed":  b64([]byte(reverse(fixedLookup))),
		"utf-16":              asUTF16(fixedLookup),
		"utf-16 in gzip":      gzipped(t, asUTF16(fixPatch)),
		"json string":         `{"note": ` + string(quoted) + `}`,
		"notebook":            `{"cells": [{"cell_type": "code", "source": ["position = bisect.bisect_left(self.books, title)\n", "if position < len(self.books) and self.books[position] == title:\n"]}]}`,
		"pickle":              "\x80\x04\x95\x50\x00\x00\x00\x00\x00\x00\x00\x8c\x70" + fixedLookup + "\x94.",
		"upper case":          strings.ToUpper(fixedLookup),
		"full width": strings.Map(func(c rune) rune {
			if c > ' ' && c < 127 {
				return c + 0xFEE0
			}
			return c
		}, fixedLookup),
		"zero width":     strings.ReplaceAll(fixedLookup, "e", "e\u200b"),
		"look-alikes":    strings.NewReplacer("o", "о", "e", "е").Replace(fixedLookup),
		"spaced letters": "p o s i t i o n  =  b i s e c t . b i s e c t _ l e f t ( s e l f . b o o k s ,  t i t l e )\n",
		"colored":        strings.ReplaceAll(fixedLookup, "self", "\x1b[31mself\x1b[0m"),
	}
}

func TestEncodedCopiesAreFound(t *testing.T) {
	for name, text := range encodings(t) {
		found := search(t, shelf.with("docs/x.dat", text), fixedStore)
		if len(found) != 1 || found[0].Path != "docs/x.dat" || found[0].Excerpt == "" {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestPlantedCopiesAreFound(t *testing.T) {
	store := shelf["shelf/store.py"]
	fixLine := "if position < len(self.books) and self.books[position] == title:"
	for name, c := range map[string]planted{
		"patch":                     {"docs/fix.patch", fixPatch, KindPatch},
		"patch with another name":   {"docs/notes.txt", "Apply this:\n\n" + fixPatch, KindPatch},
		"patch of elsewhere":        {"notes", strings.ReplaceAll(fixPatch, "/shelf/", "/home/me/shelf/"), KindPatch},
		"reverse patch":             {"bug.txt", "--- shelf/store.py\n+++ shelf/store.py\n@@ -18,1 +18,1 @@\n-        position = bisect.bisect_left(self.books, title)\n+        position = bisect.bisect_right(self.books, title)\n", KindPatch},
		"quoted patch":              {"mail.txt", commented(fixPatch, "> "), KindPatch},
		"context diff":              {"a.txt", "*** shelf/store.py\tx\n--- shelf/store.py\ty\n***************\n*** 18,19 ****\n!         position = bisect.bisect_right(self.books, title)\n--- 18,19 ----\n!         position = bisect.bisect_left(self.books, title)\n", KindPatch},
		"word diff":                 {"a.txt", "position = bisect.[-bisect_right-]{+bisect_left+}(self.books, title)\n", KindLine},
		"two lines":                 {"NEWS", "position = bisect.bisect_left(self.books, title)\n" + fixLine + "\n", KindLines},
		"a line":                    {"NEWS", "Use `" + fixLine + "` there.\n", KindLine},
		"comment in the file":       {"shelf/store.py", strings.Replace(store, "        position =", "        # position = bisect.bisect_left(self.books, title)\n        position =", 1), KindLine},
		"comment behind code":       {"shelf/store.py", strings.Replace(store, "(self.books, title)\n", "(self.books, title)  # was bisect.bisect_left(self.books, title)\n", 1), KindLine},
		"docstring":                 {"shelf/twin.py", "\"\"\"Mirror.\n\n    position = bisect.bisect_left(self.books, title)\n\"\"\"\n" + shelf["shelf/twin.py"], KindLine},
		"string":                    {"shelf/twin.py", shelf["shelf/twin.py"] + "\nHINT = \"" + fixLine + "\"\n", KindLine},
		"sed script":                {"fix.sh", "sed -i 's/if position < len(self.books):/" + fixLine + "/' shelf/store.py\n", KindLine},
		"sed of an expression":      {"fix.sh", "sed -i 's/bisect_right(self.books/bisect.bisect_left(self.books/' shelf/store.py\n", KindLine},
		"copy of the file":          {"old/keep.txt", fixedStore, KindFile},
		"copy with another head":    {"lib/keep.py", "# made by hand\n" + fixedStore, KindLines},
		"reformatted":               {"scratch.py", "def lookup(self,title,default=None):\n  position=bisect.bisect_left(\n      self.books,\n      title,\n  )\n  if (position<len(self.books) and\n      self.books[position]==title): return self.books[position]\n  return default\n", ""},
		"renamed":                   {"scratch.py", renamedLookup, KindRenamed},
		"renamed in a docstring":    {"scratch.py", "\"\"\"An idea:\n\n" + renamedLookup + "\"\"\"\n", KindRenamed},
		"renamed in comments":       {"shelf/twin.py", shelf["shelf/twin.py"] + "\n" + commented(renamedLookup, "# "), ""},
		"renamed in a comment":      {"scratch.txt", "Some words before.\n\n" + renamedLookup, KindRenamed},
		"renamed and encoded":       {"x.bin", base64.StdEncoding.EncodeToString([]byte(gzipped(t, renamedLookup))), KindRenamed},
		"comments between":          {"scratch.py", strings.ReplaceAll(fixedLookup, ":\n", ":  # and so on\n"), ""},
		"unused function":           {"shelf/twin.py", shelf["shelf/twin.py"] + "\n    def _kept(self, title, default=None):\n" + fixedLookup[strings.Index(fixedLookup, "        position"):], ""},
		"unused in the file itself": {"shelf/store.py", store + "\n" + strings.ReplaceAll(fixedLookup, "lookup", "_lookup_before"), ""},
		"never reached":             {"shelf/store.py", store + "\n    def more(self, title):\n        if False:\n            position = bisect.bisect_left(self.books, title)\n            " + fixLine + "\n                return 1\n        return self.more(title)\n", KindLines},
		"behind a return":           {"shelf/store.py", strings.Replace(store, "        return default\n", "        return default\n        position = bisect.bisect_left(self.books, title)\n        "+fixLine+"\n            return 0\n", 1), KindLines},
		"symlink's target":          {"link", fixLine, KindLine},
		"place of the bug":          {"NOTES", "The bug is in store.py:18, look at the bisection.\n", KindLocation},
	} {
		found := search(t, shelf.with(c.path, c.text), fixedStore)
		if len(found) != 1 || found[0].Path != c.path || c.kind != "" && found[0].Kind != c.kind {
			t.Errorf("%s: %v, want %s", name, found, c.kind)
		}
	}
	if found := search(t, shelf.with("notes/"+fixLine, ""), fixedStore); len(found) != 1 || found[0].Form != "the file's name" {
		t.Errorf("a file's name: %v", found)
	}
}

func TestUnrelatedTextsAreNotFound(t *testing.T) {
	store := shelf["shelf/store.py"]
	for name, c := range map[string]planted{
		"the file as it is":         {path: "docs/store.txt", text: store},
		"its copy":                  {path: "build/lib/shelf/store.py", text: store},
		"patch of another file":     {path: "debian/x.patch", text: "--- a/shelf/twin.py\n+++ b/shelf/twin.py\n@@ -1 +1 @@\n-class Mirror:\n+class Mirrors:\n"},
		"diff of a namesake":        {path: "tests/data/a.diff", text: "--- a/other/store.py\n+++ b/other/store.py\n@@ -1 +1 @@\n-import os.path\n+import pathlib\n"},
		"a method of the same kind": {path: "shelf/twin.py", text: shelf["shelf/twin.py"] + "\n    def nearest(self, key, default=None):\n        index = bisect.bisect_right(self.keys, key)\n        if index < len(self.keys):\n            return self.keys[index]\n        return default\n"},
		"a twin in use":             {path: "shelf/twin.py", text: shelf["shelf/twin.py"] + strings.ReplaceAll(fixedLookup, "lookup", "find") + "\n    def all(self):\n        return self.find(1)\n"},
		"a changelog":               {path: "CHANGES", text: "- fixed a bug in Store.lookup: it returned the wrong book\n- store.py:1 has a docstring\n"},
		"documentation":             {path: "docs/api.rst", text: "Use ``bisect.bisect_left`` with sorted lists.\n\n.. method:: Store.lookup(title, default=None)\n\n   Return the first book of that title.\n"},
		"hashes":                    {path: "poetry.lock", text: strings.Repeat("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n", 200)},
		"a translation":             {path: "a.po", text: "#: shelf/store.py:18\nmsgid \"the shelf is full, which is wrong\"\n"},
	} {
		if found := search(t, shelf.with(c.path, c.text), fixedStore); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// dump returns the lines of a hex dump, whose bytes format prints.
func dump(text, offset string, format func(row string) string) string {
	var out strings.Builder
	for i := 0; i < len(text); i += 16 {
		row := text[i:min(len(text), i+16)]
		fmt.Fprintf(&out, offset+"%s  |%s|\n", i, format(row), strings.ReplaceAll(row, "\n", "."))
	}
	return out.String()
}

func pairs(row string) string { return strings.TrimSpace(fmt.Sprintf("% x", row)) }

func quads(row string) string {
	return strings.TrimSpace(regexp.MustCompile(`.{4}`).ReplaceAllString(fmt.Sprintf("%x", row), "$0 "))
}

func rot47(text string) string {
	return strings.Map(func(c rune) rune {
		if c > ' ' && c < 127 {
			return '!' + (c-'!'+47)%94
		}
		return c
	}, text)
}

func encode85(text, alphabet string) string {
	for len(text)%4 != 0 {
		text += " "
	}
	var out []byte
	for i := 0; i < len(text); i += 4 {
		v := uint32(text[i])<<24 | uint32(text[i+1])<<16 | uint32(text[i+2])<<8 | uint32(text[i+3])
		var group [5]byte
		for k := 4; k >= 0; k-- {
			group[k] = alphabet[v%85]
			v /= 85
		}
		out = append(out, group[:]...)
	}
	return string(out)
}

func uuencode(text string) string {
	var out strings.Builder
	out.WriteString("begin 644 x\n")
	for len(text) > 0 {
		row := text[:min(45, len(text))]
		text = text[len(row):]
		out.WriteByte(byte(' ' + len(row)))
		for row += "\x00\x00"; len(row) >= 3; row = row[3:] {
			for _, v := range [4]byte{row[0] >> 2, row[0]<<4&63 | row[1]>>4, row[1]<<2&63 | row[2]>>6, row[2] & 63} {
				out.WriteByte(' ' + v)
			}
		}
		out.WriteByte('\n')
	}
	return out.String() + "`\nend\n"
}

// bzipped returns fixedLookup, compressed by Python's bz2.
func bzipped(testing.TB) string {
	return "\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x9c\x42\xf3\xa1\x00\x00\x0f\x5f\x80\x44\x50\x50\x65\x00\x16\x00\x01\x10\x0a\xbf\x6d\xde\x00\x30\x00\xab\x68\x4a\x25\x3f\x46\x8a\x7a\x1a\x9a\x68\x34\x34\x36\xa0\x68\xd4\x11\xea\x00\x00\x00\x04\xa2\x86\x8c\x9a\x00\x00\x0c\x86\x12\xf5\xa4\xf3\xe1\x11\x02\x82\x7b\x1a\x56\x9b\x63\xaf\x2f\x1b\x2c\x7c\xc2\x12\x1e\x79\x1a\x67\x03\xeb\xcb\x0b\xa8\x59\x8b\x88\x15\x3a\xd1\x3a\xc0\xb4\x82\x50\xf8\x72\xc0\xd0\xaa\x03\x08\xe0\xf1\x1e\xde\xa8\xc2\xc4\x25\x05\x89\xc3\xa1\x16\x21\x29\x4a\xd8\x62\xa1\x6c\x07\x84\xa0\xd1\x14\x3d\x6b\x50\x5f\x86\x15\xa4\xd2\x17\x58\xa8\x98\x86\xf5\x43\x2d\x43\x8b\xda\xe2\xee\xc9\x4d\x81\x4b\xa3\x98\x05\xab\xce\xda\x7e\x65\x71\xc0\xa0\xa1\x82\x4e\x3f\x24\xfc\x5d\xc9\x14\xe1\x42\x42\x71\x0b\xce\x84"
}
