"""Sums of each wearer of a device, beneath the device. Exact integers, no clock, no file.

A budget has two subjects: a device, and each of its wearers, whom the tracker names with a handle from 1 to 2^32 - 1
(0: nobody is named). Both must allow a chunk, and both are charged for it. A wearer has ceilings of days and of a
lifetime; windows and sessions of the device bound the wearer too. A day has room for so many handles that are new.
`BUDGET.md` says what this protects and what it rests on.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.meter import Meter, MeterState, OtherDays, WearerOdometer

MOST_WEARERS = 1024
"""Handles of a device: a handle is a person's for good, and none is ever forgotten."""

_NO_SESSION = 0, 0

_NEW, _ONE = 0, Charge(1)
"""The handle that nobody has, under which new handles are counted, each as one unit; and that unit."""


class WearerState(NamedTuple):
    """A wearer as plain values; with the handle 0 it has no epsilon but the number of handles, new ones by day.

    `today` has the last day, epsilon and delta on it, and epsilon and delta that count on the next one too. It is None
    in ledgers of versions that did not keep it.
    """

    wearer: int
    epsilon: int
    delta: int
    today: tuple[int, int, int, int, int] | None = None


class Wearers:
    """The sums of all wearers of one device, by handle. A handle of 0 has no sums."""

    __slots__ = ("_meters", "_new")

    def __init__(self) -> None:
        self._meters: dict[int, Meter] = {}
        self._new = Meter(0)

    def is_known(self, wearer: int) -> bool:
        """Whether `wearer` was announced."""
        return wearer in self._meters

    def forbids(self, wearer: int, ceilings: Ceilings, charge: Charge, day: int) -> bool:
        """Whether one more chunk that names `wearer` would pass a ceiling of a wearer, or names one too many.

        `ceilings` of the device.
        """
        meter, own = self._meters.get(wearer), ceilings.wearer
        if meter is None and len(self._meters) >= MOST_WEARERS:
            return True
        if _is_new(meter):
            newcomers = Ceilings(day=ceilings.new_wearers)
            if self._new.obstacle(newcomers, _ONE, _NO_SESSION, day) is not None:
                return True
        return own is not None and (meter or Meter(0)).obstacle(own, charge, _NO_SESSION, day) is not None

    def announce(self, wearer: int) -> None:
        """Let what is damaged from now on be charged to `wearer` too."""
        if wearer and wearer not in self._meters and len(self._meters) < MOST_WEARERS:
            self._meters[wearer] = Meter(0)

    def take(self, wearer: int, day: int, epsilon: int, delta: int, last_day: int | None = None) -> None:
        """Take a slot that names `wearer`; one that costs nothing lets a day of a known wearer begin.

        `last_day` as for `Meter.take`.
        """
        meter = self._meters.get(wearer)
        if epsilon and _is_new(meter):
            self._new.take(day, 1, 0, last_day)
        if meter is None and epsilon:
            meter = self._meters[wearer] = Meter(0)
        if meter is not None:
            meter.take(day, epsilon, delta, last_day)

    def merge(self, day: int, epsilon: int, delta: int, count: int = 1) -> None:
        """Charge every wearer for `count` records that cannot be read; `day` is the device's.

        Each may have been the first of a handle that was announced.
        """
        for meter in self._meters.values():
            meter.take(day, 0, 0, 0)  # which days may come again only the ledger knows: all are kept
            meter.merge(epsilon, delta)
        if self._meters:
            self._new.take(day, 0, 0, 0)
            self._new.merge(count, 0)

    def melt(self, day: int, last_day: int) -> None:
        """Forget on which day before `day`, the device's, each was here last; `last_day` as for `Meter.take`.

        No sum falls: it is what a slot of that day does which costs nothing.
        """
        for meter in self._meters.values():
            if meter.day < day:
                meter.take(day, 0, 0, last_day)

    @property
    def meters(self) -> Mapping[int, Meter]:
        """The sums of each, by handle; that of 0 counts handles, where there were any."""
        return {_NEW: self._new, **self._meters} if self._new.epsilon else self._meters

    def odometers(self, day: int) -> Mapping[int, WearerOdometer]:
        """Sums of each wearer so far; `day` is the device's."""
        return {
            wearer: WearerOdometer(m.epsilon, m.delta, *((m.day_epsilon, m.day_delta) if m.day == day else (0, 0)))
            for wearer, m in self._meters.items()
        }

    def state(self) -> list[WearerState]:
        """Everything that it knows."""
        return [WearerState(wearer, m.epsilon, m.delta, m.state()[3:8]) for wearer, m in self.meters.items()]

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
            state = MeterState(0, 0, [], *known, epsilon, delta, 0, 0)
            meter = Meter.restored(state, other_days.get(str(wearer), ()))
            if wearer == _NEW:
                wearers._new = meter
            else:
                wearers._meters[wearer] = meter
        return wearers


def _is_new(meter: Meter | None) -> bool:
    """Whether nothing was ever charged under a handle."""
    return meter is None or meter.epsilon == 0
