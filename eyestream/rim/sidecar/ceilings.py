"""The ceilings of a configuration, read in one place: by `run`, by `check`, and when it is read again.

A lower ceiling only withholds more, so it may be taken over without a restart. Everything else either loosens (a higher
ceiling, another broker), or is bound to what is reserved already and to what applications were told.
"""

from collections.abc import Iterable

from eyestream.errors import ConfigError
from eyestream.privacy.charge import EPSILON_UNITS, Ceilings, ceiling_units, charge_units
from eyestream.rim.config import BudgetSettings, Settings

__all__ = ["ceilings_of", "lowered"]

_EPSILONS = ("window_epsilon", "session_epsilon", "day_epsilon")


def ceilings_of(budget: BudgetSettings, epsilons: Iterable[float]) -> Ceilings:
    """The ceilings of ``[budget]``, each of which lets one chunk through, of whichever stream.

    Parameters
    ----------
    budget
        The table.
    epsilons
        Of one chunk of each stream.

    Raises
    ------
    ConfigError
        A ceiling is below the charge of one chunk.
    """
    charge = max(charge_units(epsilon) for epsilon in epsilons)
    for key in _EPSILONS:
        if ceiling_units(getattr(budget, key)) < charge:
            least = f"{charge / EPSILON_UNITS:.15g}"
            raise ConfigError(f"[budget] {key}: expected at least the epsilon of one chunk as it is booked, {least}")
    return Ceilings.of(budget.window_chunks, budget.window_epsilon, budget.session_epsilon, budget.day_epsilon)


def lowered(old: Settings, new: Settings, epsilons: Iterable[float]) -> Ceilings:
    """The ceilings of `new`, none of which is above that of `old`.

    Raises
    ------
    ConfigError
        A ceiling is higher, or too low for one chunk, or anything else differs.
    """
    for table in Settings.__struct_fields__:
        if table != "budget" and getattr(new, table) != getattr(old, table):
            raise ConfigError(f"[{table}] is another; without a restart only the ceilings of [budget] can be lowered")
    for key in BudgetSettings.__struct_fields__:
        before, after = getattr(old.budget, key), getattr(new.budget, key)
        if key not in _EPSILONS and after != before:
            raise ConfigError("[budget] is another; without a restart only the ceilings of [budget] can be lowered")
        if key in _EPSILONS and after > before:
            raise ConfigError(f"[budget] {key} is higher; without a restart it can only be lowered")
    return ceilings_of(new.budget, epsilons)
