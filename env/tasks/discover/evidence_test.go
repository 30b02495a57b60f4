package discover

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tracesmith/tracesmith/env/workspace"
)

// treeOf makes a tree of the files in a text. A line such as "-- name --" begins each file.
func treeOf(t *testing.T, text string) *workspace.Tree {
	t.Helper()
	dir := t.TempDir()
	for _, part := range strings.Split("\n"+strings.TrimSpace(text), "\n-- ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		full := filepath.Join(dir, strings.TrimSuffix(name, " --"))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(body+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := workspace.FromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

var pythons = []Interpreter{{"", "3.11.2", true}, {"/py/3.9", "3.9.18", false}, {"/py/3.12", "3.12.1", false}, {"/py/3.6", "3.6.15", true}}

const pytestFile = "\n-- tests/test_a.py --\nimport pytest\ndef test_a(): pass\n"

func TestFirstPlans(t *testing.T) {
	const trap = "; " + removeCache
	const get = "GET; export UV_SYSTEM_CERTS=1 UV_CACHE_DIR=$VIRTUAL_ENV/.uv"
	for name, c := range map[string]struct{ files, python, want string }{
		"nothing to install":                 {"-- a.py --\n" + pytestFile, "3.11.2", "python3 -m pytest -q"},
		"files that pytest does not collect": {"-- a.py --\n-- tests/test.py --\ndef test_a(): pass\n", "3.11.2", "python3 -m pytest -q tests/test.py"},
		"a setting for names of files":       {"-- a.py --\n-- tox.ini --\n[pytest]\npython_files = test.py\n-- tests/test.py --\ndef test_a(): pass\n", "3.11.2", "python3 -m pytest -q"},
		"src without dependencies": {"-- pyproject.toml --\n[project]\nname = \"a\"\nrequires-python = \">=3.8\"\n-- src/a/__init__.py --\n" + pytestFile, "3.11.2",
			`echo "import sys; sys.path.insert(0, '/testbed/src')" > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/project.pth"; python3 -m pytest -q`},
		"an extra": {"-- pyproject.toml --\n[project]\nname = \"a\"\nrequires-python = \">=3.8\"\n[project.optional-dependencies]\ndocs = [\"sphinx\"]\ntest = [\"attrs\"]\n" + pytestFile,
			"3.12.1", get + trap + "; uv pip install -e '.[test]' pytest; python3 -m pytest -q"},
		"an optional requirement that tests import": {"-- pyproject.toml --\n[project]\nname = \"a\"\n[project.optional-dependencies]\nyaml = [\"pyyaml>=6\"]\ndocs = [\"furry\"]\n" + pytestFile + "import yaml\nimport furrier\n",
			"3.11.2", get + trap + "; uv pip install -e . pytest 'pyyaml>=6'; python3 -m pytest -q"},
		"extension modules": {"-- setup.py --\nsetup(name='a')\n-- a/__init__.py --\n-- a/_speed.c --\n" + pytestFile,
			"3.11.2", get + trap + "; uv pip install -e . pytest; " + keepExtensions + "; python3 -m pytest -q"},
		"groups": {"-- pyproject.toml --\n[project]\nname = \"a\"\n[dependency-groups]\ntests = [{include-group = \"more\"}, \"attrs\"]\nmore = [\"six\"]\n" + pytestFile,
			"3.11.2", get + trap + "; uv pip install -e . --group tests pytest; python3 -m pytest -q"},
		"a group for developers": {"-- pyproject.toml --\n[project]\nname = \"a\"\n[dependency-groups]\ndev = [{include-group = \"more\"}, \"ruff\", \"attrs>=20; python_version < '4'\"]\nmore = [\"six\"]\n" + pytestFile,
			"3.11.2", get + trap + "; uv pip install -e . pytest 'attrs>=20; python_version < '\\''4'\\''' six; python3 -m pytest -q"},
		"settings that need plugins": {"-- pyproject.toml --\n[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = [\"--cov=a\", \"-n\", \"auto\"]\nasyncio_mode = \"auto\"\nrequired_plugins = \"pytest-timeout>=2\"\n" + pytestFile,
			"3.11.2", get + trap + "; uv pip install -e . pytest 'pytest-timeout>=2' pytest-asyncio pytest-cov pytest-xdist; python3 -m pytest -q --no-cov -n 0"},
		"setup.cfg": {"-- setup.cfg --\n[metadata]\nname = a\nclassifiers =\n    Programming Language :: Python :: 3.8\n    Programming Language :: Python :: 3.9\n[options]\ninstall_requires =\n    six\n    # no\n[options.extras_require]\ntesting =\n    attrs\n[tool:pytest]\naddopts = -x\n" + pytestFile,
			"3.9.18", get + trap + "; uv pip install -e '.[testing]' pytest; python3 -m pytest -q --maxfail=0"},
		"setup.py": {"-- setup.py --\nfrom setuptools import setup\nsetup(name='a', version='2.1', use_scm_version=True, python_requires='<3.12', install_requires=['six'],\n  extras_require={'docs': ['sphinx'], 'test': ['attrs']})\n" + pytestFile,
			"3.11.2", get + " SETUPTOOLS_SCM_PRETEND_VERSION=2.1" + trap + "; uv pip install -e '.[test]' pytest; python3 -m pytest -q"},
		"tox": {"-- tox.ini --\n[testenv]\ndeps =\n    pytest>=6\n    py38: old\n    lint: flake8\n    -r{toxinidir}/more.txt\ncommands = pytest\n[testenv:lint]\ndeps = bandit\n-- more.txt --\nsix\n" + pytestFile,
			"3.11.2", get + trap + "; uv pip install -r more.txt 'pytest>=6'; python3 -m pytest -q"},
		"requirements": {"-- requirements.txt --\nsix\n-- requirements-test.txt --\nattrs\n-- docs/requirements.txt --\nsphinx\n" + pytestFile,
			"3.11.2", get + trap + "; uv pip install -r requirements-test.txt -r requirements.txt pytest; python3 -m pytest -q"},
		"poetry": {"-- pyproject.toml --\n[tool.poetry]\nname = \"a\"\nversion = \"1\"\n[tool.poetry.dependencies]\npython = \"^3.12\"\n[tool.poetry.group.test.dependencies]\npytest-mock = \"^3\"\n" + pytestFile,
			"3.12.1", get + trap + "; uv pip install -e . pytest pytest-mock; python3 -m pytest -q"},
		"nox": {"-- noxfile.py --\nimport nox\n@nox.session\ndef tests(session):\n    session.install('-e', '.', 'attrs', '-r', 'r.txt')\n    session.run('pytest')\n@nox.session\ndef lint(session):\n    session.install('flake8')\n-- r.txt --\n" + pytestFile,
			"3.11.2", get + trap + "; uv pip install -r r.txt pytest attrs; python3 -m pytest -q"},
		"CI": {"-- .github/workflows/ci.yml --\njobs:\n  test:\n    steps:\n      - run: |\n          pip install -U pip attrs\n          pip install -e '.[x]'\n          pytest\n" + pytestFile,
			"3.11.2", get + trap + "; uv pip install pytest attrs; python3 -m pytest -q"},
		"unittest": {"-- a.py --\n-- tests/__init__.py --\n-- tests/test_a.py --\nimport unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n",
			"3.11.2", "python3 -m unittest discover -s tests -t ."},
	} {
		e := gather(treeOf(t, c.files))
		plans, err := e.plans(pythons)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p := plans[0]
		got := strings.ReplaceAll(strings.Join(append(p.setup(e, time.Time{}), p.entrypoint()), "; "), getUV, "GET")
		if p.python.Version != c.python || got != c.want {
			t.Errorf("%s: with %s\n%s, want with %s\n%s\n%v", name, p.python.Version, got, c.python, c.want, e.facts)
		}
	}
}

func TestInterpreters(t *testing.T) {
	for name, c := range map[string]struct{ files, want string }{
		"newest that is named":    {"-- setup.py --\nsetup(classifiers=['Programming Language :: Python :: 3.9', 'Programming Language :: Python :: 3.8'])", "3.9.18 3.11.2 3.12.1"},
		"limit":                   {"-- setup.py --\nsetup(python_requires='>=3.9,!=3.12.*')", "3.11.2 3.9.18"},
		"system without evidence": {"-- a.py --", "3.11.2 3.12.1 3.9.18"},
		"none":                    {"-- setup.cfg --\n[options]\npython_requires = >=3.14", "needs Python >=3.14 (setup.cfg: options.python_requires); installed: 3.11.2 (/usr/bin/python3), 3.9.18 (/py/3.9)"},
	} {
		list, err := gather(treeOf(t, c.files)).interpreters(pythons)
		var versions []string
		for _, p := range list {
			versions = append(versions, p.Version)
		}
		got := strings.Join(versions, " ")
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestRequirementNames(t *testing.T) {
	for text, want := range map[string]string{
		"A_b.c": "a-b-c", "a[x, y]>=1": "a", "a>=1,<2 ; python_version < '3'": "a", "a @ https://x/y.zip": "a", "a (>=1)": "a",
		"-e": "", ".": "", "./a": "", "{posargs}": "", "https://x": "", "--x": "", "": "", "a b": "",
	} {
		if got := distribution(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestGeneratedVersionFile(t *testing.T) {
	tree := treeOf(t, "-- pyproject.toml --\n[project]\nname = \"a\"\n[tool.setuptools_scm]\nversion_file = \"src/a/_version.py\"\n-- src/a/__init__.py --\n"+pytestFile)
	e := gather(tree)
	e.version = "1.2rc1"
	out, added, err := e.addVersionFile(tree)
	if err != nil || !slices.Equal(added, []string{"src/a/_version.py"}) {
		t.Fatal(added, err)
	}
	text, _, _, err := out.File("src/a/_version.py")
	want := "__version__ = version = \"1.2rc1\"\n__version_tuple__ = version_tuple = (1, \"2rc1\",)\n"
	if err != nil || string(text) != want {
		t.Errorf("%q, want %q, %v", text, want, err)
	}
}

func TestPythonVersionsOfPoetry(t *testing.T) {
	for poetry, want := range map[string]string{
		"^3.8": ">=3.8,<4", "^2.7": ">=2.7,<3", "^3.8 , !=3.9.1": ">=3.8,<4,!=3.9.1", "~3.9": "==3.9.*", "~=3.9": "~=3.9", ">=3.7": ">=3.7",
	} {
		if got := poetryToPEP440(poetry); got != want {
			t.Errorf("%s: %s, want %s", poetry, got, want)
		}
	}
}

func TestRequirementsOfSetupCfg(t *testing.T) {
	for value, want := range map[string][]string{
		"":                                  nil,
		"attrs":                             {"attrs"},
		"attrs; six>=1 ;":                   {"attrs", "six>=1"},
		`attrs; python_version < "3.8"`:     {`attrs; python_version < "3.8"`},
		`attrs ; (sys_platform == "win32")`: {`attrs ; (sys_platform == "win32")`},
		"\nattrs\nsix; extra == 'a'\n":      {"attrs", "six; extra == 'a'"},
	} {
		if diff := cmp.Diff(want, requirementsIn(value), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q: %s", value, diff)
		}
	}
}
