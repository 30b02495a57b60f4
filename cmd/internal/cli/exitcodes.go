package cli

// exitCodes explains every exit code, for "tracesmith help exit-codes" and for
// docs/reference/exit-codes.md. Meanings are Markdown.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{ExitOK, "The command finished; every task of a `run` has an outcome, solved or not."},
	{ExitFailure, "An unexpected failure, which is a bug in tracesmith. `mock --strict` also exits with 1 if clients made mistakes."},
	{ExitUsage, "A wrong argument or setting, a directory that cannot be used, a full disk, or damaged data. `show` and `stats` exit with 3 if they can read some of it."},
	{ExitIncomplete, "The command finished with gaps: infrastructure errors or missing tasks, leftovers that `gc` could not remove, images that `tasks prepull` could not pull, damaged files that `show` and `stats` left out."},
	{ExitAuth, "Credentials are missing or were refused."},
	{ExitBudget, "A budget stopped the command; it resumes if you raise the budget and repeat it."},
	{ExitCheckFailed, "A check failed: a task of `tasks verify` is not sound, `verify` found objects that are damaged, missing or surplus, or a condition of `run --fail-on` holds."},
	{ExitPreflight, "A model server, a sandbox or a NATS cluster cannot be used, or a check of `doctor` or `run --dry-run` failed (for other reasons than credentials). If the first check finds this, nothing was billed; if it happens later, the run resumes when you repeat the command."},
	{ExitStorage, "Remote storage failed; local data is complete."},
	{ExitLocked, "Another live process uses the run directory or the output file."},
	{ExitHangup, "The terminal was closed (SIGHUP)."},
	{ExitInt, "You interrupted the command (SIGINT). The first Ctrl-C lets the episodes of a `run` finish, the second one cancels them."},
	{ExitPipe, "The program that read the output closed the pipe (SIGPIPE)."},
	{ExitTerm, "The command was terminated (SIGTERM)."},
}

// resumingCodes is printed after the table of exitCodes.
const resumingCodes = "After 5, 7, 129, 130 or 143, repeat the same `run` or `publish`: it continues where it stopped.\n" +
	"After 3, add `--retry infra` to run the jobs again that failed because of the infrastructure."
