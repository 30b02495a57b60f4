# Searches a sandbox, except for the repository's visible files, for content that only the fixed
# version of the repository has. Reads one JSON object from standard input. Writes one JSON line per
# finding, and {"done": true} at the end. Runs on Python 3.6 to 3.14.
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

REQUEST = json.load(sys.stdin)
WORKDIR = REQUEST["workdir"].rstrip("/")
LINES, WORDS, TEXTS = set(REQUEST["lines"]), set(REQUEST["words"]), REQUEST["texts"]
VISIBLE = set(REQUEST["visible"])
FILES = REQUEST["files"]  # path -> [text without the fix or None, text with the fix or None]
PACKAGES = set(REQUEST["packages"])  # names, as file names spell them
NAMES = {os.path.basename(p) for p in FILES}
STEMS = {os.path.splitext(os.path.basename(p))[0]: p for p in FILES if p.endswith(".py")}
MAX_FILE = 32 << 20  # bytes that are read of one file
ARCHIVES = (".whl", ".zip", ".egg", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
reported = set()


def report(place, token, kind):
    if (place, kind) not in reported and len(reported) < 50:
        reported.add((place, kind))
        print(json.dumps({"place": place, "token": token, "kind": kind}), flush=True)


def read(path):
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as f:
            return f.read(MAX_FILE)
    except OSError:
        return b""


MIN_LINE = 20  # characters; a shorter line may occur in unrelated code by chance


def search(place, raw, unrelated=False):
    """Reports the first token of each kind in a text. An unrelated file, which only shares
    its name with a file of the repository, is searched for long lines only."""
    text = raw.decode("utf-8", "replace")
    for line in LINES and (part.strip() for part in text.splitlines()):
        if line in LINES and not (unrelated and len(line) < MIN_LINE):
            report(place, line, "line")
            break
    if unrelated:
        return
    for word in WORDS and re.findall(r"\w+", text):
        if word in WORDS:
            report(place, word, "word")
            break
    for t in TEXTS:
        if t in text:
            report(place, t, "text")
            break


def shape(code):
    """Returns a code object as a tuple without file names and line numbers."""
    consts = tuple(shape(c) if isinstance(c, types.CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts)
    return (code.co_name, code.co_code, code.co_names, code.co_varnames, consts)


def shapes(code, into):
    """Adds the shapes of a code object and of those nested in it to a set, and returns the set."""
    into.add(shape(code))
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            shapes(const, into)
    return into


def fixed_shapes(path, level):
    """Returns the shapes of the code that only the fixed version of a file compiles to."""
    try:
        base, fixed = ([shapes(compile(text or "", path, "exec", dont_inherit=True, optimize=level), set())
                        for text in FILES[path]])
        return fixed - base
    except (SyntaxError, ValueError):
        return set()


def names(code):
    """Returns the identifiers and strings in a code object."""
    out = [code.co_name] + list(code.co_names + code.co_varnames + code.co_freevars + code.co_cellvars)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            out += names(const)
        elif isinstance(const, (tuple, frozenset)):
            out += [c for c in const if isinstance(c, str)]
        elif isinstance(const, str):
            out.append(const)
    return out


def search_bytecode(place, path, unrelated):
    """Searches a bytecode file. If this interpreter cannot load it, its bytes are searched for words."""
    raw = read(place)
    level = 2 if ".opt-2." in place else 1 if ".opt-1." in place else 0
    if raw[:4] == importlib.util.MAGIC_NUMBER:
        try:
            code = marshal.loads(raw[16 if sys.version_info >= (3, 7) else 12:])
            common = shapes(code, set()) & fixed_shapes(path, level) if path else ()
            if common:
                report(place, min(c[0] for c in common), "code")
            return search(place, "\n".join(names(code)).encode("utf-8", "replace"), unrelated)
        except (ValueError, EOFError, TypeError, AttributeError):
            pass
    for word in () if unrelated else WORDS:
        if re.search(rb"(?<![A-Za-z0-9_])" + word.encode(), raw):
            report(place, word, "word")
            break


def objects(pack):
    """Yields the content of the objects of a git pack file; for deltas, the delta."""
    raw, at = read(pack), 12
    while at < len(raw) - 20:
        kind = (raw[at] >> 4) & 7
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
            yield unpack.decompress(raw[at:], MAX_FILE)
        except zlib.error:
            return
        if not unpack.eof:
            return
        at = len(raw) - len(unpack.unused_data)


def search_git(git):
    """Searches a .git directory, or a directory of git objects."""
    for folder, folders, files in os.walk(git):
        for name in files:
            path = os.path.join(folder, name)
            if name.endswith(".pack"):
                for content in objects(path):
                    search(path, content)
            elif re.search(r"/objects/[0-9a-f]{2}$", folder):
                try:
                    search(path, zlib.decompressobj().decompress(read(path), MAX_FILE))
                except zlib.error:
                    pass
            elif not name.endswith((".idx", ".rev")):
                search(path, read(path))


def same_file(path):
    """Returns the changed file that has the same name, and the same name of its directory, as a path, or None."""
    for known in FILES:
        parts = known.split("/")[-2:]
        if path.endswith("/" + "/".join(parts)) and (len(parts) == 2 or os.path.dirname(path) != WORKDIR):
            return known
    return None


def relocated_module(path):
    """Returns the changed module that a path may stand for in another version of its package, or None."""
    for known in FILES:
        parts = known.split("/")
        top = parts[1 if parts[0] in ("src", "lib") else 0]
        if top not in ("tests", "test", parts[-1]) and parts[-1] == os.path.basename(path) and "/%s/" % top in path:
            return known
    return None


def check_copy(place, raw, known, own=False):
    """Searches a file that may be a copy of a changed file, known. own says that it is in the working directory."""
    fixed = FILES[known][1]
    if fixed is not None and raw.decode("utf-8", "replace").strip() == fixed.strip():
        report(place, known, "file")
    search(place, raw, unrelated=not own and "/" not in known)


def search_archive(path):
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as z:
                members = [(i.filename, i.file_size, lambda i=i: z.read(i)) for i in z.infolist()]
                search_members(path, members)
        elif tarfile.is_tarfile(path):
            with tarfile.open(path) as t:
                members = [(m.name, m.size, lambda m=m: t.extractfile(m).read()) for m in t if m.isfile()]
                search_members(path, members)
    except (OSError, ValueError, RuntimeError, EOFError, KeyError, tarfile.TarError, zipfile.BadZipFile, zlib.error):
        pass


def search_members(path, members):
    for name, size, content in members[:100000]:
        known = same_file("/" + name)
        if known and size <= MAX_FILE:
            check_copy(path + "!" + name, content(), known)


def belongs_to_package(name):
    """Tells whether an archive or a directory of metadata may belong to a package that the fix changes."""
    return any(name.lower().replace("-", "_").startswith(p) for p in PACKAGES)


def check_file(folder, name, own):
    """Searches a file if it can contain the fix. own says that it is in the working directory."""
    path = os.path.join(folder, name)
    if own and path[len(WORKDIR) + 1:] in VISIBLE:
        return
    stem = name.split(".")[0]
    if name.endswith((".pyc", ".pyo")):
        source = os.path.join(folder[:-12] if folder.endswith("/__pycache__") else folder, stem + ".py")
        known, relocated = same_file(source), relocated_module(source)
        if own or known:
            search_bytecode(path, known or STEMS.get(stem), unrelated=not own and "/" not in known)
        elif relocated:
            search_bytecode(path, relocated, unrelated=True)
    elif name.endswith(ARCHIVES) and (own or belongs_to_package(name)):
        search_archive(path)
    elif own:
        known = same_file(path)
        if known:
            check_copy(path, read(path), known, own)
        else:
            search(path, read(path))
    elif stem in STEMS or name in NAMES:
        known = same_file(path)
        if known:
            check_copy(path, read(path), known)
        elif relocated_module(path):
            search(path, read(path), unrelated=True)
    elif os.path.basename(folder).endswith(("-info", ".egg")) and belongs_to_package(os.path.basename(folder)):
        search(path, read(path))


def walk(top, own):
    for folder, folders, files in os.walk(top):
        keep = []
        for name in folders:
            path = os.path.join(folder, name)
            if name == ".git" or "HEAD" in files and name == "objects":
                search_git(folder if name == "objects" else path)
            elif path not in ("/proc", "/sys", "/dev", WORKDIR) and not os.path.islink(path):
                keep.append(name)
        folders[:] = keep
        if ".git" in files:  # the directory is a worktree or submodule
            search(os.path.join(folder, ".git"), read(os.path.join(folder, ".git")))
        for name in files:
            check_file(folder, name, own)


for name, value in os.environ.items():
    search("environment: " + name, (name + "\n" + value).encode("utf-8", "replace"))
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    if not path.startswith("/proc/%d/" % os.getpid()):
        search(path, read(path).replace(b"\0", b"\n"))
walk(WORKDIR, True)
for root in REQUEST["roots"] or sys.path:
    walk(root, False)
print(json.dumps({"done": True}), flush=True)
