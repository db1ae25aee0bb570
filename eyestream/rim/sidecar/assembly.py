"""A sidecar that is ready to run, with the ledger that it spends from."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from eyestream.core.mechanism import require_real_noise
from eyestream.core.meter import Odometer
from eyestream.rim.config import Settings
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.plan import Plan
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.rim.sidecar.spending import SpendingLedger
from eyestream.rim.sidecar.wearing import is_handle
from eyestream.streams import StreamKey

if TYPE_CHECKING:
    from eyestream.rim.sources.source import Feeder, Source

_LOG = logging.getLogger("eyestream.sidecar")


class Assembly:
    """A sidecar that is ready to run, and its ledger, which is open.

    Attributes
    ----------
    plan : the one that holds now.
    sidecar : what runs.
    """

    def __init__(self, plan: Plan, ledger: Ledger, sidecar: Sidecar) -> None:
        self.plan, self.sidecar, self._ledger = plan, sidecar, ledger

    def odometers(self) -> dict[str, Odometer]:
        """Sums that every device has spent that the ledger knows. May wait for the disk: not for the event loop."""
        found = {device.id: self._ledger.odometer(device.id) for device in self.plan.settings.device}
        return {device: odometer for device, odometer in found.items() if odometer is not None}

    async def forget(self, rest: str) -> str:
        """Take the rest of a line ``forget HANDLE``, or ``forget``; returns the answer. Raises LedgerError.

        In this turn histories are overwritten. When it answers, no record of a slot is in the ledger.
        """
        if rest and not is_handle(rest):
            _LOG.warning("control: a handle to be forgotten was refused")
            return "no: expected a handle of 1 to 64 letters, digits and ._:- that is not 0"
        pipeline, number = self.sidecar.pipeline, self.sidecar.number
        devices = {key.device for key in pipeline.keys}
        pipeline.forget({device: number(device, rest) for device in devices} if rest else None)
        await asyncio.to_thread(self._ledger.melt)
        _LOG.warning("the diary is erased, and what earlier sessions revealed: new pseudonyms begin, the debt stays")
        return "forgotten"

    async def reload(self, settings: Settings) -> None:
        """Let the lower ceilings of another configuration hold from now on; one call after the other.

        The new descriptions may take a good part of a second to compute. A thread does that, and chunks go on
        meanwhile. The ledger holds to the lower ceilings before applications read of them.

        Raises
        ------
        ConfigError
            It differs in anything else, or a ceiling is higher; nothing has changed.
        """
        plan = await asyncio.to_thread(self._take_over, settings)
        self.plan = plan
        self.sidecar.take_over(plan)

    def _take_over(self, settings: Settings) -> Plan:
        """In a thread: the plan with other ceilings and its descriptions; then let the ledger hold to it."""
        plan = self.plan.lowered(settings)
        _ = plan.metas  # computed here, and kept
        self._ledger.lower(plan.ceilings)
        return plan


@contextlib.contextmanager
def assemble(
    plan: Plan,
    today: Callable[[], int],
    sources: "Mapping[StreamKey, Source | Feeder]" = MappingProxyType({}),
) -> Iterator[Assembly]:
    """A sidecar that is ready to run, with its ledger open.

    Parameters
    ----------
    plan
        What the configuration says, resolved.
    today
        Days since 1970, UTC.
    sources
        What serves a stream beside the sources that the configuration names.

    Raises
    ------
    ConfigError
        A source, a claim or a broker's settings cannot be used; a device has another ledger; noise has a seed.
    LedgerError
        There is no ledger, or it cannot be used, or it is older than the second place remembers, or overtaken.
    """
    require_real_noise(plan.mechanisms.values())
    settings = plan.settings
    with contextlib.ExitStack() as stack:
        seal = None
        if settings.sidecar.ledger_key is not None:
            from eyestream.rim.ledger.seal import seal_by  # noqa: PLC0415  for who seals

            seal = seal_by(settings.sidecar.ledger_key)
        ledger = stack.enter_context(Ledger(settings.sidecar.ledger, ceilings=plan.ceilings, seal=seal))
        reserving: SpendingLedger = ledger
        if settings.sidecar.second_place is not None:
            from eyestream.rim.ledger.guarded import guarded  # noqa: PLC0415  for who has one

            reserving = stack.enter_context(guarded(ledger, settings.sidecar.ledger, settings.sidecar.second_place))
        for device in settings.device:
            ledger.refuse_moved(device.id, "[[device]]")
        sidecar = Sidecar(
            plan,
            reserving,
            today=today,
            sources={**plan.sources(), **sources},
            ledger_id=ledger.header.ledger_id,
            former_ledgers=ledger.former_ledgers,
            beside=settings.sidecar.ledger,
        )
        yield Assembly(plan, ledger, sidecar)
