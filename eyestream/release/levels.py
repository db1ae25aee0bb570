"""What a release may cost at most: what its chunk was charged, on its level of a lifetime that fades."""

from eyestream.privacy.charge import Charge
from eyestream.privacy.reservation import Granted

__all__ = ["refuse_above"]


def refuse_above(granted: Granted, cost: Charge) -> None:
    """Raise RuntimeError where a release of `cost` would cost more than was `granted`, or nothing may be released."""
    spent = granted.spent
    if spent is None or cost.epsilon > spent.epsilon or cost.delta > spent.delta:
        raise RuntimeError("a release would cost more than its chunk was charged")
