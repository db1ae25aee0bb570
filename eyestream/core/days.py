"""Days of a budget: which of them a ledger has opened, and which one a slot counts for. Pure: no clock.

The ceiling of a day holds of each number that the host's clock calls a day. A clock may be wrong: ahead for a moment,
behind, set again and again. The rule is: **a day is opened once**. What was spent on it is kept as long as the clock
may come back to it. So

(a) what counts for one day never passes the ceiling of a day, whatever the clock showed before, between and after;
(b) a clock that comes back to a day that was open goes on with the sum of that day, and one that goes back to a day
    that is over counts for the last day that is: going back brings nothing.

Known are the last day up to which all days are over, itself the one that is open, and at most `MOST_AHEAD` days that
were opened *ahead* of it, over a gap. In use day after day there are none. After a month without a chunk
today is one, and stays one until the fourth day that is opened; then the gap is closed. A clock that was ahead for a
moment leaves one such day, which nobody misses until it comes: the others between are opened as they come.

(c) So a clock that showed at most `MOST_AHEAD` wrong days, each ahead by more than one, costs nothing once it is right
    again, and one that was ahead by one day costs that day.
(d) Where more wrong days were shown, the lowest of them is taken for right, and nothing new is opened up to it.
    Somebody has to say what day it is: `Days.begin_at`, with which all that counts for later days counts for that one.
    Where sums of these days are not kept any more, all that was ever spent counts for that one. So (a) holds across
    that word too: nothing is granted for a day on which its ceiling is reached. The later days begin empty when they
    come: by that word, none of them has come yet.

How quickly days may be opened is not known here: a clock that is set forward again and again opens one at each turn.
`eyestream.rim.ledger.ledger` bounds that by the time that passes.
"""

from collections.abc import Sequence

__all__ = ["MOST_AHEAD", "Days"]

MOST_AHEAD = 3
"""Days that may be open ahead of the last one without a gap."""


class Days:
    """The days that a ledger has opened, in days since 1970.

    Attributes
    ----------
    last : up to this day there is no other one to open; 0: none was opened.
    ahead : days that were opened after it, ascending.
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
