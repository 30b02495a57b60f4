package engine

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// Cluster configures the connection to external NATS servers.
type Cluster struct {
	URL           string // one or more, comma-separated
	Creds         string // file with a user's JWT and seed; "" = none
	CA, Cert, Key string // PEM files for TLS; "" = the system's CAs, no client certificate
	Replicas      int    // copies of every stream; 0 = 3 if there are at least three nodes, else 1
	// Patience is how long to wait for servers that do not answer; default 1m.
	// An election takes 4 to 9 s.
	Patience    time.Duration
	CallTimeout time.Duration // deadline of one try of a call; default 5s
	Log         *slog.Logger  // default: discard
}

// Conn is a connection to external servers, and to their registry of runs and
// workers. Its methods are safe for concurrent use.
type Conn struct {
	caller
	opt      Cluster
	nc       *nats.Conn
	js       jetstream.JetStream
	replicas int
	runs     jetstream.KeyValue
	workers  jetstream.KeyValue
}

// Dial connects, waiting up to Patience for servers that are not up yet. It returns
// an *AccessError if the servers reject the credentials, an *UntrustedError if TLS
// cannot verify them, an *OutdatedError if they are too old, and an
// *UnreachableError if none answered in time.
func Dial(ctx context.Context, opt Cluster) (*Conn, error) {
	opt.Patience, opt.CallTimeout = cmp.Or(opt.Patience, time.Minute), cmp.Or(opt.CallTimeout, 5*time.Second)
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	if opt.URL == "" {
		return nil, errors.New("an external engine needs the URL of its servers")
	}
	opts, err := opt.options()
	if err != nil {
		return nil, err
	}
	c := &Conn{opt: opt}
	c.caller = caller{timeout: opt.CallTimeout, patience: opt.Patience, refused: c.refused, place: opt.Place()}
	for start := time.Now(); ; {
		c.nc, err = nats.Connect(opt.URL, opts...)
		if err == nil {
			break
		}
		if denied := opt.accessError(err); denied != nil {
			return nil, denied
		}
		if untrusted := opt.untrustedError(err); untrusted != nil {
			return nil, untrusted
		}
		if time.Since(start) >= opt.Patience {
			return nil, &UnreachableError{Place: opt.Place(), Waited: time.Since(start), Err: err}
		}
		if err := Pause(ctx, 250*time.Millisecond); err != nil {
			return nil, err
		}
	}
	if version := c.nc.ConnectedServerVersion(); tooOld(version) {
		return nil, errors.Join(&OutdatedError{Place: opt.Place(), Version: version}, c.Close())
	}
	if c.js, err = jetstream.New(c.nc); err != nil {
		return nil, errors.Join(fmt.Errorf("opening JetStream: %w", err), c.Close())
	}
	c.replicas = cmp.Or(opt.Replicas, c.defaultReplicas())
	return c, c.openRegistry(ctx)
}

// options returns the options of the connection. It checks the files first, so that
// errors name the file but not its content.
func (o Cluster) options() ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name("tracesmith"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.Timeout(o.CallTimeout),
		nats.RetryOnFailedConnect(false),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Log.Warn("engine connection", "error", err) }),
	}
	if o.Creds != "" {
		body, err := os.ReadFile(o.Creds)
		if err != nil {
			return nil, &AccessError{Place: o.Place(), Why: "reading the credentials: " + err.Error(), Remedy: "set nats.creds to a file that this user can read"}
		}
		_, jwtErr := nkeys.ParseDecoratedJWT(body)
		pair, keyErr := nkeys.ParseDecoratedUserNKey(body)
		if jwtErr != nil || keyErr != nil {
			return nil, &AccessError{Place: o.Place(), Why: o.Creds + " is not a credentials file", Remedy: "set nats.creds to a file with a user's JWT and seed, as written by nsc or nats"}
		}
		pair.Wipe()
		opts = append(opts, nats.UserCredentials(o.Creds))
	}
	if o.CA != "" {
		body, err := os.ReadFile(o.CA)
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(body) {
			return nil, &AccessError{Place: o.Place(), Why: "nats.tls.ca: " + cmp.Or(errorText(err), o.CA+" contains no PEM certificate"), Remedy: "set it to the certificate of the servers' CA"}
		}
		opts = append(opts, nats.RootCAs(o.CA))
	}
	if o.Cert != "" || o.Key != "" {
		if _, err := tls.LoadX509KeyPair(o.Cert, o.Key); err != nil {
			return nil, &AccessError{Place: o.Place(), Why: "nats.tls.cert and nats.tls.key: " + err.Error(), Remedy: "set them to a certificate and its key, both in PEM"}
		}
		opts = append(opts, nats.ClientCert(o.Cert, o.Key))
	}
	return opts, nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Place returns the servers' URLs without user and password, for messages.
