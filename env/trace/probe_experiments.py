"""Takes values from the run of one version and puts them into a run of another."""
import ast
import base64
import builtins
import copy
import gc
import pickle
import types


class Experiment(Steps):
    """Calls act(point, frame, arg) at events of one test. A point is an object with the file and the
    line of the event, and either its number in the run or its kind and how often it has occurred."""

    def locate(self, points):
        self.numbers, self.places, self.counts, self.raised = {}, {}, {}, None
        for point in points:
            if "event" in point:
                self.numbers.setdefault(point["event"], []).append(point)
            else:
                place = self.places.setdefault((point["kind"], point["file"], point["line"]), {})
                place.setdefault(point["hit"], []).append(point)

    def step(self, kind, file, frame, arg):
        n, self.count = self.count, self.count + 1
        if kind == "exception":
            self.raised = arg
        points, key = list(self.numbers.get(n, ())), (kind, file, frame.f_lineno)
        if key in self.places:
            hit = self.counts[key] = self.counts.get(key, 0) + 1
            points += self.places[key].get(hit, ())
        for point in points:
            if file == point["file"] and frame.f_lineno == point["line"]:
                try:
                    self.act(point, frame, arg)
                except Exception as error:
                    self.records.append(["problem", typename(type(error))])
        if not self.places and n >= max(self.numbers, default=0):
            self.events.off()


class Capture(Experiment):
    """Records the values of point["names"] as pickled copies, and the expressions that the
    statement at point["statement"] (a line) assigned to them."""

    SIZE = 1 << 20  # bytes of a pickled value

    def begin(self, name):
        self.locate(self.config["points"])
        Steps.begin(self, name)

    def act(self, point, frame, arg):
        for name in point["names"]:
            if name in ENDS:
                value = arg if name == ENDS[0] else self.raised
            else:
                value = find(frame, frame.f_locals, name)
            text = None
            try:
                data = pickle.dumps(copy.deepcopy(value), 4)
                if len(data) <= self.SIZE and self.formatter.text(pickle.loads(data)) == self.formatter.text(value):
                    text = base64.b64encode(data).decode()
            except Exception:
                pass
            expression = expression_of(frame.f_code.co_filename, point["statement"], name)
            self.records.append(["value", point["id"], name, text, self.formatter.text(value), expression])


ENDS = ("<return>", "<exit>")


class Substitute(Experiment):
    """Makes the experiments of config["experiments"], each in a child process. An experiment has
    points, or a function whose ends it changes. A point and an end have values (pickled copies and
    their texts, by name) or expressions (by name). The expressions of a point with "later" are only
    evaluated: the point that follows sets the variables. An experiment that leaves files behind is
    the last one of the run."""

    SECONDS = 20  # of one experiment

    def begin(self, name):
        for experiment in self.config["experiments"]:
            child = rehearse(self.out, self.SECONDS)
            if child is not None or not can_rehearse():
                self.id, self.results = experiment["id"], {}
                self.locate(experiment["points"])
                Steps.begin(self, name)
                self.rehearsal = child
                if experiment["ends"]:
                    self.change(experiment["ends"])
                return
            if self.out.left:
                break
        os._exit(0)

    def end(self, name, status):
        self.records.append(["outcome", self.id, status or ""])
        Steps.end(self, name, status)

    def act(self, point, frame, arg):
        values, variables = self.values(point, frame), frame.f_locals  # before 3.13, another access undoes changes
        if point.get("later"):
            return
        for name, value in values.items():
            assign(frame, variables, name, value)
        if sys.version_info[:2] == (3, 12):  # a callback of sys.monitoring gets a copy of the variables
            import ctypes

            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        self.records.append(["set", self.id])

    def values(self, point, frame):
        """Returns the values of a point by name."""
        values = {}
        for name, source in point.get("expressions", {}).items():
            if name not in self.results:
                self.results[name] = eval(compile(source, "<expression>", "eval"), frame.f_globals, dict(frame.f_locals))
            values[name] = self.results[name]
        for name, (data, text) in point.get("values", {}).items():
            values[name] = pickle.loads(base64.b64decode(data))
            if self.formatter.text(values[name]) != text:
                raise ValueError("the copy of %s differs" % name)
        return values

    def change(self, ends):
        """Makes a function of the program ask for its results."""
        counts, thread = {}, self.thread

        def ask(kind, value):
            if self.ident() != thread or kind != ends["kind"]:
                return value
            counts[kind] = counts.get(kind, 0) + 1
            point = ends["hits"].get(str(counts[kind]))
            if point is None or point.get("buggy", "") not in ("", self.formatter.text(value)):
                return value
            frame, self.busy = sys._getframe(2), True
            try:
                values = self.values(point, frame)
                for name in values:
                    if name not in ENDS:
                        assign(frame, frame.f_locals, name, values[name])
            except Exception as error:
                self.records.append(["problem", typename(type(error))])
                return value
            finally:
                self.busy = False
            self.records.append(["set", self.id])
            if ENDS[1] in values:
                raise values[ENDS[1]]
            return values.get(ENDS[0], value if kind == ENDS[0] else None)

        def failed(error):
            value = ask(ENDS[1], error)
            if value is error:
                raise error
            return value

        builtins._tracesmith_result, builtins._tracesmith_error = lambda value: ask(ENDS[0], value), failed
        for function in [f for f in gc.get_objects() if type(f) is types.FunctionType and self.place(f.__code__.co_filename) == ends["file"]]:
            code = self.changed(function.__code__, ends)
            if code is not function.__code__:
                function.__code__ = code

    def changed(self, code, ends):
        """Returns a code object in which the function asks for its results."""
        if self.names.qualified(code) == ends["function"] and ends["line"] in lines_of(code) | {code.co_firstlineno}:
            return asking(code, ends["kind"] == ENDS[1])
        consts = tuple([self.changed(c, ends) if type(c) is types.CodeType else c for c in code.co_consts])
        return code.replace(co_consts=consts) if any(a is not b for a, b in zip(consts, code.co_consts)) else code


