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

// Targets of bench parquet (1 MB is 10^6 bytes): the speed of tracesmith's writer
// relative to the bare library's, MB of text made into rows per second, and the peak
// memory of publishing any amount of data.
const (
	writeShare    = 0.8
	normaliseRate = 100
	publishMemory = 1 << 30
)

// The number of different episodes; larger runs repeat them under other ids.
const (
	fewMade  = 4
	mostMade = 128
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

	Rows      int64   `json:"rows"`             // written both ways
	Bytes     int64   `json:"bytes"`            // of their values
	Clean     float64 `json:"rows_mb"`          // texts cleaned, secrets replaced, rows made
	Normalise float64 `json:"normalise_mb"`     // prompts rebuilt, metrics and tokens counted with that
	AtOnce    float64 `json:"normalise_all_mb"` // the same, as many episodes at once as there are cores
	Redact    float64 `json:"redact_mb"`        // texts only searched for secrets
	Bare      float64 `json:"bare_mb"`          // the library alone
	Write     float64 `json:"write_mb"`         // with hashes, sizes, one sync
	ReadBack  float64 `json:"read_back_mb"`     // the independent reader, comparing every value
	Share     float64 `json:"share"`            // Write / Bare
	ShareMet  bool    `json:"share_met"`
	CleanMet  bool    `json:"rows_met"`
	RedactMet bool    `json:"redact_met"`

	Publishes []publishMeasure `json:"publishes"`
}

// publishMeasure is one dataset.
type publishMeasure struct {
	Steps    int64   `json:"steps"`
	Episodes int     `json:"episodes"`
	Text     int64   `json:"text_bytes"`
	Staged   int64   `json:"staged_bytes"`
	Bytes    int64   `json:"bytes"` // of all files
	Files    int     `json:"files"`
	StageS   float64 `json:"stage_s"`
	PublishS float64 `json:"publish_s"`
	Rows     float64 `json:"rows_per_s"`
	MB       float64 `json:"mb_per_s"` // of text
	Before   int64   `json:"rss_before_bytes"`
	Peak     int64   `json:"peak_rss_bytes"`
	Whole    bool    `json:"peak_is_of_the_process"` // the peak could not be reset
	Met      bool    `json:"met"`
}

func benchParquet(ctx context.Context, s *cli.State, dir string, steps []int, seed uint64) (r parquetReport, err error) {
	place, err := os.MkdirTemp(dir, "tracesmith-bench-")
	if err != nil {
		return r, cli.Usage(fmt.Errorf("--dir: %w", err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(place)) }()
	r = parquetReport{Schema: "tracesmith.bench.parquet/1", Machine: thisMachine(), Seed: seed}
	r.Machine.Load[0] = load()
	tell := func(format string, args ...any) {
		if s.TTY {
			fmt.Fprintf(s.Stderr, format+"\n", args...)
		}
	}
	n := min(max(slices.Max(steps)/40, fewMade), mostMade)
	tell("normalising %d episodes", n)
	made, err := r.normalise(ctx, seed, n)
	if err != nil {
		return r, err
	}
	if err := r.normaliseAtOnce(ctx, seed+1, n); err != nil {
		return r, err
	}
	tell("writing rows with and without tracesmith")
	if err := r.write(ctx, place, made); err != nil {
		return r, err
	}
	packed := make([][]byte, len(made))
	for i := range made {
		if packed[i], err = sinks.EncodeStaged(made[i]); err != nil {
			return r, err
		}
	}
	made = nil // frees memory before it is measured
	for i, n := range steps {
		tell("staging and publishing %d steps", n)
		b := bulk{place: filepath.Join(place, fmt.Sprint(i)), made: packed}
		m, err := b.measure(ctx, n)
		if err != nil {
			return r, err
		}
		r.Publishes = append(r.Publishes, m)
	}
	r.Machine.Load[1] = load()
	return r, nil
}

// normalise makes the episodes for all measurements.
func (r *parquetReport) normalise(ctx context.Context, seed uint64, n int) ([]sinks.Staged, error) {
	var made []sinks.Staged
	var rows, took, search time.Duration
	bytes := int64(0)
	if _, err := normalise.Episode(specimen.Episode("bench", seed+2, 0), normalise.Config{}); err != nil { // reads the vocabulary
		return nil, err
	}
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ep := specimen.Episode("bench", seed, i)
		began := time.Now()
		if _, _, err := normalise.Rows(ep, normalise.Config{Producer: cli.Version}); err != nil {
			return nil, err
		}
		rows += time.Since(began)
		began = time.Now()
		staged, err := normalise.Episode(ep, normalise.Config{Producer: cli.Version})
		took += time.Since(began)
		if err != nil {
			return nil, err
		}
		began = time.Now()
		err = redact.NewChecker(nil).Check(ep.Job.EpisodeID, staged)
		search += time.Since(began)
		if err != nil {
			return nil, err
		}
		bytes += textOf(staged)
		made = append(made, staged)
	}
	r.Clean, r.Normalise, r.Redact = perSecond(bytes, rows), perSecond(bytes, took), perSecond(bytes, search)
	r.CleanMet, r.RedactMet = r.Clean >= normaliseRate, r.Redact >= normaliseRate
	return made, nil
}

