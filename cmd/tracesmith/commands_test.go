package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracesmith/tracesmith/internal/kubetest"
	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/llms/tape"
)

// This file defines the commands that scripts have in addition to testscript's own.

// code implements "code N CMD ARGS...": CMD must end with exit code N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N CMD ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

var (
	messageStart = regexp.MustCompile(`(?m)^tracesmith: `)
	unclearText  = regexp.MustCompile(`panic|goroutine|%!|<nil>|&\{|0x[0-9a-f]{6}|runtime error`)
)

// refused implements "refused N ARGS...": tracesmith ARGS must end with exit code N and one clear
// message on standard error.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	program := "tracesmith"
	if len(args) > 1 && slices.Contains([]string{"bench", "soak", "chaos", "learn"}, args[1]) {
		program = "tracesmith-lab"
	}
	code(ts, neg, append([]string{args[0], program}, args[1:]...))
	message := ts.ReadFile("stderr")
	if n := len(messageStart.FindAllString(message, -1)); n != 1 {
		ts.Fatalf("%d messages, want one", n)
	}
	if found := unclearText.FindString(message); found != "" {
		ts.Fatalf("the message shows %q", found)
	}
	parts := strings.Split(strings.TrimSpace(message), ": ")
	for i := 1; i < len(parts); i++ {
		if parts[i] == parts[i-1] {
			ts.Fatalf("the message says %q twice", parts[i])
		}
	}
}

// jsonOutput implements "json SCHEMA": the last standard output must be one JSON document of that
// schema.
func jsonOutput(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: json SCHEMA")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	var doc struct {
		Schema string `json:"schema"`
	}
	if err := dec.Decode(&doc); err != nil {
		ts.Fatalf("standard output is not a JSON document: %v", err)
	}
	if dec.More() {
		ts.Fatalf("standard output holds more than one document")
	}
	if doc.Schema != args[0] {
		ts.Fatalf("schema %q, want %q", doc.Schema, args[0])
	}
}

// describeFiles lists every file below dir with its inode, size and modification time.
func describeFiles(ts *testscript.TestScript, dir string) string {
	var b strings.Builder
	ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Sys().(*syscall.Stat_t).Ino, info.Size(), info.ModTime().UnixNano())
		return nil
	}))
	if b.Len() == 0 {
		ts.Fatalf("%s holds no files", dir)
	}
	return b.String()
}

// remember implements "remember NAME DIR": it stores the state of the files below DIR for
// unchanged.
func remember(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv("REMEMBERED_"+args[0], describeFiles(ts, args[1]))
}

// unchanged implements "unchanged NAME DIR": nothing below DIR may have been written since
// "remember NAME DIR", not even with the same content.
func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	before, after := ts.Getenv("REMEMBERED_"+args[0]), describeFiles(ts, args[1])
	if (before == after) == neg {
		ts.Fatalf("before:\n%safter:\n%s", before, after)
	}
}

// onlyFile returns the file that a pattern matches. It fails if the pattern does not match
// exactly one file.
func onlyFile(ts *testscript.TestScript, pattern string) string {
	found, err := filepath.Glob(ts.MkAbs(pattern))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%s names %d files", pattern, len(found))
	}
	return found[0]
}

// flip implements "flip PATTERN": it changes one byte in the middle of the file.
func flip(ts *testscript.TestScript, _ bool, args []string) {
	file := onlyFile(ts, args[0])
	body, err := os.ReadFile(file)
	ts.Check(err)
	body[len(body)/2] ^= 0xff
	ts.Check(os.WriteFile(file, body, 0o644))
}

// cut implements "cut PATTERN N": it cuts the file to N bytes.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(onlyFile(ts, args[0]), n))
}

// startLLM implements "llm VAR SCRIPT [allow-problems]": it starts a scripted model server, which
// runs until the script ends, and stores its base URL in VAR.
func startLLM(ts *testscript.TestScript, _ bool, args []string) {
	script, err := mock.Parse([]byte(ts.ReadFile(args[1])))
	ts.Check(err)
	srv := mocktest.Listen(script)
	ts.Setenv(args[0], srv.URL)
	ts.Defer(func() {
		srv.Close()
		if problems := srv.Problems(); len(problems) > 0 && len(args) < 3 {
			ts.Fatalf("scripted model server: %s", strings.Join(problems, "\n"))
		}
	})
}

