package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/tracesmith/tracesmith/internal/suite"
)

// listen starts a NATS server and returns its URL.
func listen(t *testing.T, opts *server.Options) string {
	t.Helper()
	opts.Host, opts.Port, opts.NoSigs, opts.NoLog, opts.JetStream, opts.StoreDir = "127.0.0.1", -1, true, true, true, t.TempDir()
	srv, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(60 * time.Second) {
		t.Fatal("the NATS server did not start")
	}
	return srv.ClientURL()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// newOperator returns a new operator with one account that may use JetStream.
func newOperator() (op *jwt.OperatorClaims, resolver *server.MemAccResolver, sys string, account nkeys.KeyPair) {
	keys, sysKeys := must(nkeys.CreateOperator()), must(nkeys.CreateAccount())
	account = must(nkeys.CreateAccount())
	sys = must(sysKeys.PublicKey())
	op = jwt.NewOperatorClaims(must(keys.PublicKey()))
	op.SystemAccount = sys
	op = must(jwt.DecodeOperatorClaims(must(op.Encode(keys))))
	resolver = &server.MemAccResolver{}
	for _, pair := range []nkeys.KeyPair{sysKeys, account} {
		claims := jwt.NewAccountClaims(must(pair.PublicKey()))
		if pair == account {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
		}
		if err := resolver.Store(claims.Subject, must(claims.Encode(keys))); err != nil {
			panic(err)
		}
	}
	return op, resolver, sys, account
}

// writeCreds writes the credentials of a new user to a file. It also returns the user's seed.
func writeCreds(t *testing.T, name string, account nkeys.KeyPair, expires time.Time) (file, seed string) {
	t.Helper()
	user := must(nkeys.CreateUser())
	claims := jwt.NewUserClaims(must(user.PublicKey()))
	if !expires.IsZero() {
		claims.Expires = expires.Unix()
	}
	secret := must(user.Seed())
	body := must(jwt.FormatUserConfig(must(claims.Encode(account)), secret))
	file = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, string(secret)
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	op, resolver, sys, account := newOperator()
	url := listen(t, &server.Options{TrustedOperators: []*jwt.OperatorClaims{op}, AccountResolver: resolver, SystemAccount: sys})
	good, _ := writeCreds(t, "good", account, time.Time{})
	conn, err := Dial(t.Context(), Cluster{URL: url, Creds: good})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	stranger, strangerSeed := writeCreds(t, "stranger", must(nkeys.CreateAccount()), time.Time{})
	expired, expiredSeed := writeCreds(t, "expired", account, time.Now().Add(-time.Hour))
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("hunter2-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, secret string }{
		"stranger": {stranger, strangerSeed}, "expired": {expired, expiredSeed}, "none": {"", "no secret"},
		"garbage": {garbage, "hunter2"}, "missing": {filepath.Join(t.TempDir(), "no"), "no secret"},
	} {
		_, err := Dial(t.Context(), Cluster{URL: strings.Replace(url, "nats://", "nats://someone:pass-w0rd@", 1), Creds: c.file})
		if name == "none" {
			_, err = Dial(t.Context(), Cluster{URL: url})
		}
		denied, ok := errors.AsType[*AccessError](err)
		if !ok || denied.ExitCode() != 4 || denied.Hint() == "" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if message := denied.Error() + denied.Hint(); strings.Contains(message, c.secret) || strings.Contains(message, "pass-w0rd") || strings.Contains(message, "\n") {
			t.Errorf("%s: %s", name, message)
		}
	}
}

// startGreeter starts a server that only sends its version and answers pings. It returns the URL.
func startGreeter(t *testing.T, version string) string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	var open sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); open.Wait() })
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer conn.Close()
				fmt.Fprintf(conn, "INFO {\"server_id\":\"x\",\"version\":%q,\"headers\":true,\"max_payload\":1048576,\"proto\":1}\r\n", version)
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					if strings.HasPrefix(lines.Text(), "PING") {
						fmt.Fprint(conn, "PONG\r\n")
					}
				}
			})
		}
	})
	return "nats://" + l.Addr().String()
}

