package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline/redact"
)

// signalErrors maps each signal that stops a command to the cause with which it cancels the
// command's context.
var signalErrors = map[os.Signal]*Error{
	syscall.SIGINT:  {Code: ExitInt, Err: errors.New("interrupted")},
	syscall.SIGTERM: {Code: ExitTerm, Err: errors.New("terminated")},
	syscall.SIGHUP:  {Code: ExitHangup, Err: errors.New("the terminal was closed")},
}

// StoppingAnnotation is the key of a command's annotation that describes what the command does
// between the first signal and its exit, such as "closing sandboxes".
const StoppingAnnotation = "stopping"

// Resumable returns the error of a command that continues where it stopped. If a signal
// stopped it, the error gets the hint to repeat the command.
func Resumable(ctx context.Context, err error) error {
	if stopped, ok := errors.AsType[*Error](context.Cause(ctx)); ok && err != nil && err.Error() != "" {
		return &Error{Code: stopped.Code, Try: "the same command again: it continues where it stopped", Err: stopped}
	}
	return err
}

// Main runs one command line of the program whose root command newRoot returns, and
// returns the exit code.
func Main(ctx context.Context, s *State, newRoot func(*State) *cobra.Command) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	signalsDone := make(chan struct{})
	root := newRoot(s)
	root.SetArgs(s.Args)
	stopping := "closing sandboxes"
	var usageErr error
	if c, rest, err := root.Find(s.Args); err == nil {
		stopping = cmp.Or(c.Annotations[StoppingAnnotation], stopping)
		usageErr = checkTopic(c, rest)
	}
	go func() {
		defer close(signalsDone)
		watchSignals(s, stopping, cancel, done)
	}()
	err := usageErr
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	close(done)
	<-signalsDone
	cliErr, ok := errors.AsType[*Error](err)
	if cause := context.Cause(ctx); err != nil && cause != nil && CodeOf(err) != CodeOf(cause) && !(ok && cliErr.OverridesSignal) {
		err = cause
	}
	if err != nil && err.Error() != "" {
		fmt.Fprint(s.Stderr, redact.New(redact.NewKnown(redact.Environment(s.Environ))).Text(Describe(err)))
	}
	return CodeOf(err)
}

// watchSignals cancels the command at the first signal, and ends the process at the second
// one, for a user who does not want to wait for the clean-up. If the command can drain its
// work, the first signal starts that, and the second and third ones do the above.
func watchSignals(s *State, stopping string, cancel context.CancelCauseFunc, done <-chan struct{}) {
	count := 0
	head := "stopping: "
	for {
		select {
		case <-done:
			return
		case sig := <-s.Interrupts:
			if sig == syscall.SIGINT && s.paging.Load() {
				continue
			}
			cause := signalErrors[sig]
			if text, ok := s.startDrain(sig); ok {
				fmt.Fprintf(s.Stderr, "stopping: %s (interrupt again to cancel them)\n", text)
				head = "canceling running episodes: "
				continue
			}
			if count++; count > 1 {
				s.runExitHook()
				os.Exit(cause.Code)
			}
			fmt.Fprintf(s.Stderr, "%s%s (interrupt again to stop at once)\n", head, stopping)
			cancel(cause)
		}
	}
}

// Tracesmith returns the root command of tracesmith.
func Tracesmith(s *State) *cobra.Command {
	root := &cobra.Command{
		Use:   "tracesmith",
		Short: "Turn buggy Python repositories into verified debugging trajectories",
		Long: "tracesmith runs debugging agents on buggy Python programs in sandboxes with a\n" +
			"real debugger, grades their patches in fresh sandboxes, and publishes every\n" +
			"step as Parquet.\n\n" +
			"Start with:  tracesmith run -c quickstart",
		Args: knownCommand, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceUsage: true, SilenceErrors: true,
		SuggestionsMinimumDistance: 2,
	}
	addVersion(root)
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		text := err.Error()
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			flag := bad.GetFlag()
			text = fmt.Sprintf("--%s %s: want %s", flag.Name, bad.GetValue(), cmp.Or(flagTypes[flag.Value.Type()], flag.Value.Type()))
		}
		return &Error{Code: ExitUsage, Try: c.CommandPath() + " --help", Err: errors.New(text + suggestFlag(c, text))}
	})
	root.AddGroup(&cobra.Group{ID: "make", Title: "Make data:"}, &cobra.Group{ID: "read", Title: "Read data:"}, &cobra.Group{ID: "tool", Title: "Tools:"})
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("make", newMake(s), NewRun(s), NewWorker(s), newPublish(s), newExport(s), newImport(s))
	add("read", newStatus(s), newShow(s), newView(s), newStats(s), newCompare(s), newVerify(s), newTasks(s))
	add("tool", newConfig(s), newDoctor(s), newEnv(s), newModels(s), newMock(s), newRecord(s), newGC(s), newVersion(s))
	add("make", newFilter(s))
	root.SetCompletionCommandGroupID("tool")
	root.SetUsageFunc(usage)
	root.SetHelpCommand(newHelp())
	root.AddCommand(newTopics()...)
	return root
}