// startS3 implements "s3 VAR": it starts an S3 server, which runs until the script ends, and stores
// its URL in VAR. The server is real if the environment names a program, or else a fake.
func startS3(ts *testscript.TestScript, _ bool, args []string) {
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": sinktest.AccessKey, "AWS_SECRET_ACCESS_KEY": sinktest.SecretKey, "AWS_REGION": "us-east-1",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		ts.Setenv(k, v)
	}
	if sinktest.HaveServer() {
		dir := ts.MkAbs("s3-data")
		ts.Check(os.MkdirAll(dir, 0o755))
		srv, err := sinktest.Launch(dir)
		ts.Check(err)
		ts.Defer(srv.Kill)
		ts.Setenv(args[0], srv.URL)
		return
	}
	backend := s3mem.New()
	ts.Check(backend.CreateBucket(sinktest.Bucket))
	srv := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	ts.Defer(srv.Close)
	ts.Setenv(args[0], srv.URL)
}

// startKubernetes implements "kubernetes [forbid]": it starts an API server and points KUBECONFIG
// at it. With an argument, the server forbids the creation of pods.
func startKubernetes(ts *testscript.TestScript, _ bool, args []string) {
	s := kubetest.Start(kubernetesTest{ts})
	if len(args) > 0 {
		s.Fail(kubetest.Fault{Verb: "create", Code: 403, Reason: "Forbidden", Message: `User "x" cannot create resource "pods"`})
	}
	ts.Setenv("KUBECONFIG", s.Kubeconfig())
}

// kubernetesTest adapts a script to the interface that kubetest needs of a test.
type kubernetesTest struct{ ts *testscript.TestScript }

func (t kubernetesTest) Helper()                   {}
func (t kubernetesTest) Cleanup(f func())          { t.ts.Defer(f) }
func (t kubernetesTest) Fatal(a ...any)            { t.ts.Fatalf("%s", fmt.Sprint(a...)) }
func (t kubernetesTest) Error(a ...any)            { t.ts.Logf("%s", fmt.Sprint(a...)) }
func (t kubernetesTest) Errorf(f string, a ...any) { t.ts.Logf(f, a...) }

// secretFree implements "secretfree TEXT DIR...": no file below DIR may contain TEXT, compressed
// or not.
func secretFree(ts *testscript.TestScript, neg bool, args []string) {
	var found []string
	for _, dir := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			body, err := unpacked(path)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if bytes.Contains(body, []byte(args[0])) {
				found = append(found, path)
			}
			return nil
		}))
	}
	if (len(found) > 0) != neg {
		ts.Fatalf("%q is in %d files: %s", args[0], len(found), strings.Join(found, ", "))
	}
}

// unpacked returns the content of a file: the text of every value for Parquet, requests and
// responses for tapes, the decompressed content for zstd and gzip, or else its bytes.
func unpacked(path string) ([]byte, error) {
	body, err := os.ReadFile(path)
	switch {
	case err != nil:
		return nil, err
	case strings.HasSuffix(path, ".tape"):
		all, err := tape.Read(path, func(string) bool { return true })
		for _, ex := range all {
			body = slices.Concat(body, ex.Request, ex.Response)
		}
		return body, err
	case strings.HasSuffix(path, ".zst"):
		dec, err := zstd.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		defer dec.Close()
		var out bytes.Buffer
		_, err = dec.WriteTo(&out)
		return out.Bytes(), err
	case strings.HasSuffix(path, ".gz"):
		zip, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(zip)
	case !strings.HasSuffix(path, ".parquet"):
		return body, nil
	}
	f, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	reader := parquet.NewReader(f)
	defer reader.Close()
	rows := make([]parquet.Row, 64)
	for {
		n, err := reader.ReadRows(rows)
		for _, row := range rows[:n] {
			for _, v := range row {
				out.WriteString(v.String() + "\n")
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return out.Bytes(), err
		}
	}
}
