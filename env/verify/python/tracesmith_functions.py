"""Test functions: wraps them to observe their calls, finds the functions that decorators wrap,
and compares them with the source of their file."""
import ast
import functools

__unittest = True  # as in tracesmith_unittest

# Code flags of generators and coroutines, whose calls return before the code has run.
DEFERRED = 0x20 | 0x80 | 0x100 | 0x200


def plain(method):
    return getattr(method, "__func__", method)


def wrap_test(channel, key, test, function):
    """Wraps a test function so that the ledger learns when it is called and when it has returned."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        channel.tell("begin", key)
        result = function(*args, **kwargs)
        channel.tell("returned", key, test, plain(function))
        return result

    call.of_tracesmith = True
    return call


def wrapped_functions(fn):
    """Returns a test function and the functions that its decorators wrap."""
    out = []
    while fn is not None and fn not in out and len(out) < 20:
        inner = getattr(getattr(fn, "hypothesis", None), "inner_test", None)
        if inner is not None:
            # hypothesis generates an outer function with the name of the test.
            fn = inner
            continue
        fn = getattr(fn, "__func__", fn)
        if hasattr(fn, "__code__"):
            out.append(fn)
        fn = getattr(fn, "__wrapped__", None)
    return out


class Codes(object):
    """The code objects of a test file, compiled with pytest's rewritten assertions and unchanged. The
    latter are compiled only if they are needed, because most test files are rewritten."""

    def __init__(self, file, config):
        self.file, self.config, self.codes, self.remaining = file, config, set(), [True, False]

    def contain(self, code):
        """Returns whether the file has a code object. Returns True if that cannot be found out."""
        while code not in self.codes:
            if not self.remaining:
                return False
            more = code_of_file(self.file, self.config, self.remaining.pop(0))
            if more is None:
                self.contain = lambda _: True
                return True
            self.codes.update(more)
        return True


def code_of_file(file, config, rewritten):
    """Returns all code objects of a test file, compiled either with pytest's rewritten assertions or
    unchanged. Returns None if that is not possible."""
    out = []

    def collect(code):
        for const in code.co_consts:
            if isinstance(const, type(code)):
                out.append(const)
                collect(const)

    try:
        with open(file, "rb") as f:
            source = f.read()
        tree = ast.parse(source, filename=file) if rewritten else source
        if rewritten:
            from _pytest.assertion.rewrite import rewrite_asserts

            try:
                rewrite_asserts(tree, source, file, config)
            except TypeError:  # before pytest 4.5
                return None
        collect(compile(tree, file, "exec", dont_inherit=True))
        return set(out)
    except Exception:
        return None