// RangeArgs accepts min to max arguments, or at least min if max is negative. Unlike cobra's
// check, its error has ExitUsage and a usage line.
func RangeArgs(min, max int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= min && (max < 0 || len(args) <= max) {
			return nil
		}
		name := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
		return &Error{Code: ExitUsage, Try: c.CommandPath() + " --help", Err: fmt.Errorf("%s takes %s, got %d: %s", name, argCount(min, max), len(args), c.UseLine())}
	}
}

// Group returns a command that only has subcommands.
func Group(use, short string, cmds ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: knownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(cmds...)
	return c
}

// knownCommand refuses arguments of a command that only has subcommands.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("unknown command %q", strings.TrimPrefix(c.CommandPath()+" "+args[0], c.Root().Name()+" "))
	if suggestion := c.SuggestionsFor(args[0]); len(suggestion) > 0 {
		message += fmt.Sprintf(": did you mean %q?", strings.TrimPrefix(c.CommandPath()+" "+suggestion[0], c.Root().Name()+" "))
	}
	return &Error{Code: ExitUsage, Try: c.CommandPath() + " --help", Err: errors.New(message)}
}

// argCount describes how many arguments a command takes.
func argCount(min, max int) string {
	switch {
	case max < 0 && min == 1:
		return "at least 1 argument"
	case max < 0:
		return fmt.Sprintf("at least %d arguments", min)
	case max == 0:
		return "no arguments"
	case min == max && min == 1:
		return "1 argument"
	case min == max:
		return fmt.Sprintf("%d arguments", min)
	}
	return fmt.Sprintf("%d to %d arguments", min, max)
}

// ConfigFlags are the flags of every command that reads a configuration.
type ConfigFlags struct {
	files     []string
	overrides []string
	Sandbox   string                 // short for sandbox.kind, if set
	settings  map[string]*pflag.Flag // further flags that stand for a setting, by its key
}

// stand makes the flag of c stand for a setting.
func (f *ConfigFlags) stand(c *cobra.Command, flag, key string) {
	if f.settings == nil {
		f.settings = map[string]*pflag.Flag{}
	}
	f.settings[key] = c.Flags().Lookup(flag)
}

// Add defines --config and --set.
func (f *ConfigFlags) Add(c *cobra.Command) {
	c.Flags().StringArrayVarP(&f.files, "config", "c", nil, "configuration file or profile ("+strings.Join(configs.Profiles(), ", ")+"); may be repeated, later ones win")
	c.Flags().StringArrayVarP(&f.overrides, "set", "p", nil, "set one setting: section.key=value; may be repeated")
	Must(c.RegisterFlagCompletionFunc("config", orFile(configs.Profiles()...)))
	Must(c.RegisterFlagCompletionFunc("set", f.override()))
}

// AddSandbox defines --sandbox. byDefault is appended to the description of the flag and
// says what an empty sandbox.kind means; it may be "".
func (f *ConfigFlags) AddSandbox(c *cobra.Command, byDefault string) {
	c.Flags().StringVar(&f.Sandbox, "sandbox", "", "sandbox kind: "+strings.Join(env.Drivers.Kinds(), ", ")+byDefault)
	Must(c.RegisterFlagCompletionFunc("sandbox", OneOf(env.Drivers.Kinds()...)))
	f.stand(c, "sandbox", "sandbox.kind")
}

// Load reads the configuration that the flags and the environment name.
func (f *ConfigFlags) Load(s *State) (configs.Config, error) {
	in := configs.Input{Environ: s.Environ, Overrides: f.overrides}
	for _, key := range slices.Sorted(maps.Keys(f.settings)) {
		flag := f.settings[key]
		if !flag.Changed {
			continue
		}
		value := flag.Value.String()
		if flag.Value.Type() == "string" {
			value = strconv.Quote(value) // it is a string in YAML, too
		}
		in.Flags = append(in.Flags, configs.Source{Name: "--" + flag.Name, Data: []byte(key + "=" + value)})
	}
	for _, name := range f.files {
		src, err := configs.ReadSource(name)
		if err != nil {
			return configs.Config{}, Usage(err)
		}
		in.Sources = append(in.Sources, src)
	}
	cfg, err := configs.Load(in)
	if err != nil {
		return cfg, Usage(err)
	}
	if s.Stderr != nil {
		for _, note := range cfg.RenameNotes {
			fmt.Fprintln(s.Stderr, "warning: "+note)
		}
	}
	return cfg, nil
}
