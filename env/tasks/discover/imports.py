"""Reports which modules of the checkout the tests import from outside the workspace."""
import atexit
import json
import sys


class Imports(object):
    def __init__(self, modules, path, relative):
        self.modules, self.path, self.relative = modules, path, relative
        self.collected = False
        atexit.register(self.write)

    def begin(self, test):
        if not self.collected:  # the tests may be ended before the interpreter exits
            self.collected = True
            self.write()

    def end(self, test, status):
        pass

    def write(self):
        foreign = {}
        for name in self.modules:
            file = getattr(sys.modules.get(name), "__file__", None)
            if isinstance(file, str) and self.relative(file) is None:
                foreign[name] = file
        with open(self.path, "a") as out:
            out.write(json.dumps(foreign) + "\n")


def start(config, path, relative):
    return Imports(config, path, relative)