func TestOldServersAreRefused(t *testing.T) {
	t.Parallel()
	_, err := Dial(t.Context(), Cluster{URL: startGreeter(t, "2.11.17"), Patience: time.Hour})
	old, ok := errors.AsType[*OutdatedError](err)
	if !ok || old.Version != "2.11.17" || old.ExitCode() != 7 || !strings.Contains(old.Hint(), "2.12") {
		t.Errorf("%v", err)
	}
	for version, want := range map[string]bool{"1.4.1": true, "2.9.25": true, "2.12.0": false, "v2.12.0-RC.1": false, "2.15.2": false, "3.0.0": false, "": false} {
		if got := tooOld(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

// Jobs may be larger than the size limit of a message.
func TestLargeJobsGoThroughTheObjectStore(t *testing.T) {
	t.Parallel()
	conn, err := Dial(t.Context(), Cluster{URL: listen(t, &server.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	e, err := Open(t.Context(), Options{RunID: "r1", Conn: conn})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	big := []byte(`"` + strings.Repeat("x", 3<<20) + `"`)
	if _, err := e.Enqueue(t.Context(), []Job{{ID: "big", Data: big}, {ID: "small", Data: []byte("1")}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l := next(t, e)
		if want := map[string]string{"big": string(big), "small": "1"}[l.ID]; string(l.Data) != want {
			t.Errorf("%s: %d bytes", l.ID, len(l.Data))
		}
		if err := l.Done(t.Context(), "h", nil); err != nil {
			t.Error(err)
		}
	}
	if err := conn.Sweep(t.Context(), "r1"); err != nil {
		t.Error(err)
	}
	if held, err := conn.BytesByRun(t.Context()); err != nil || len(held) != 0 {
		t.Errorf("runs left after Sweep: %v, %v", held, err)
	}
}

// Jobs that are enqueued while the reconciler runs are queued only once.
func TestReconcilingWhileQueueingDuplicatesNothing(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	done := make(chan error, 1)
	go func() {
		_, err := e.Enqueue(t.Context(), jobs(5000))
		done <- err
	}()
	for {
		select {
		case err := <-done:
			info, infoErr := e.tasks.Info(t.Context())
			if err := errors.Join(err, infoErr); err != nil || info.State.Msgs != 5000 {
				t.Errorf("%v, %d messages", err, info.State.Msgs)
			}
			return
		default:
			if err := e.reconcile(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A try whose answer was lost is repeated. It queues only the jobs without a message.
func TestJobsHaveOneMessage(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), nil)
	all := jobs(batchSize + 1)
	if _, err := e.Enqueue(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if err := e.dropMessage(t.Context(), all[7].ID); err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(all))
	for i, j := range all {
		ids[i] = j.ID
	}
	if err := e.publish(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	if info, err := e.tasks.Info(t.Context()); err != nil || info.State.Msgs != uint64(len(all)) {
		t.Errorf("%d messages for %d jobs, %v", info.State.Msgs, len(all), err)
	}
}

// A watch that is idle for longer than its patience survives the loss of its consumer.
func TestClusterWatchOutlivesItsConsumer(t *testing.T) {
	t.Parallel()
	suite.Cluster.Require(t)
	e := open(t, t.TempDir(), func(o *Options) { o.CallTimeout = 3 * time.Second })
	e.patience = 9 * time.Second
	enqueue(t, e, 1)
	kv := must(e.js.Stream(t.Context(), "KV_EPISODES_r1"))
	watching := make(chan error, 1)
	ctx, stopWatch := context.WithCancel(t.Context())
	go func() {
		watching <- e.Watch(ctx, func(x Entry) bool { return x.State != Done })
	}()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for start := time.Now(); time.Since(start) < 12*time.Second; <-again.C {
		for name := range kv.ConsumerNames(t.Context()).Name() {
			_ = kv.DeleteConsumer(t.Context(), name) // it may be gone already
		}
	}
	if err := next(t, e).Done(t.Context(), "h", nil); err != nil {
		t.Error(err)
	}
	select {
	case err := <-watching:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the watch no longer sees changes")
	}
	stopWatch()
}

func TestClusterThreeHundredThousandJobs(t *testing.T) {
	t.Parallel()
	if suite.Cluster.Require(t); testing.Short() {
		t.Skip("NOT RUN: 300,000 jobs; make full runs it")
	}
	dir, n := t.TempDir(), 300_000
	many := make([]Job, n)
	for i := range many {
		many[i] = Job{ID: jobs(1)[0].ID + "-" + big.NewInt(int64(i)).Text(36), Data: []byte(`{"task":"0123456789abcdef0123456789abcdef"}`)}
	}
	t.Run("queue", func(t *testing.T) {
		e := open(t, dir, nil)
		start := time.Now()
		if added, err := e.Enqueue(t.Context(), many); err != nil || added != n {
			t.Fatalf("%d, %v", added, err)
		}
		t.Logf("queued in %s", time.Since(start))
	})
	t.Run("restart", func(t *testing.T) {
		start := time.Now()
		e := open(t, dir, nil)
		entries, err := e.Entries(t.Context())
		if err != nil || len(entries) != n {
			t.Fatalf("%d, %v", len(entries), err)
		}
		t.Logf("reopened and listed in %s", time.Since(start))
		next(t, e)
	})
}

// Credentials that expire during use cause an *AccessError at once, without waiting for Patience.
func TestCredentialsThatExpireDuringARun(t *testing.T) {
	t.Parallel()
	op, resolver, sys, account := newOperator()
	url := listen(t, &server.Options{TrustedOperators: []*jwt.OperatorClaims{op}, AccountResolver: resolver, SystemAccount: sys})
	var conn *Conn
	var seed string
	for life := 3 * time.Second; conn == nil; life *= 2 { // on a slow machine they may expire before the connection is made
		file, secret := writeCreds(t, "brief", account, time.Now().Add(life))
		c, err := Dial(t.Context(), Cluster{URL: url, Creds: file, Patience: 5 * time.Minute})
		if err != nil && life > time.Minute {
			t.Fatal(err)
		}
		if err == nil {
			conn, seed = c, secret
		}
	}
	defer func() { _ = conn.Close() }()
	for {
		_, err := conn.Runs(t.Context())
		if err == nil {
			continue
		}
		denied, ok := errors.AsType[*AccessError](err)
		if !ok || denied.ExitCode() != 4 || !strings.Contains(denied.Error(), "expired") || strings.Contains(denied.Error()+denied.Hint(), seed) {
			t.Errorf("%v", err)
		}
		return
	}
}
