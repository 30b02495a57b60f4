package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/cmd/internal/cli"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/internal/specimen"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// Targets of bench parquet.
const (
	writeShare    = 0.8     // speed of tracesmith's writer relative to the Parquet library alone
	normaliseRate = 100     // MB (10^6 bytes) of text per second that are made into rows
	publishMemory = 1 << 30 // peak memory of publishing any amount of data, in bytes
)

// Bounds of the number of different episodes. Larger datasets repeat them under other ids.
const (
	minDistinct = 4
	maxDistinct = 128
)

func newBenchParquet(s *cli.State) *cobra.Command {
	var dir string
	var steps []int
	var seed uint64
	var asJSON bool
	c := &cobra.Command{
		Use: "parquet", Short: "Measure the speed and memory of normalizing and publishing", Args: cli.RangeArgs(0, 0),
		Long: `Generate episodes of realistic shape (on average 40 steps of some KB),
normalize them, and write their rows with and without what tracesmith adds to
the Parquet library. Then stage and publish --steps steps, and report text per
second and the peak memory of this process. A missed target is reported but is
not a failure. 100,000 steps take about 0.5 GB below --dir, which is removed
after each measurement.`,
		Example: "  tracesmith-lab bench parquet\n  tracesmith-lab bench parquet --steps 1000000 --dir /data --json",
		RunE: func(c *cobra.Command, _ []string) error {
			if len(steps) == 0 || slices.Min(steps) < 1 {
				return cli.Usage(fmt.Errorf("--steps must be numbers of at least 1, got %v", steps))
			}
			report, err := benchParquet(c.Context(), s, dir, steps, seed)
			if err != nil {
				return cli.Resumable(c.Context(), err)
			}
			if asJSON {
				return cli.PrintJSON(s, report)
			}
			return report.print(s)
		},
	}
	c.Flags().IntSliceVar(&steps, "steps", []int{10_000, 100_000}, "steps to publish, one dataset for each number")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the texts and their sizes")
	c.Flags().StringVar(&dir, "dir", ".", "directory on the disk to use; nothing is left in it")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// parquetReport is what bench parquet prints; rates are MB of text or values in a second.
type parquetReport struct {
	Schema  string  `json:"schema"`
	Machine machine `json:"machine"`
	Seed    uint64  `json:"seed"`

	Rows      int64   `json:"rows"`             // rows that were written both ways
	Bytes     int64   `json:"bytes"`            // size of their values
	Clean     float64 `json:"rows_mb"`          // cleaning texts, replacing secrets, making rows
	Normalise float64 `json:"normalise_mb"`     // also rebuilding prompts, counting tokens, computing metrics
	AllCores  float64 `json:"normalise_all_mb"` // the same, on all cores
	Redact    float64 `json:"redact_mb"`        // only searching texts for secrets
	Bare      float64 `json:"bare_mb"`          // writing with the Parquet library alone
	Write     float64 `json:"write_mb"`         // writing with tracesmith: also hashes, sizes and a sync
	ReadBack  float64 `json:"read_back_mb"`     // reading with another reader and comparing every value
	Share     float64 `json:"share"`            // Write / Bare
	ShareMet  bool    `json:"share_met"`
	CleanMet  bool    `json:"rows_met"`
	RedactMet bool    `json:"redact_met"`

	Publishes []publishMeasure `json:"publishes"`
}

// publishMeasure is the measurement of publishing one dataset.
type publishMeasure struct {
	Steps     int64   `json:"steps"`
	Episodes  int     `json:"episodes"`
	Text      int64   `json:"text_bytes"`
	Staged    int64   `json:"staged_bytes"`
	Bytes     int64   `json:"bytes"` // of all files
	Files     int     `json:"files"`
	StageS    float64 `json:"stage_s"`
	PublishS  float64 `json:"publish_s"`
	Rows      float64 `json:"rows_per_s"`
	MB        float64 `json:"mb_per_s"` // of text
	Before    int64   `json:"rss_before_bytes"`
	Peak      int64   `json:"peak_rss_bytes"`
	WholePeak bool    `json:"peak_is_of_the_process"` // the peak could not be reset before publishing
	Met       bool    `json:"met"`
}

func benchParquet(ctx context.Context, s *cli.State, dir string, steps []int, seed uint64) (r parquetReport, err error) {
	place, err := os.MkdirTemp(dir, "tracesmith-bench-")
	if err != nil {
		return r, cli.Usage(fmt.Errorf("--dir: %w", err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(place)) }()
	r = parquetReport{Schema: "tracesmith.bench.parquet/1", Machine: thisMachine(), Seed: seed}
	r.Machine.Load[0] = load()
	progress := func(format string, args ...any) {
		if s.TTY {
			fmt.Fprintf(s.Stderr, format+"\n", args...)
		}
	}
	n := min(max(slices.Max(steps)/40, minDistinct), maxDistinct)
	progress("normalizing %d episodes", n)
	staged, err := r.normalise(ctx, seed, n)
	if err != nil {
		return r, err
	}
	if err := r.normaliseOnAllCores(ctx, seed+1, n); err != nil {
		return r, err
	}
	progress("writing rows with and without tracesmith")
	if err := r.write(ctx, place, staged); err != nil {
		return r, err
	}
	encoded := make([][]byte, len(staged))
	for i := range staged {
		if encoded[i], err = sinks.EncodeStaged(staged[i]); err != nil {
			return r, err
		}
	}
	staged = nil // free the memory before the measurement
	for i, n := range steps {
		progress("staging and publishing %d steps", n)
		b := bulk{dir: filepath.Join(place, fmt.Sprint(i)), staged: encoded}
		m, err := b.measure(ctx, n)
		if err != nil {
			return r, err
		}
		r.Publishes = append(r.Publishes, m)
	}
	r.Machine.Load[1] = load()
	return r, nil
}

// normalise makes n episodes for the other measurements and measures how fast it does so.
func (r *parquetReport) normalise(ctx context.Context, seed uint64, n int) ([]sinks.Staged, error) {
	var episodes []sinks.Staged
	var rows, elapsed, search time.Duration
	bytes := int64(0)
	// The first episode loads the vocabulary, so it is not measured.
	if _, err := normalise.Episode(specimen.Episode("bench", seed+2, 0), normalise.Config{}); err != nil {
		return nil, err
	}
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ep := specimen.Episode("bench", seed, i)
		start := time.Now()
		if _, _, err := normalise.Rows(ep, normalise.Config{Producer: cli.Version}); err != nil {
			return nil, err
		}
		rows += time.Since(start)
		start = time.Now()
		staged, err := normalise.Episode(ep, normalise.Config{Producer: cli.Version})
		elapsed += time.Since(start)
		if err != nil {
			return nil, err
		}
		start = time.Now()
		err = redact.NewChecker(nil).Check(ep.Job.EpisodeID, staged)
		search += time.Since(start)
		if err != nil {
			return nil, err
		}
		bytes += textSize(staged)
		episodes = append(episodes, staged)
	}
	r.Clean, r.Normalise, r.Redact = perSecond(bytes, rows), perSecond(bytes, elapsed), perSecond(bytes, search)
	r.CleanMet, r.RedactMet = r.Clean >= normaliseRate, r.Redact >= normaliseRate
	return episodes, nil
}

// normaliseOnAllCores normalizes other episodes of the same shape on all cores. Token counts
// of their texts are not in a cache yet.
func (r *parquetReport) normaliseOnAllCores(ctx context.Context, seed uint64, n int) error {
	episodes := make([]*schemas.Episode, n)
	for i := range episodes {
		episodes[i] = specimen.Episode("bench", seed, i)
	}
	var bytes atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	start := time.Now()
	for _, ep := range episodes {
		group.Go(func() error {
			staged, err := normalise.Episode(ep, normalise.Config{Producer: cli.Version})
			bytes.Add(textSize(staged))
			return errors.Join(err, ctx.Err())
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.AllCores = perSecond(bytes.Load(), time.Since(start))
	return nil
}

// textSize returns the size of an episode's texts in bytes.
func textSize(s sinks.Staged) (n int64) {
	for i := range s.Steps {
		st := &s.Steps[i]
		n += int64(len(st.Message))
		for _, t := range []*string{st.ArgumentsJSON, st.Observation} {
			if t != nil {
				n += int64(len(*t))
			}
		}
	}
	for _, b := range s.Blobs {
		n += b.Bytes
	}
	return n
}

// writeRounds is how often the rows are written each way. The first round does not count.
const writeRounds = 4

// write writes the same rows with the Parquet library alone and with tracesmith, in turn.
func (r *parquetReport) write(ctx context.Context, place string, episodes []sinks.Staged) error {
	var units [][]schemas.StepRow
	for _, s := range episodes {
		units = append(units, s.Steps)
	}
	var bareRates, rates, readRates []float64
	for i := range writeRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		if err := formats.WriteBare(filepath.Join(place, "bare.parquet"), arrowrec.Steps, units); err != nil {
			return err
		}
		bareTime := time.Since(start)
		start = time.Now()
		w, err := formats.CreateParquet[schemas.StepRow](place, "ours", arrowrec.Steps, arrowrec.Meta{Producer: "tracesmith " + cli.Version})
		if err != nil {
			return err
		}
		for _, rows := range units {
			if err := w.Append(rows); err != nil {
				return err
			}
		}
		info, err := w.Close()
		if err != nil {
			return err
		}
		elapsed := time.Since(start) - info.ReadBack
		if i == 0 {
			r.Rows, r.Bytes = info.Rows, info.Uncompressed
			continue
		}
		bareRates = append(bareRates, perSecond(r.Bytes, bareTime))
		rates = append(rates, perSecond(r.Bytes, elapsed))
		readRates = append(readRates, perSecond(r.Bytes, info.ReadBack))
	}
	r.Bare, r.Write, r.ReadBack = quantile(bareRates, 0.5), quantile(rates, 0.5), quantile(readRates, 0.5)
	r.Share = r.Write / r.Bare
	r.ShareMet = r.Share >= writeShare
	return nil
}

// perSecond returns a rate in MB per second.
func perSecond(bytes int64, d time.Duration) float64 { return float64(bytes) / 1e6 / d.Seconds() }

func (r parquetReport) print(s *cli.State) error {
	verdict := map[bool]string{true: "met", false: "missed"}
	fmt.Fprintf(s.Stdout, `%s
MB of text or values in a second, one thread
  rows          %8.1f MB/s, cleaned, secrets replaced (target: %d: %s)
  normalise     %8.1f MB/s, metrics, prompts and tokens with it
  on all cores  %8.1f MB/s, the same
  redact alone  %8.1f MB/s (target: %d: %s)
  arrow alone   %8.1f MB/s, %d rows
  write         %8.1f MB/s, %.0f %% of that (target: %.0f %%: %s)
  read back     %8.1f MB/s
`, r.Machine, r.Clean, normaliseRate, verdict[r.CleanMet], r.Normalise, r.AllCores, r.Redact, normaliseRate, verdict[r.RedactMet], r.Bare, r.Rows, r.Write, 100*r.Share, 100*writeShare, verdict[r.ShareMet], r.ReadBack)
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 1, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nsteps\tepisodes\tMB text\tMB files\tfiles\tseconds\trows/s\tMB/s\tpeak MB\t\n")
	for _, m := range r.Publishes {
		fmt.Fprintf(w, "%d\t%d\t%.0f\t%.0f\t%d\t%.1f\t%.0f\t%.1f\t%.0f\t\n", m.Steps, m.Episodes, float64(m.Text)/1e6, float64(m.Bytes)/1e6, m.Files, m.PublishS, m.Rows, m.MB, float64(m.Peak)/1e6)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	for _, m := range r.Publishes {
		if !m.Met {
			fmt.Fprintf(s.Stdout, "missed: publishing %d steps took more than %d MB of memory\n", m.Steps, publishMemory/1_000_000)
		}
	}
	return nil
}

// bulk is one dataset that is staged and published.
type bulk struct {
	dir    string   // removed after the measurement
	staged [][]byte // encoded episodes
}

// measure stages and publishes a dataset of at least steps steps.
func (b *bulk) measure(ctx context.Context, steps int) (m publishMeasure, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	staging, err := wire.OpenStore(ctx, filepath.Join(b.dir, "run"), noS3)
	if err != nil {
		return m, err
	}
	start := time.Now()
	for m.Steps < int64(steps) {
		staged, err := b.episode(m.Episodes)
		if err != nil {
			return m, err
		}
		body, err := sinks.EncodeStaged(staged)
		if err != nil {
			return m, err
		}
		if err := staging.Create(ctx, sinks.StagedKey(staged.Episode.RunID, staged.Episode.EpisodeID), body); err != nil {
			return m, err
		}
		m.Steps, m.Text, m.Staged = m.Steps+int64(len(staged.Steps)), m.Text+textSize(staged), m.Staged+int64(len(body))
		m.Episodes++
	}
	m.StageS = time.Since(start).Seconds()
	dest, err := wire.OpenStore(ctx, filepath.Join(b.dir, "dataset"), noS3)
	if err != nil {
		return m, err
	}
	m.WholePeak = resetPeak() != nil
	if m.Before, _, err = memory(); err != nil {
		return m, err
	}
	start = time.Now()
	rep, err := publish.Publish(ctx, publish.Config{Staging: []sinks.Store{staging}, Dest: dest, Name: "bench", Producer: cli.Version, Scratch: b.dir})
	if err != nil {
		return m, err
	}
	elapsed := time.Since(start)
	if _, m.Peak, err = memory(); err != nil {
		return m, err
	}
	m.PublishS, m.Rows, m.MB = elapsed.Seconds(), float64(rep.Steps)/elapsed.Seconds(), perSecond(m.Text, elapsed)
	m.Bytes, m.Files, m.Met = rep.Bytes, rep.Files, m.Peak < publishMemory
	return m, nil
}