def asking(code, catches):
    """Compiles a function again, with calls of _tracesmith_result for what it returns and yields, and
    of _tracesmith_error for the exceptions that end it. Returns code itself if that is not possible."""
    with open(code.co_filename, "rb") as f:
        tree = ast.parse(f.read())
    found = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS) and getattr(node, "name", "<lambda>") == code.co_name and
             min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", [])]) == code.co_firstlineno]
    if len(found) != 1 or code.co_flags & 0x200:  # an asynchronous generator returns no value
        return code
    node = found[0]
    if isinstance(node, ast.Lambda):
        node.body = Asking().visit(ast.Return(node.body)).value
    else:
        node.body = [Asking().visit(statement) for statement in node.body] + [ast.Return(call("_tracesmith_result", ast.Constant(None)))]
        if catches:
            handler = ast.ExceptHandler(ast.Name("BaseException", ast.Load()), "_tracesmith_raised",
                                        [ast.Return(call("_tracesmith_error", ast.Name("_tracesmith_raised", ast.Load())))])
            node.body = [ast.Try(node.body, [handler], [], [])]
    compiled = [compile(ast.fix_missing_locations(tree), code.co_filename, "exec", dont_inherit=True)]
    for outer in compiled:
        if (outer.co_name, outer.co_firstlineno) == (code.co_name, code.co_firstlineno):
            return outer if outer.co_freevars == code.co_freevars else code
        compiled.extend([c for c in outer.co_consts if type(c) is types.CodeType])
    return code


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def call(name, argument):
    return ast.Call(ast.Name(name, ast.Load()), [argument], [])


class Asking(ast.NodeTransformer):
    def visit(self, node):
        if isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            return node
        self.generic_visit(node)
        if isinstance(node, (ast.Return, ast.Yield)):
            node.value = call("_tracesmith_result", node.value or ast.Constant(None))
        return node


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


def find(frame, variables, name):
    if "." not in name:
        return variables[name] if name in variables else frame.f_globals[name]
    owner, attribute = owner_of(variables, name)
    return vars_of(owner)[attribute] if isinstance(owner, type) else instance_dict(owner)[attribute]


def assign(frame, variables, name, value):
    if "." not in name:
        code = frame.f_code
        local = name in code.co_varnames + code.co_cellvars + code.co_freevars or not code.co_flags & 2
        (variables if local else frame.f_globals)[name] = value
        return
    owner, attribute = owner_of(variables, name)
    if isinstance(owner, type):
        type.__setattr__(owner, attribute, value)
    else:
        instance_dict(owner)[attribute] = value


def expression_of(path, line, name):
    """Returns the source of the expression that a statement assigns to a name or returns, or None."""
    try:
        with open(path, "rb") as f:
            source = f.read().decode("utf-8")
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and name == ENDS[0] and node.value is not None and node.lineno <= line <= node.end_lineno:
            return "(%s)" % ast.get_source_segment(source, node.value)
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
