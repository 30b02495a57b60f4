# Looks for what only the fixed version of a repository has, everywhere in a
# sandbox but in the repository's visible files. Reads one JSON object from
# standard input, writes one JSON line per finding. Python 3.6 to 3.14.
import glob
import importlib.util
import json
import marshal
import os
import re
import sys
import tarfile
import types
import zipfile
import zlib

ORDER = json.load(sys.stdin)
HERE = ORDER["workdir"].rstrip("/")
LINES, WORDS, TEXTS = set(ORDER["lines"]), set(ORDER["words"]), ORDER["texts"]
VISIBLE = set(ORDER["visible"])
FILES = ORDER["files"]  # path -> [text of the repository or None, text of the fixed version]
PACKAGES = set(ORDER["packages"])  # names, as file names spell them
STEMS = {os.path.splitext(os.path.basename(p))[0]: p for p in FILES if p.endswith(".py")}
BIG = 32 << 20
ARCHIVES = (".whl", ".zip", ".egg", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
told = set()


def tell(place, token, kind):
    if (place, kind) not in told and len(told) < 50:
        told.add((place, kind))
        print(json.dumps({"place": place, "token": token, "kind": kind}), flush=True)


def read(path):
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as f:
            return f.read(BIG)
    except OSError:
        return b""


TELLING = 20  # length of a line that nobody else would write


def search(place, raw, stranger=False):
    """Tells of the first token of each kind in a text; in a stranger, which bears
    the name of a file of the repository and no more, of whole lines alone."""
    text = raw.decode("utf-8", "replace")
    for line in LINES and (part.strip() for part in text.splitlines()):
        if line in LINES and not (stranger and len(line) < TELLING):
            tell(place, line, "line")
            break
    if stranger:
        return
    for word in WORDS and re.findall(r"\w+", text):
        if word in WORDS:
            tell(place, word, "word")
            break
    for t in TEXTS:
        if t in text:
            tell(place, t, "text")
            break


def shape(code):
    """A code object without names of files and numbers of lines."""
    consts = tuple(shape(c) if isinstance(c, types.CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts)
    return (code.co_name, code.co_code, code.co_names, code.co_varnames, consts)


def shapes(code, into):
    into.add(shape(code))
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            shapes(const, into)
    return into


def compiled(path, level):
    """What only the fixed version compiles to."""
    try:
        base, fixed = ([shapes(compile(text or "", path, "exec", dont_inherit=True, optimize=level), set())
                        for text in FILES[path]])
        return fixed - base
    except (SyntaxError, ValueError):
        return set()


def names(code):
    """The words and texts in a code object."""
    out = [code.co_name] + list(code.co_names + code.co_varnames + code.co_freevars + code.co_cellvars)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            out += names(const)
        elif isinstance(const, (tuple, frozenset)):
            out += [c for c in const if isinstance(c, str)]
        elif isinstance(const, str):
            out.append(const)
    return out


def bytecode(place, path, stranger):
    """Of a file that this interpreter cannot load, words that begin in it count."""
    raw = read(place)
    level = 2 if ".opt-2." in place else 1 if ".opt-1." in place else 0
    if raw[:4] == importlib.util.MAGIC_NUMBER:
        try:
            code = marshal.loads(raw[16 if sys.version_info >= (3, 7) else 12:])
            common = shapes(code, set()) & compiled(path, level) if path else ()
            if common:
                tell(place, min(c[0] for c in common), "code")
            return search(place, "\n".join(names(code)).encode("utf-8", "replace"), stranger)
        except (ValueError, EOFError, TypeError, AttributeError):
            pass
    for word in () if stranger else WORDS:
        if re.search(rb"(?<![A-Za-z0-9_])" + word.encode(), raw):
            tell(place, word, "word")
            break


def objects(pack):
    """The objects of a git pack file, one after the other; of those kept as a
    difference, the difference."""
    raw, at = read(pack), 12
    while at < len(raw) - 20:
        kind, size = (raw[at] >> 4) & 7, raw[at] & 15
        while raw[at] & 128:
            at += 1
        at += 1
        if kind == 6:
            while raw[at] & 128:
                at += 1
            at += 1
        elif kind == 7:
            at += 20
        unpack = zlib.decompressobj()
        try:
            yield unpack.decompress(raw[at:], BIG)
        except zlib.error:
            return
        if not unpack.eof:
            return
        at = len(raw) - len(unpack.unused_data)


def history(git):
    for folder, folders, files in os.walk(git):
        for name in files:
            path = os.path.join(folder, name)
            if name.endswith(".pack"):
                for content in objects(path):
                    search(path, content)
            elif re.search(r"/objects/[0-9a-f]{2}$", folder):
                try:
                    search(path, zlib.decompressobj().decompress(read(path), BIG))
                except zlib.error:
                    pass
            elif not name.endswith((".idx", ".rev")):
                search(path, read(path))


def suffix(path):
    """The changed file that a path may be a copy of: its own name and, inside a
    package, the package's."""
    for known in FILES:
        parts = known.split("/")[-2:]
        if path.endswith("/" + "/".join(parts)) and (len(parts) == 2 or os.path.dirname(path) != HERE):
            return known
    return None


def moved(path):
    """The changed module that a path may be in a version of its package that is laid
    out otherwise."""
    for known in FILES:
        parts = known.split("/")
        top = parts[1 if parts[0] in ("src", "lib") else 0]
        if top not in ("tests", "test", parts[-1]) and parts[-1] == os.path.basename(path) and "/%s/" % top in path:
            return known
    return None


def copy(place, raw, known, own=False):
    fixed = FILES[known][1]
    if fixed is not None and raw.decode("utf-8", "replace").strip() == fixed.strip():
        tell(place, known, "file")
    search(place, raw, stranger=not own and "/" not in known)


def archive(path):
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as z:
                members = [(i.filename, i.file_size, lambda i=i: z.read(i)) for i in z.infolist()]
                inspect(path, members)
        elif tarfile.is_tarfile(path):
            with tarfile.open(path) as t:
                members = [(m.name, m.size, lambda m=m: t.extractfile(m).read()) for m in t if m.isfile()]
                inspect(path, members)
    except (OSError, ValueError, RuntimeError, EOFError, KeyError, tarfile.TarError, zipfile.BadZipFile, zlib.error):
        pass


def inspect(path, members):
    for name, size, content in members[:100000]:
        known = suffix("/" + name)
        if known and size <= BIG:
            copy(path + "!" + name, content(), known)


def named(name):
    return any(name.lower().replace("-", "_").startswith(p) for p in PACKAGES)


def file(folder, name, own):
    path = os.path.join(folder, name)
    if own and path[len(HERE) + 1:] in VISIBLE:
        return
    stem = name.split(".")[0]
    if name.endswith((".pyc", ".pyo")):
        source = os.path.join(folder[:-12] if folder.endswith("/__pycache__") else folder, stem + ".py")
        known, elsewhere = suffix(source), moved(source)
        if own or known:
            bytecode(path, known or STEMS.get(stem), stranger=not own and "/" not in known)
        elif elsewhere:
            bytecode(path, elsewhere, stranger=True)
    elif name.endswith(ARCHIVES) and (own or named(name)):
        archive(path)
    elif own:
        known = suffix(path)
        if known:
            copy(path, read(path), known, own)
        else:
            search(path, read(path))
    elif stem in STEMS or name in NAMES:
        known = suffix(path)
        if known:
            copy(path, read(path), known)
        elif moved(path):
            search(path, read(path), stranger=True)
    elif os.path.basename(folder).endswith(("-info", ".egg")) and named(os.path.basename(folder)):
        search(path, read(path))


NAMES = {os.path.basename(p) for p in FILES}


def walk(top, own):
    for folder, folders, files in os.walk(top):
        keep = []
        for name in folders:
            path = os.path.join(folder, name)
            if name == ".git" or "HEAD" in files and name == "objects":
                history(folder if name == "objects" else path)
            elif path not in ("/proc", "/sys", "/dev", HERE) and not os.path.islink(path):
                keep.append(name)
        folders[:] = keep
        if ".git" in files:  # of a worktree or submodule
            search(os.path.join(folder, ".git"), read(os.path.join(folder, ".git")))
        for name in files:
            file(folder, name, own)


for name, value in os.environ.items():
    search("environment: " + name, (name + "\n" + value).encode("utf-8", "replace"))
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    if not path.startswith("/proc/%d/" % os.getpid()):
        search(path, read(path).replace(b"\0", b"\n"))
walk(HERE, True)
for root in ORDER["roots"] or sys.path:
    walk(root, False)
print(json.dumps({"done": True}), flush=True)
