"""What each wearer of a device has spent, beneath the device. Exact integers, no clock, no file.

Two subjects
------------
A budget has a subject. The first is a *device*: its ceilings bound the sum over all its chunks, whoever wears it. The
second is a *wearer* of that device: a person whom the tracker names with a handle, a number from 1 to 2^32 - 1 that
means nothing outside. A session has one wearer from its start to its end, and each of its chunks names that wearer. The
ceilings of a wearer bound the sum over the chunks of the device that name the wearer, over all its streams.

Both subjects must allow a chunk, and both are charged for it. So the sums of the device are what they would be without
handles. And no sum of a wearer passes a ceiling of the wearer: each chunk is checked before it is granted, and charges
are not negative.

*Privacy unit.* Neighbours differ in any way in the rows of all chunks that name one wearer. What is granted and what is
withheld follows from charges, never from rows. So, by adaptive composition, the loss of everything that the device
releases between such neighbours is at most the lifetime's ceiling of a wearer.

What it rests on
----------------
*No handle* (0): the chunk counts for its device alone, and no ceiling of a wearer bounds it.

*Handles are believed.* Two persons under one handle share one budget, which counts too much. One person under many
handles has as many budgets: then the ceilings of a wearer bound little, and those of the device still bound all. A
device has at most `MOST_WEARERS` handles. A chunk that names one more is withheld, as what is forgotten cannot be
counted.

*One device.* The same handle on another device is another wearer, also in one ledger: nobody says that it is the same
person.

Which ceilings
--------------
*Day and lifetime*, as of the device. *Window*: w consecutive slots are of the device, and the slots of a wearer are
some of them. So the window of the device bounds them too. *Session*: it has one wearer, so the session's ceiling of the
device bounds it. *Fading*: the lifetime of a device may fade, that of a wearer stops. Epsilon stands on every published
chunk. A level that followed the sum of a wearer would mark the wearer on each of them.

*What withholding tells.* A chunk that is withheld for a ceiling of a wearer is missed by everybody who reads. It tells
that who wears the device has spent that much. After the end of a lifetime, each later session of that wearer can be
known by it. Nothing else that is published depends on a handle.

Damage
------
A wearer is announced, durably, before the first chunk that is granted in the wearer's name. A record that cannot be
read may be of any wearer who is known. So each of them is charged what the device is charged.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.meter import Meter, MeterState, OtherDays, WearerOdometer

__all__ = ["MOST_WEARERS", "WearerState", "Wearers"]

MOST_WEARERS = 1024
"""Handles of a device: a handle is a person's for good, and none is ever forgotten."""

_NO_SESSION = 0, 0


class WearerState(NamedTuple):
    """A wearer as plain values.

    `today` has the last day, epsilon and delta on it, and epsilon and delta that count on the next one too. It is None
    in ledgers of versions that did not keep it.
    """

    wearer: int
    epsilon: int
    delta: int
    today: tuple[int, int, int, int, int] | None = None


class Wearers:
    """The sums of all wearers of one device, by handle. A handle of 0 has no sums."""

    __slots__ = ("_meters",)

    def __init__(self) -> None:
        self._meters: dict[int, Meter] = {}

    def known(self, wearer: int) -> bool:
        """Whether `wearer` was announced."""
        return wearer in self._meters

    def forbid(self, wearer: int, ceilings: Ceilings | None, charge: Charge, day: int) -> bool:
        """Whether one more chunk that names `wearer` would pass a ceiling of a wearer, or names one too many."""
        meter = self._meters.get(wearer)
        if meter is None and len(self._meters) >= MOST_WEARERS:
            return True
        return ceilings is not None and (meter or Meter(0)).obstacle(ceilings, charge, _NO_SESSION, day) is not None

    def announce(self, wearer: int) -> None:
        """Let what is damaged from now on be charged to `wearer` too."""
        if wearer and wearer not in self._meters and len(self._meters) < MOST_WEARERS:
            self._meters[wearer] = Meter(0)

    def take(self, wearer: int, day: int, epsilon: int, delta: int, last_day: int | None = None) -> None:
        """Take a slot that names `wearer`; one that costs nothing lets a day of a known wearer begin.

        `last_day` as for `Meter.take`.
        """
        meter = self._meters.get(wearer)
        if meter is None and epsilon:
            meter = self._meters[wearer] = Meter(0)
        if meter is not None:
            meter.take(day, epsilon, delta, last_day)

    def merge(self, day: int, epsilon: int, delta: int) -> None:
        """Charge every wearer for what cannot be read; `day` is the device's."""
        for meter in self._meters.values():
            meter.take(day, 0, 0, 0)  # which days may come again only the ledger knows: all are kept
            meter.merge(epsilon, delta)

    @property
    def meters(self) -> Mapping[int, Meter]:
        """The sums of each, by handle."""
        return self._meters

    def odometers(self, day: int) -> Mapping[int, WearerOdometer]:
        """What each has spent so far; `day` is the device's."""
        return {
            wearer: WearerOdometer(m.epsilon, m.delta, *((m.day_epsilon, m.day_delta) if m.day == day else (0, 0)))
            for wearer, m in self._meters.items()
        }

    def state(self) -> list[WearerState]:
        """Everything that it knows."""
        return [WearerState(wearer, m.epsilon, m.delta, m.state()[3:8]) for wearer, m in self._meters.items()]

    @classmethod
    def restored(
        cls, states: Iterable[WearerState], day: int, other_days: Mapping[str, OtherDays] = MappingProxyType({})
    ) -> "Wearers":
        """The sums that `states` were taken from; of one without a day, all counts as spent on the device's `day`.

        `other_days` of their meters, by handle in decimal.
        """
        wearers = cls()
        for wearer, epsilon, delta, today in states:
            known = today or (day, epsilon, delta, epsilon, delta)
            wearers._meters[wearer] = Meter.restored(
                MeterState(0, 0, [], *known, epsilon, delta, 0, 0), other_days.get(str(wearer), ())
            )
        return wearers
