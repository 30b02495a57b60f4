"""Formats names and values for the records of the probe. newProbe joins this file with probe.py."""
import collections
import hashlib
import io
import itertools
import operator
import types


class Names(object):
    """Finds the qualified names of code objects. Code objects have none before Python 3.11, so
    Names compiles the source again and looks for a function with the same name and line."""

    def __init__(self):
        self.cache, self.files = {}, {}

    def qualified(self, code):
        name = self.cache.get(code)
        if name is None:
            name = getattr(code, "co_qualname", None) or self.find(code)
            self.cache[code] = name
        return name

    def find(self, code):
        if code.co_filename not in self.files:
            places = self.files[code.co_filename] = {}
            try:
                with open(code.co_filename, "rb") as f:
                    self.collect(compile(f.read(), code.co_filename, "exec", dont_inherit=True), "", places)
            except (OSError, SyntaxError, ValueError):
                pass
        return self.files[code.co_filename].get((code.co_name, code.co_firstlineno), code.co_name)

    def collect(self, outer, prefix, places):
        for const in outer.co_consts:
            if hasattr(const, "co_consts"):
                name = prefix + const.co_name
                places[const.co_name, const.co_firstlineno] = name
                function = const.co_flags & 2  # CO_NEWLOCALS, which a class body does not have
                optimized = const.co_flags & 1
                self.collect(const, name + (".<locals>." if function and optimized else "."), places)


def typename(cls):
    module, name = type.__getattribute__(cls, "__module__"), type.__getattribute__(cls, "__qualname__")
    return name if module == "builtins" else "%s.%s" % (module, name)


def instance_dict(value):
    """Returns the __dict__ of an instance, or None."""
    try:
        d = object.__getattribute__(value, "__dict__")
    except Exception:
        return None
    return d if type(d) is dict else None


vars_of = type.__dict__["__dict__"].__get__  # the attributes of a class, whatever its metaclass


SLOTS = {}  # id of a class -> the class, and the names and descriptors of its slots


def slots(value):
    """Returns the attributes of an instance that are stored in slots, but no __vectorcalloffset__ and the like, which are
    addresses."""
    cls, out = type(value), []
    known = SLOTS.get(id(cls))
    if known is None:  # keep the class, so that no other one gets its id
        known = SLOTS[id(cls)] = (cls, [
            item for c in type.__getattribute__(cls, "__mro__") if type.__getattribute__(c, "__module__") != "builtins"
            for item in list(vars_of(c).items()) if type(item[1]) is MemberDescriptor and item[0][:2] != "__"])
    for name, slot in known[1]:
        try:
            out.append((name, slot.__get__(value)))
        except AttributeError:  # not set yet
            pass
    return out


MemberDescriptor = type(type("", (), {"__slots__": ("x",)}).x)
# Types whose repr calls no code of the program, by module.
PRINTABLE = {"decimal": ("Decimal",), "datetime": ("date", "timedelta"), "re": ("Pattern",)}


# Objects of the test runners, by module. Their state tells what earlier tests did.
RUNNERS = ("unittest.case", "unittest.result", "_pytest.config", "_pytest.fixtures", "_pytest.main", "_pytest.nodes", "_pytest.python",
           "_pytest.runner", "_pytest.unittest")


# Addresses of a small and of a large object. Programs use id() as a key. The two runs of one version have equal
# addresses, because one is a fork of the other, so comparing them does not mask such numbers. Addresses below 1 << 32, which
# large objects of some builds have, look like other numbers.
ADDRESSES = [address for address in (id(object()), id(type("", (), {}))) if address >> 32]


def is_address(number):
    """Reports whether an integer is close to the addresses of objects."""
    return number >> 32 > 0 and any(abs(number - address) >> 36 == 0 for address in ADDRESSES)


CONTAINERS = (list, tuple, set, frozenset, dict, collections.deque)
# Iterators whose __reduce__ returns their state, and neither advances them nor calls code of the program.
ITERATORS = frozenset([type(iter(v)) for v in ([], (), {}, {}.values(), {}.items(), set(), b"", range(0))] +
                      [type(iter("")), type(reversed([])), enumerate, zip, map, filter])
BUFFERS = {io.StringIO: io.StringIO.getvalue, io.BytesIO: io.BytesIO.getvalue}


