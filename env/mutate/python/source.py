"""One Python file as bytes and as a syntax tree, and the mapping of positions between them.

All code works on the text in UTF-8, because ast counts columns in UTF-8 bytes. Encoding, byte order mark and line ends
are kept. The file is never reformatted: a change is a list of spans with their new text.
"""
import ast
import bisect
import codecs
import hashlib
import io
import re
import tokenize

LINE_END = re.compile(rb"\r\n|\r|\n")
# Tokens between two expressions. Only comments could contain quotes there, and they are skipped.
GAP = re.compile(rb"(?P<skip>[ \t\f\r\n]+|\\(?:\r\n|\r|\n)|#[^\r\n]*)|(?P<token>\w+|\*{1,2}=?|/{1,2}=?|<<=?|>>=?|[<>=!+%&|^@-]=|->|:=|.)", re.S)
WORD = re.compile(rb"[\w\x80-\xff]")

MAX_BYTES = 2 << 20


class Refused(Exception):
    """The error if the mutator refuses a file or a change. Its text says why."""


class Source:
    def __init__(self, path, raw):
        self.path, self.raw = path, raw
        if len(raw) > MAX_BYTES:
            raise Refused("has more than %d bytes" % MAX_BYTES)
        self.bom = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
        try:
            self.encoding = tokenize.detect_encoding(io.BytesIO(raw).readline)[0].replace("utf-8-sig", "utf-8")
            text = raw[len(self.bom):].decode(self.encoding)
            self.data = text.encode("utf-8")
        except (SyntaxError, LookupError, UnicodeError) as e:
            raise Refused("cannot be decoded: %s" % e)
        if self.encode(self.data) != raw:
            raise Refused("does not survive decoding and encoding as %s" % self.encoding)
        self.tree = parse(text)
        self.lines = [0] + [m.end() for m in LINE_END.finditer(self.data)]
        self.digest = hashlib.sha256(raw).hexdigest()

    def encode(self, data):
        return self.bom + data.decode("utf-8").encode(self.encoding)

    def start(self, node):
        """Returns the offset of the first byte of a node, including its decorators."""
        first = getattr(node, "decorator_list", None)
        if first:
            begin = self.lines[first[0].lineno - 1]
            return self.data.index(b"@", begin)
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node):
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node):
        return self.data[self.start(node):self.end(node)]

    def line_of(self, offset):
        """Returns the 1-based number of the line that contains an offset."""
        return bisect.bisect_right(self.lines, offset)

    def tokens(self, begin, end=None):
        """Yields (offset, token) for the tokens of a text between two expressions."""
        at, end = begin, len(self.data) if end is None else end
        while at < end:
            m = GAP.match(self.data, at, end)
            if m.lastgroup == "token":
                yield at, m.group()
            at = m.end()

    def find(self, token, begin, end=None):
        """Returns the offset of the first occurrence of a token at or after begin."""
        for at, found in self.tokens(begin, end):
            if found == token:
                return at
        raise Refused("no %r where one was expected" % token.decode())

    def outer(self, node, low, high=None):
        """Returns the span of an expression with the parentheses around it. There must be no other expression between
        low and the expression, and no closing parenthesis that belongs to other code between the expression and
        high."""
        opened = []
        for at, token in self.tokens(low, self.start(node)):
            opened = opened + [at] if token == b"(" else []
        begin, end = self.start(node), self.end(node)
        for at, token in self.tokens(end, high):
            if token != b")" or not opened:
                break
            begin, end = opened.pop(), at + 1
        return begin, end

    def whole_lines(self, begin, end):
        """Returns the span extended to whole lines, or None if there is other code on them. The lines may end with a
        comment."""
        first = self.lines[self.line_of(begin) - 1]
        if self.data[first:begin].strip(b" \t\f"):
            return None
        m = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?(\r\n|\r|\n|$)").match(self.data, end)
        if m is None or (first and self.data[:first].rstrip(b"\r\n").endswith(b"\\")):
            return None
        return first, m.end()

    def indent(self, offset):
        """Returns the indentation of the line that contains an offset."""
        first = self.lines[self.line_of(offset) - 1]
        return re.compile(rb"[ \t\f]*").match(self.data, first).group()

    def newline(self):
        m = LINE_END.search(self.data)
        return m.group() if m else b"\n"

    def splice(self, edits):
        """Returns the text with spans replaced. Inserts a space where two words would otherwise become one."""
        out, at = b"", 0
        for begin, end, new in sorted(edits, key=lambda e: e[:2]):
            if begin < at:
                raise Refused("overlapping spans")
            out += self.data[at:begin]
            if WORD.match(out[-1:]) and WORD.match(new[:1]):
                new = b" " + new
            if WORD.match(self.data[end:end + 1]) and WORD.match(new[-1:] or out[-1:]):
                new += b" "
            out += new
            at = end
        return out + self.data[at:]


def parse(text):
    try:
        return ast.parse(text)
    except SyntaxError as e:
        raise Refused("does not parse: line %s: %s" % (e.lineno, e.msg))
    except (ValueError, RecursionError, MemoryError) as e:
        raise Refused("does not parse: %s" % (e or type(e).__name__))
