"""Decides which tests run, in which order, and which probe observes them. By default, all
tests run in the runner's order."""
import os


class Plan(object):
    def __init__(self, config, directory, workspace_path):
        self.only = frozenset(config["only"]) if "only" in config else None
        self.seed = config.get("shuffle")
        self.probe = None
        if "probe" in config:
            import tracesmith_probe

            self.probe = tracesmith_probe.start(config["probe"], os.path.join(directory, "probe"), workspace_path)

    def wants(self, name):
        return self.only is None or name in self.only

    def traced(self):
        """Returns the functions of the tests to run if the run exists for its probe, and None otherwise."""
        if self.probe is None or self.only is None:
            return None
        return {name.split("[")[0].split("::")[-1] for name in self.only}

    def begin(self, name):
        if self.probe is not None:
            self.probe.begin(name)

    def end(self, name, status):
        if self.probe is not None:
            self.probe.end(name, status)

    def random_keys(self):
        """Returns a function that maps each key to a random number. Sorting tests by the
        numbers of their parents and then by their own number keeps modules and classes together."""
        import random

        source, drawn = random.Random(self.seed), {}

        def draw(key):
            if key not in drawn:
                drawn[key] = source.random()
            return drawn[key]

        return draw

    def arrange(self, items, name, parents):
        """Filters and reorders a list of tests in place."""
        if self.only is not None:
            items[:] = [item for item in items if name(item) in self.only]
        if self.seed is not None:
            draw = self.random_keys()
            items.sort(key=lambda item: [draw(key) for key in parents(item)])
