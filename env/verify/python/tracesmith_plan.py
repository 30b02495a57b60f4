"""Which tests run, in which order, and which probe watches them. Without such an order
the runner is left as it is."""
import os


class Plan(object):
    def __init__(self, order, directory, place):
        self.only = frozenset(order["only"]) if "only" in order else None
        self.seed = order.get("shuffle")
        self.probe = None
        if "probe" in order:
            import tracesmith_probe

            self.probe = tracesmith_probe.start(order["probe"], os.path.join(directory, "probe"), place)

    def wants(self, name):
        return self.only is None or name in self.only

    def begin(self, name):
        if self.probe is not None:
            self.probe.begin(name)

    def end(self, name):
        if self.probe is not None:
            self.probe.end(name)

    def draws(self):
        """Returns a function that maps each key to a random number. Sorting tests by the
        numbers of their parents and their own keeps modules and classes together."""
        import random

        source, drawn = random.Random(self.seed), {}

        def draw(key):
            if key not in drawn:
                drawn[key] = source.random()
            return drawn[key]

        return draw

    def arrange(self, items, name, parents):
        """Drops and reorders a list of tests in place."""
        if self.only is not None:
            items[:] = [item for item in items if name(item) in self.only]
        if self.seed is not None:
            draw = self.draws()
            items.sort(key=lambda item: [draw(key) for key in parents(item)])