// normaliseAtOnce normalises other episodes of the same shape on all cores. Tokens of
// these are in no cache.
func (r *parquetReport) normaliseAtOnce(ctx context.Context, seed uint64, n int) error {
	episodes := make([]*schemas.Episode, n)
	for i := range episodes {
		episodes[i] = specimen.Episode("bench", seed, i)
	}
	var bytes atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	began := time.Now()
	for _, ep := range episodes {
		group.Go(func() error {
			staged, err := normalise.Episode(ep, normalise.Config{Producer: cli.Version})
			bytes.Add(textOf(staged))
			return errors.Join(err, ctx.Err())
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.AtOnce = perSecond(bytes.Load(), time.Since(began))
	return nil
}

// textOf returns the size of an episode's texts.
func textOf(s sinks.Staged) (n int64) {
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

// writeRounds is how often rows are written each way; the first time does not count.
const writeRounds = 4

// write writes the same rows both ways, in turn.
func (r *parquetReport) write(ctx context.Context, place string, made []sinks.Staged) error {
	var units [][]schemas.StepRow
	for _, s := range made {
		units = append(units, s.Steps)
	}
	var bare, ours, back []float64
	for i := range writeRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		if err := formats.WriteBare(filepath.Join(place, "bare.parquet"), arrowrec.Steps, units); err != nil {
			return err
		}
		alone := time.Since(began)
		began = time.Now()
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
		took := time.Since(began) - info.ReadBack
		if i == 0 {
			r.Rows, r.Bytes = info.Rows, info.Uncompressed
			continue
		}
		bare, ours, back = append(bare, perSecond(r.Bytes, alone)), append(ours, perSecond(r.Bytes, took)), append(back, perSecond(r.Bytes, info.ReadBack))
	}
	r.Bare, r.Write, r.ReadBack = quantile(bare, 0.5), quantile(ours, 0.5), quantile(back, 0.5)
	r.Share = r.Write / r.Bare
	r.ShareMet = r.Share >= writeShare
	return nil
}

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
`, r.Machine, r.Clean, normaliseRate, verdict[r.CleanMet], r.Normalise, r.AtOnce, r.Redact, normaliseRate, verdict[r.RedactMet], r.Bare, r.Rows, r.Write, 100*r.Share, 100*writeShare, verdict[r.ShareMet], r.ReadBack)
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
	place string
	made  [][]byte // staged episodes

}

func (b *bulk) measure(ctx context.Context, steps int) (m publishMeasure, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(b.place)) }()
	staging, err := wire.OpenStore(ctx, filepath.Join(b.place, "run"), noS3)
	if err != nil {
		return m, err
	}
	began := time.Now()
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
		m.Steps, m.Text, m.Staged = m.Steps+int64(len(staged.Steps)), m.Text+textOf(staged), m.Staged+int64(len(body))
		m.Episodes++
	}
	m.StageS = time.Since(began).Seconds()
	dest, err := wire.OpenStore(ctx, filepath.Join(b.place, "dataset"), noS3)
	if err != nil {
		return m, err
	}
	m.Whole = resetPeak() != nil
	if m.Before, _, err = memory(); err != nil {
		return m, err
	}
	began = time.Now()
	rep, err := publish.Publish(ctx, publish.Config{Staging: []sinks.Store{staging}, Dest: dest, Name: "bench", Producer: cli.Version, Scratch: b.place})
	if err != nil {
		return m, err
	}
	took := time.Since(began)
	if _, m.Peak, err = memory(); err != nil {
		return m, err
	}
	m.PublishS, m.Rows, m.MB = took.Seconds(), float64(rep.Steps)/took.Seconds(), perSecond(m.Text, took)
	m.Bytes, m.Files, m.Met = rep.Bytes, rep.Files, m.Peak < publishMemory
	return m, nil
}
