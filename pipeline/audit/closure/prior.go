package closure

import (
	_ "embed" // for stdlib
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/llms/tokens"
)

// prior holds what every agent knows before the task: Python's keywords, builtins, methods of its
// types and modules, and the words of the debugger, of shells and of test runners.
var prior = wordSet(keywords + builtins + methods + modules + debuggerWords + shellWords + technical)

// standard holds Python's modules, whose members are known.
var standard = wordSet(modules)

func wordSet(text string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		m[w] = true
	}
	return m
}

const (
	keywords = ` and as assert async await break class continue def del elif else except finally for from global if import in is
		lambda nonlocal not or pass raise return try while with yield match case type None True False self cls `
	builtins = ` abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex
		delattr dict dir divmod enumerate eval exec filter float format frozenset getattr globals hasattr hash help hex id input
		int isinstance issubclass iter len list locals map max memoryview min next object oct open ord pow print property range
		repr reversed round set setattr slice sorted staticmethod str sum super tuple vars zip Ellipsis NotImplemented
		BaseException Exception ArithmeticError AssertionError AttributeError BlockingIOError BrokenPipeError BufferError
		ChildProcessError ConnectionError EOFError FileExistsError FileNotFoundError FloatingPointError GeneratorExit ImportError
		IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError
		ModuleNotFoundError NameError NotADirectoryError NotImplementedError OSError OverflowError PermissionError
		ProcessLookupError RecursionError ReferenceError RuntimeError StopAsyncIteration StopIteration SyntaxError SystemError
		SystemExit TabError TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError
		ValueError ZeroDivisionError Warning DeprecationWarning FutureWarning RuntimeWarning UserWarning NoneType
		__init__ __repr__ __str__ __eq__ __hash__ __len__ __iter__ __next__ __dict__ __class__ __name__ __doc__ __file__ __main__
		__import__ __builtins__ __all__ __annotations__ __bases__ __call__ __contains__ __enter__ __exit__ __getattr__
		__getitem__ __setitem__ __module__ __mro__ __new__ __slots__ __version__ __code__ __defaults__ __closure__ __wrapped__
		__post_init__ __qualname__ __traceback__ __cause__ __context__ f_back f_locals f_globals f_lineno f_code f_lasti f_trace tb_frame
		tb_lineno tb_next co_code co_filename co_firstlineno co_name co_names co_varnames `
	methods = ` add append capitalize casefold center clear copy count decode difference discard encode endswith extend find
		format_map fromkeys get index insert intersection isalnum isalpha isdecimal isdigit isidentifier islower isnumeric
		isspace istitle isupper items join keys ljust lower lstrip partition pop popitem read readline readlines remove
		removeprefix removesuffix replace reverse rfind rindex rjust rpartition rsplit rstrip seek setdefault sort split splitlines
		startswith strip swapcase symmetric_difference title translate union update upper values write writelines zfill args kwargs
		group groups groupdict getvalue total_seconds isoformat strftime strptime hexdigest read_text write_text
		NaN nan inf xmlcharrefreplace backslashreplace namereplace surrogateescape pyi pyo
		close fromhex is_integer as_integer_ratio real imag fget fset start stop step `
	modules = ` abc argparse array ast asyncio atexit base64 bisect builtins calendar cmath codecs collections concurrent configparser
		contextlib contextvars copyreg csv ctypes dataclasses datetime decimal difflib dis email enum errno faulthandler fnmatch
		fractions functools gc getpass gettext glob graphlib gzip hashlib heapq hmac html http importlib inspect io ipaddress
		itertools json keyword linecache locale logging lzma math mimetypes multiprocessing numbers operator os pathlib pdb pickle
		pkgutil platform pprint queue random re sched secrets shlex shutil signal site socket sqlite3 stat statistics string
		struct subprocess symtable sys sysconfig tempfile textwrap threading time timeit tokenize tomllib traceback tracemalloc
		types typing unicodedata unittest urllib uuid venv warnings weakref xml zipfile zlib zoneinfo pytest py test tests
		TestCase setUp tearDown conftest numpy np pandas pd `
	debuggerWords = ` a alias args b bt break c cl clear commands condition cont d debug disable display down enable EOF exit h
		ignore interact j jump l ll longlist n p pp q quit r restart run rv retval s source tbreak u unalias undisplay unt until up w
		whatis where Pdb breakpoint breakpoints stdin stdout stderr _ e exc ex err i k v x y `
	shellWords = ` awk basename bash cat cd chmod cp cut date diff dirname echo egrep env exit export find grep git head kill less
		ls make mkdir mv nl patch pip pip3 ps pwd python python2 python3 rg rm rmdir sed seq sh sleep sort stash tail tee time
		timeout touch tr tree true uniq wc which xargs xxd null dev tmp home usr root etc opt log status show checkout restore
		apply blame add commit name maxdepth iname type exec print verbose quiet short tb long no_header cov PYTHONPATH PYTHONHASHSEED PYTEST_ADDOPTS HEAD EOF
		include exclude color recursive `
	technical = ` str_replace undo_edit str_replace_editor file_editor execute_bash utf8 sha256 sha1 md5 base64 json JSON API APIs CLI HTTP HTTPS URL URLs HTML XML CSV YAML SQL ASCII UTF UTC ISO
		__pycache__ pyc PostgreSQL MySQL SQLite JavaScript TypeScript macOS GitHub PyPI NumPy CPython PEP8 i18n x86 py3 dunder README TODO FIXME OK ID IDs `
)

// publicFiles are names of files that have a meaning in every project.
var publicFiles = map[string]bool{
	"__init__.py": true, "__main__.py": true, "conftest.py": true, "setup.py": true, "setup.cfg": true, "pyproject.toml": true, "pytest.ini": true,
	"tox.ini": true, "requirements.txt": true, "README.md": true, "sitecustomize.py": true, "_test.py": true,
}

// stdlib has names of the most common modules of Python 3.11. If the repository has such a name, it is not public.
//
//go:embed stdlib.txt
var stdlib string

var stdlibNames = sync.OnceValue(func() map[string]bool { return wordSet(stdlib) })

// placeholders are the beginnings of names that stand for any name.
var placeholders = []string{"some_", "my_", "myapp", "mymodel", "your_", "foo", "bar_", "dummy", "example", "something", "My", "Foo", "Some", "Dummy", "ClassName"}

// isPublic reports whether a name has a meaning in every project, or is a placeholder.
func isPublic(w string) bool {
	if strings.HasPrefix(w, "__") && strings.HasSuffix(w, "__") || stdlibNames()[w] {
		return true
	}
	for _, p := range placeholders {
		if strings.HasPrefix(w, p) {
			return true
		}
	}
	return false
}

// isCommon reports whether a word is so common that it is one token of a model's vocabulary. For words
// in a sentence, this is what tells English from names.
func isCommon(word string) bool {
	word = strings.ToLower(word)
	return len(word) < 3 || vocabulary().Text(" "+word) == 1
}

var vocabulary = sync.OnceValue(func() *tokens.Counter { return tokens.For("") })
