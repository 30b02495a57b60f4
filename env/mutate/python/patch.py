"""Makes unified diffs of bytes in git's format. As in git, only \\n ends a line."""
import difflib

CONTEXT = 3


def quoted(path):
    """Returns a path as git writes it, and the suffix that it needs in a header. The suffix is None if the path must be
    in quotes."""
    raw = path.encode("utf-8", "surrogateescape")
    if all(32 <= c < 127 and c not in b'"\\' for c in raw):
        return raw, b"\t" if b" " in raw else b""
    names = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}
    return b"".join(names.get(c) or (bytes([c]) if 32 <= c < 127 else b"\\%03o" % c) for c in raw), None


def side(prefix, path):
    text, end = quoted(path)
    return b'"%s%s"' % (prefix, text) if end is None else prefix + text


def split(data):
    lines = data.split(b"\n")
    out = [line + b"\n" for line in lines[:-1]]
    return out + [lines[-1]] if lines[-1] else out


def changed(old, new):
    """Returns (old begin, old end, new begin, new end) of each difference."""
    head, tail = 0, 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b = old[head:len(old) - tail], new[head:len(new) - tail]
    if len(a) * len(b) > 4000000:
        return [(head, len(old) - tail, head, len(new) - tail)]
    match = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return [(head + i, head + j, head + k, head + m) for op, i, j, k, m in match.get_opcodes() if op != "equal"]


def unified(path, before, after):
    old, new = split(before), split(after)
    groups = []
    for part in changed(old, new):
        if groups and part[0] - groups[-1][-1][1] <= 2 * CONTEXT:
            groups[-1].append(part)
        else:
            groups.append([part])
    end = quoted(path)[1] or b""
    out = [b"diff --git %s %s\n--- %s%s\n+++ %s%s\n" % (side(b"a/", path), side(b"b/", path), side(b"a/", path), end, side(b"b/", path), end)]
    for group in groups:
        first, last = max(0, group[0][0] - CONTEXT), min(len(old), group[-1][1] + CONTEXT)
        begin = group[0][2] - (group[0][0] - first)
        stop = group[-1][3] + (last - group[-1][1])
        out.append(b"@@ -%s +%s @@\n" % (span(first, last), span(begin, stop)))
        at = first
        for i, j, k, m in group:
            out.extend(line(b" ", x) for x in old[at:i])
            out.extend(line(b"-", x) for x in old[i:j])
            out.extend(line(b"+", x) for x in new[k:m])
            at = j
        out.extend(line(b" ", x) for x in old[at:last])
    return b"".join(out)


def span(first, last):
    n = last - first
    return b"%d,%d" % (first + 1 if n else first, n) if n != 1 else b"%d" % (first + 1)


def line(mark, text):
    return mark + text if text.endswith(b"\n") else mark + text + b"\n\\ No newline at end of file\n"
