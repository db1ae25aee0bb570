"""Days of a budget: which of them a ledger has opened, and which one a slot counts for. Pure: no clock.

The ceiling of a day holds of each number that the host's clock calls a day, and a clock may be wrong. So **a day is
opened once**, and its sum is kept as long as the clock may come back to it. Up to `MOST_AHEAD` days may be open ahead,
after a gap. `BUDGET.md` proves that no day passes its ceiling, whatever the clock shows, and says what a wrong clock
costs. `eyestream.rim.ledger.ledger.Pace` bounds how quickly days are opened.
"""

from collections.abc import Sequence

MOST_AHEAD = 3
"""Days that may be open ahead of the last one without a gap."""


class Days:
    """The days that a ledger has opened, in days since 1970.

    Attributes
    ----------
    last : up to this day there is no other one to open; 0: none was opened.
    ahead : days that were opened after it, ascending.

    >>> days = Days(last=100)
    >>> days.open(103)  # the host's clock was wrong
    >>> days.of(101), days.opened(101), days.opened(103)
    (101, False, True)
    """

    __slots__ = ("ahead", "last")

    def __init__(self, last: int = 0, ahead: Sequence[int] = ()) -> None:
        self.last, self.ahead = last, tuple(ahead)

    @property
    def latest(self) -> int:
        """The last day of all that were opened."""
        return self.ahead[-1] if self.ahead else self.last

    def opened(self, day: int) -> bool:
        """Whether `day` was opened, or is over."""
        return day <= self.last or day in self.ahead

    def of(self, today: int) -> int:
        """The day that a slot counts for, when the clock says that it is `today`."""
        return max(today, self.last)

    def open(self, day: int) -> None:
        """Let `day` be open from now on; days before it stay as they are."""
        if self.opened(day):
            return
        ahead = sorted((*self.ahead, day))
        if self.last == 0 or len(ahead) > MOST_AHEAD:
            self.last = ahead.pop(0)
        while ahead and ahead[0] == self.last + 1 and ahead[0] <= day:  # a later one has not come yet
            self.last = ahead.pop(0)
        self.ahead = tuple(ahead)

    def begin_at(self, day: int) -> None:
        """Forget all days after `day`, which is the one that is open."""
        self.last, self.ahead = day, ()

    def pass_over(self, day: int) -> None:
        """Let all days up to `day` be over, but the last."""
        if day > self.last:
            self.last, self.ahead = day, tuple(later for later in self.ahead if later > day)