func (o Cluster) Place() string {
	var out []string
	for part := range strings.SplitSeq(o.URL, ",") {
		part = strings.TrimSpace(part)
		if u, err := url.Parse(part); err == nil && u.Host != "" {
			u.User = nil
			part = u.String()
		} else if i := strings.LastIndex(part, "@"); i >= 0 {
			part = part[i+1:]
		}
		out = append(out, part)
	}
	return strings.Join(out, ",")
}

// tooOld reports whether servers of a version silently ignore the headers that make
// a batch of messages atomic.
func tooOld(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor)
	return n == 2 && (major < 2 || major == 2 && minor < 12)
}

// refused returns the *AccessError with which the servers closed the connection, or nil.
func (c *Conn) refused() error {
	if c.nc == nil || !c.nc.IsClosed() {
		return nil
	}
	return c.opt.accessError(c.nc.LastError())
}

// defaultReplicas returns 3 if the cluster has at least three nodes, else 1.
func (c *Conn) defaultReplicas() int {
	if c.nc.ConnectedClusterName() == "" {
		return 1
	}
	known := c.nc.Servers()
	for i := range known {
		known[i] = hostPort(known[i])
	}
	slices.Sort(known)
	if len(slices.Compact(known)) >= 3 {
		return 3
	}
	return 1
}

func hostPort(server string) string {
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		return u.Host
	}
	return server
}

// Replicas returns the number of copies of new streams.
func (c *Conn) Replicas() int { return c.replicas }

// Place returns the servers' URLs without user and password, for messages.
func (c *Conn) Place() string { return c.opt.Place() }

// Patience returns how long calls wait for servers that do not answer.
func (c *Conn) Patience() time.Duration { return c.opt.Patience }

// Close ends the connection.
func (c *Conn) Close() error {
	if c.nc != nil {
		c.nc.Close()
	}
	return nil
}

// ensureStream opens a stream, or creates it and waits until it has a leader. It retries
// because a cluster that just started may answer late, with an error, or not at all.
func ensureStream(ctx context.Context, c caller, js jetstream.JetStream, op string, cfg jetstream.StreamConfig, update bool) (s jetstream.Stream, err error) {
	err = c.call(ctx, op, func(ctx context.Context) error {
		if update {
			s, err = js.CreateOrUpdateStream(ctx, cfg)
		} else if s, err = js.Stream(ctx, cfg.Name); errors.Is(err, jetstream.ErrStreamNotFound) {
			s, err = js.CreateStream(ctx, cfg)
		}
		if err != nil {
			return err
		}
		info, err := s.Info(ctx)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return errNotYet // created, but not on every node yet
		}
		if err == nil && info.Cluster != nil && info.Cluster.Leader == "" {
			return errNoLeader
		}
		return err
	})
	return s, err
}

// bucket opens or creates a key-value bucket that keeps one value per key and accepts
// atomic batches. In a cluster, reads go to the leader.
func bucket(ctx context.Context, c caller, js jetstream.JetStream, name string, replicas int, age time.Duration, embedded bool) (jetstream.KeyValue, error) {
	_, err := ensureStream(ctx, c, js, "creating the bucket "+name, jetstream.StreamConfig{
		Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, MaxMsgsPerSubject: 1, MaxAge: age, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, AllowRollup: true, DenyDelete: true, AllowDirect: embedded, AllowAtomicPublish: true,
		Duplicates: min(2*time.Minute, cmp.Or(age, 2*time.Minute)), Replicas: replicas,
	}, embedded)
	if err != nil {
		return nil, err
	}
	var kv jetstream.KeyValue
	err = c.call(ctx, "opening the bucket "+name, func(ctx context.Context) (err error) {
		if kv, err = js.KeyValue(ctx, name); errors.Is(err, jetstream.ErrBucketNotFound) {
			return errNotYet
		}
		return err
	})
	return kv, err
}
