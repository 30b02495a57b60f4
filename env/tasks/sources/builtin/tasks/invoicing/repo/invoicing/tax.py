"""Tax rates per class of goods."""

from decimal import Decimal

from .money import cents


class TaxTable:
    """Rates by name, given in percent."""

    def __init__(self, **percent):
        self._rates = {}
        for name, value in percent.items():
            self.set(name, value)

    def set(self, name, percent):
        """Set the rate of a class of goods."""
        if not 0 <= percent <= 100:
            raise ValueError("{} percent is no tax rate".format(percent))
        self._rates[name] = Decimal(percent / 100)

    def rate(self, name):
        """Return the rate as a fraction of the net price."""
        try:
            return self._rates[name]
        except KeyError:
            raise KeyError("no tax class {!r}".format(name)) from None

    def tax(self, net, name):
        """Return the tax on *net*, rounded to the cent."""
        return cents(net * self.rate(name))
