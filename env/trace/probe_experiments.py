"""Takes values from the run of one version and puts them into a run of another."""
import ast
import base64
import copy
import pickle


class Experiment(Steps):
    """Calls act(point, frame) at events of one test. A point of config["points"] is an object
    with an event number, and the file and the line that the event must have."""

    def __init__(self, config, out, place):
        Steps.__init__(self, config, out, place)
        self.points = {}
        for point in config["points"]:
            self.points.setdefault(point["event"], []).append(point)

    def step(self, kind, file, frame, arg):
        n, self.count = self.count, self.count + 1
        for point in self.points.get(n, ()):
            if file == point["file"] and frame.f_lineno == point["line"]:
                try:
                    self.act(point, frame, frame.f_locals)
                except Exception as error:
                    self.records.append(["problem", typename(type(error))])
        if n >= max(self.points):
            self.events.off()


class Capture(Experiment):
    """Records the values of point["names"] as pickled copies, and the expressions that the
    statement at point["statement"] (a line) assigned to them."""

    SIZE = 1 << 20  # bytes of a pickled value

    def act(self, point, frame, variables):
        for name in point["names"]:
            value, text = find(variables, name), None
            try:
                data = pickle.dumps(copy.deepcopy(value), 4)
                if len(data) <= self.SIZE and self.formatter.text(pickle.loads(data)) == self.formatter.text(value):
                    text = base64.b64encode(data).decode()
            except Exception:
                pass
            expression = expression_of(frame.f_code.co_filename, point["statement"], name)
            self.records.append(["value", point["id"], name, text, self.formatter.text(value), expression])


class Substitute(Experiment):
    """Sets variables. A point has values (pickled copies and their texts, by name) or
    expressions (by name). The expressions of a point with "later" are only evaluated: the point
    with the same id that follows sets the variables."""

    def act(self, point, frame, variables):
        self.results = getattr(self, "results", {})
        for name, source in point.get("expressions", {}).items():
            if (point["id"], name) not in self.results:
                code = compile(source, "<expression>", "eval")
                self.results[point["id"], name] = eval(code, frame.f_globals, dict(variables))
        if point.get("later"):
            return
        values = {name: self.results[point["id"], name] for name in point.get("expressions", {})}
        for name, (data, text) in point.get("values", {}).items():
            values[name] = pickle.loads(base64.b64decode(data))
            if self.formatter.text(values[name]) != text:
                self.records.append(["problem", "the copy of %s differs" % name])
                return
        for name, value in values.items():
            assign(variables, name, value)
        if sys.version_info[:2] == (3, 12):  # a callback of sys.monitoring gets a copy of the variables
            import ctypes

            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        self.records.append(["set", point["id"], sorted(values)])


def owner_of(variables, name):
    """Returns the object with the attribute of a name such as self.x, and the name of the attribute."""
    holder, _, attribute = name.partition(".")
    holder = variables[holder]
    d = None if isinstance(holder, type) else instance_dict(holder)
    if d is not None and attribute in d:
        return holder, attribute
    for cls in type.__getattribute__(holder if isinstance(holder, type) else type(holder), "__mro__"):
        if attribute in vars_of(cls):
            return cls, attribute
    return holder, attribute


def find(variables, name):
    if "." not in name:
        return variables[name]
    owner, attribute = owner_of(variables, name)
    return vars_of(owner)[attribute] if isinstance(owner, type) else instance_dict(owner)[attribute]


def assign(variables, name, value):
    if "." not in name:
        variables[name] = value
        return
    owner, attribute = owner_of(variables, name)
    if isinstance(owner, type):
        type.__setattr__(owner, attribute, value)
    else:
        instance_dict(owner)[attribute] = value


def expression_of(path, line, name):
    """Returns the source of the expression that a statement assigns to a name, or None."""
    try:
        with open(path, "rb") as f:
            source = f.read().decode("utf-8")
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.lineno <= line <= node.end_lineno:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if len(targets) != 1 or node.value is None or ast.get_source_segment(source, targets[0]) != name:
                continue
            text = ast.get_source_segment(source, node.value)
            if isinstance(node, ast.AugAssign):
                between = ast.get_source_segment(source, node)[len(name):-len(text)].strip()
                text = "%s %s (%s)" % (name, between[:-1], text) if between[-1:] == "=" else None
            return text and "(%s)" % text
    return None
