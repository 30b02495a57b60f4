"""Write invoices with sales tax to the cent."""

from .invoice import Invoice
from .money import cents, to_amount
from .tax import TaxTable

__all__ = ["Invoice", "TaxTable", "cents", "to_amount"]
