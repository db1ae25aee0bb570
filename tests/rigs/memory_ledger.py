"""A ledger in memory, which forgets everything with the process: for tests and simulations, and nothing else."""

from collections.abc import Sequence

from eyestream.core.accountant import Account
from eyestream.core.charge import Ceilings
from eyestream.core.meter import Odometer
from eyestream.core.reservation import NO_SLOT, Granted, Obstacle, Request, RowMark, Withheld
from eyestream.streams import StreamKey

__all__ = ["MemoryLedger", "decide"]

_NO_CEILINGS = Ceilings()


def decide(
    account: Account, request: Request, ceilings: Ceilings, today: int, own: Ceilings = _NO_CEILINGS
) -> Obstacle | None:
    """Let `account` take the slot of `request`, if there is one, and say what forbids the release; None: nothing."""
    obstacle = account.obstacle(request, ceilings, account.day_of(today), own)
    if obstacle in NO_SLOT:
        return obstacle
    announced = account.announcement(request, ceilings, own, granted=obstacle is None)
    if announced is not None:
        account.announce(request.key.stream, announced, request.wearer)
    spent = Granted(request, account.level(request, ceilings)).spent if obstacle is None else None
    epsilon, delta = (spent.epsilon, spent.delta) if spent else (0, 0)
    account.take(
        request.key.stream,
        request.session,
        request.last_row,
        day=account.day_of(today),
        epsilon=epsilon,
        delta=delta,
        wearer=request.wearer,
    )
    return obstacle


class MemoryLedger:
    """A `LedgerPort` that decides as the durable one does.

    Parameters
    ----------
    ceilings
        The budget of every device, over all its streams, and of single streams beneath.
    """

    def __init__(self, ceilings: Ceilings) -> None:
        self._ceilings = ceilings
        self._accounts: dict[str, Account] = {}

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        """Decide about each request, in order."""
        return [self._reserve(request, day) for request in requests]

    def mark(self, key: StreamKey) -> RowMark | None:
        """Up to where the rows of the stream are refused; None: it has none."""
        account = self._accounts.get(key.device)
        return None if account is None else account.mark(key.stream)

    def odometer(self, device: str) -> Odometer | None:
        """What the device has spent; None: it is not known."""
        account = self._accounts.get(device)
        return None if account is None else account.odometer()

    def _reserve(self, request: Request, day: int) -> Granted | Withheld:
        account = self._accounts.setdefault(request.key.device, Account())
        own = self._ceilings.beneath(request.key.stream)
        level = account.level(request, self._ceilings)
        obstacle = decide(account, request, self._ceilings, day, own)
        return Granted(request, level) if obstacle is None else Withheld(request, obstacle)
