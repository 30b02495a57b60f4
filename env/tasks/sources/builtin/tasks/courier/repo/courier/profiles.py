"""Named sets of options; one profile can build on another."""

from .options import check, combine


class UnknownProfile(KeyError):
    """There is no profile of that name."""


class Profiles:
    """All profiles of an installation."""

    def __init__(self):
        self._layers = {}
        self._bases = {}

    def define(self, name, base=None, **layer):
        """Add a profile; *base* is the profile it builds on."""
        if base is not None and base not in self._layers:
            raise UnknownProfile(base)
        check(layer, "profile {}".format(name))
        self._layers[name] = layer
        self._bases[name] = base

    def resolve(self, name, **extra):
        """Return all options of a profile, *extra* on top."""
        check(extra, "call")
        layers = [extra]
        while name is not None:
            if name not in self._layers:
                raise UnknownProfile(name)
            layers.append(self._layers[name])
            name = self._bases[name]
        return combine(*reversed(layers))