class Formatter(object):
    """Formats values as text of bounded length. Formatting takes most of the time of a trace, so
    it keeps the texts of containers whose items never change their texts."""

    NODES, ITEMS, DEPTH, TEXT = 200, 50, 3, 160
    LEAVES = frozenset([type(None), bool, int, float, complex, str, bytes, type, types.FunctionType,
                        types.BuiltinFunctionType, types.ModuleType])
    PLAIN = frozenset([list, tuple, dict, set, frozenset])

    def __init__(self):
        # id of a container -> its type, size, first items, first values of a dict, text, and how much of
        # remaining the text took
        self.known = {}
        self.count = 0  # values formatted since a caller has reset it

    def text(self, value):
        self.remaining = self.NODES
        try:
            text = self.value(value, self.DEPTH)
        except Exception as error:  # a structure that changes while it is read
            text = "<%s>" % type(error).__name__
        self.count += self.NODES - self.remaining
        if len(text) > self.TEXT:
            text = text[:self.TEXT] + "#" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        return text

    def value(self, v, depth):
        self.remaining -= 1
        if self.remaining < 0:
            return "..."
        cls = type(v)
        if (cls is str or cls is bytes) and len(v) <= 2000:
            return repr(v)
        if v is None or cls in (bool, float, complex):
            return repr(v)
        if cls is int and is_address(v):
            return "<address>"
        if cls is int:
            return repr(v) if v.bit_length() < 1000 else "int of %d bits, %d" % (v.bit_length(), v % 1000003)
        if cls is dict or cls is list or cls is tuple:
            return self.items(v, cls, cls, depth)
        for base in (str, bytes, bytearray):
            if issubclass(cls, base):
                size = base.__len__(v)
                text = base.__repr__(base.__getitem__(v, slice(0, 2000))) + (" of %d" % size if size > 2000 else "")
                return text if cls is base else text + self.attributes(v, depth)
        for base in CONTAINERS:
            if issubclass(cls, base):
                return self.items(v, cls, base, depth) + ("" if cls is base else self.attributes(v, depth))
        if issubclass(cls, type):
            return "class " + typename(v)
        if cls in ITERATORS:
            return self.iterator(v, cls, depth)
        if cls in BUFFERS:
            return "%s(%s)" % (typename(cls), self.value(BUFFERS[cls](v), depth) if not v.closed else "closed")
        if cls is types.FunctionType and v.__dict__ and depth:
            return "function " + v.__qualname__ + self.attributes(v, depth)
        if cls.__module__ == "builtins":  # functions, modules, iterators, ranges
            if cls is range or cls is slice:
                return repr(v)
            name = getattr(v, "__qualname__", None) or getattr(v, "__name__", None)
            if type(name) is str or not issubclass(cls, BaseException):
                return "%s %s" % (cls.__name__, name if type(name) is str else "")
        if cls.__name__ in PRINTABLE.get(cls.__module__, ()):
            return repr(v)
        if cls.__module__ == "datetime" and cls.__name__ in ("datetime", "time"):
            return repr(v.replace(tzinfo=None)) + ("" if v.tzinfo is None else " " + typename(type(v.tzinfo)))
        if depth == 0 or cls.__module__ in RUNNERS:
            return typename(cls)
        items = list((instance_dict(v) or {}).items())[:self.ITEMS] + slots(v)
        parts = ["%s=%s" % (k, self.value(x, depth - 1)) for k, x in items if type(k) is str]
        if issubclass(cls, BaseException):
            parts[:0] = [self.value(x, depth - 1) for x in BaseException.args.__get__(v)]
        return "%s(%s)" % (typename(cls), ", ".join(parts)) if parts else typename(cls)

    def attributes(self, v, depth):
        """Returns the text of the attributes of a value, which follows the text of its content."""
        if depth == 0:
            return ""
        items = list((instance_dict(v) or {}).items())[:self.ITEMS] + slots(v)
        parts = ["%s=%s" % (k, self.value(x, depth - 1)) for k, x in items if type(k) is str and k[:2] != "__"]
        return "(%s)" % ", ".join(parts) if parts else ""

    def iterator(self, v, cls, depth):
        """Returns the text of an iterator: what it iterates over, and its position."""
        if depth == 0 or operator.length_hint(v, 0) > self.NODES:
            return cls.__name__ + " "
        state = cls.__reduce__(v)
        return "%s(%s)" % (cls.__name__, ", ".join([self.value(x, depth - 1) for x in state[1] + state[2:]]))

    def content(self, v):
        """Returns the text of the items of a container, without attributes, or None for another value."""
        for base in CONTAINERS:
            if issubclass(type(v), base):
                self.remaining = self.NODES
                text = self.items(v, type(v), base, self.DEPTH)
                self.count += self.NODES - self.remaining
                return text
        return None

    def items(self, v, cls, base, depth):
        size = base.__len__(v)
        name = "" if cls in self.PLAIN and cls is not frozenset else typename(cls) + " "
        if depth == 0:
            return "%s%s of %d" % (name, base.__name__, size)
        text = self.kept(v, cls, base, size)
        if text is not None:
            return text
        parts, before = [], self.remaining
        each = dict.items(v) if base is dict else base.__iter__(v)
        for x in each:
            if len(parts) == self.ITEMS or self.remaining < 0:
                parts.append("... %d" % size)
                break
            if base is dict:
                parts.append(self.value(x[0], depth - 1) + ": " + self.value(x[1], depth - 1))
            else:
                parts.append(self.value(x, depth - 1))
        if base in (set, frozenset):
            parts.sort()
        left, right = {list: "[]", tuple: "()", collections.deque: "[]"}.get(base, "{}")
        text = name + left + ", ".join(parts) + right
        if size and self.remaining >= 0:
            self.keep(v, cls, base, size, text, before - self.remaining)
        return text

    def kept(self, v, cls, base, size):
        """Returns the text that keep stored for a container. Returns None if keep stored none, or if the first
        items are other objects now."""
        known = self.known.get(id(v))
        if known is None or known[0] is not cls or known[1] != size or self.remaining < known[5]:
            return None
        if not all(map(operator.is_, base.__iter__(v), known[2])) or base is dict and not all(map(operator.is_, dict.values(v), known[3])):
            return None
        self.remaining -= known[5]
        return known[4]

    def keep(self, v, cls, base, size, text, count):
        first = tuple(itertools.islice(base.__iter__(v), self.ITEMS))
        if not self.LEAVES.issuperset(map(type, first)):
            return
        values = tuple(itertools.islice(dict.values(v), self.ITEMS)) if base is dict else ()
        if self.LEAVES.issuperset(map(type, values)):
            if len(self.known) > 5000:
                self.known.clear()
            self.known[id(v)] = (cls, size, first, values, text, count)
