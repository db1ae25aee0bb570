"""A kind of release that is not shipped: how often the eye was on the right in a spell, one bit for each count.

It differs from all others in what a new kind may differ in: domain, response, what is taken off the rows, schema, words
of its claim, figures, view, trial and form. The package knows nothing of it.
"""

from eyestream.core.mechanisms.entry import Entry, NoOptions
from tests.product.drill.unary.mechanism import Unary
from tests.product.drill.unary.tables import Counts

__all__ = ["ENTRY"]

ENTRY = Entry(
    mechanism=Unary,
    options=NoOptions,
    tables=Counts,
    takes_off={"usual": "tests.product.drill.unary.usual:stored"},
    view="tests.product.drill.unary.view:Bits",
)
