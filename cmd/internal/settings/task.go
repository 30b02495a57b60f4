package settings

import (
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// TaskFields describes the fields of a task.yaml. The default is Markdown; "required" means that there
// is none.
var TaskFields = []TaskField{
	{"instance_id", "text", "the name of the directory", "Name of the task: up to 128 letters, digits or `. _ + -`. It begins with a letter or digit."},
	{"instructions", "text", "required", "The description of the bug that the agent gets."},
	{"entrypoint", "text", "required", "Shell command that runs the tests. Only a task with `tests.method: none` may leave it out."},
	{"debug_entrypoint", "text", "`entrypoint`", "The command that the debugger runs."},
	{"setup", "list of text", "", "Commands that run once with network access. Their result is cached. `pip` must be installed."},
	{"hide", "list of text", "", "Directories below the interpreter's module path that sandboxes show empty, such as libraries that contain the fix."},
	{"python", "text", "the system's", "Interpreter of the host, for bubblewrap."},
	{"image", "text", "", "Container image. A task with an image runs on Docker unless `sandbox.kind` says otherwise."},
	{"workdir", "text", "`/testbed`", "Absolute path of the repository in the sandbox."},
	{"repo", "text", "source/instance", "Upstream repository. All tasks of one repository are in the same split."},
	{"base_commit", "text", "", "Commit that the task starts from."},
	{"license", "text", "found in the repository", "SPDX id of the license."},
	{"bug_kind", "text", "", "The origin of the bug, such as `real` or `mutation`."},
	{"created_at", "date", "", "Date of the issue or of the change."},
	{"tests.method", "text", "by `entrypoint`", "How a patch is judged: `pytest`, `unittest`, `exit_code` (the command must exit with 0), or `none`."},
	{"tests.fail_to_pass", "list of text", "found by running", "Tests that fail before a fix and must pass after it."},
	{"tests.pass_to_pass", "list of text", "found by running", "Tests that pass before a fix and must still pass."},
	{"tests.files", "list of text", "", "Globs of further files to restore before grading. [Verdicts](verdicts.md) says which files are always restored."},
	{"tests.command", "text", "`entrypoint`", "The command that runs for the verdict."},
}

// TaskField is one field of a task.yaml.
type TaskField struct{ Key, Type, Default, Meaning string }

// markdownLink matches a link, whose text is its first group.
var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// TaskSchema returns the JSON Schema of a task.yaml.
func TaskSchema() *jsonschema.Schema {
	root := &jsonschema.Schema{Schema: draft, Title: "tracesmith task", Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: nothing()}
	for _, f := range TaskFields {
		s, key := root, f.Key
		if section, inner, nested := strings.Cut(f.Key, "."); nested {
			if s.Properties[section] == nil {
				s.Properties[section] = &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: nothing()}
				s.PropertyOrder = append(s.PropertyOrder, section)
			}
			s, key = s.Properties[section], inner
		}
		property := &jsonschema.Schema{Type: "string"}
		switch {
		case f.Type == "list of text":
			property = &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}}
		case f.Key == "tests.method":
			property.Enum = []any{"pytest", "unittest", "exit_code", "none"}
		}
		property.Description = strings.ReplaceAll(markdownLink.ReplaceAllString(f.Meaning, "$1"), "`", "")
		if f.Key == "instructions" { // only a task that is not verified needs no entrypoint
			s.Required = append(s.Required, key)
		}
		s.Properties[key] = property
		s.PropertyOrder = append(s.PropertyOrder, key)
	}
	return root
}
