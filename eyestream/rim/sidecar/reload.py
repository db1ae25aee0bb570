"""What of another configuration may hold without a restart: lower ceilings of the budget, and nothing else.

A lower ceiling only withholds more. Everything else either loosens (a higher ceiling, another broker), or is bound to
what is reserved already and to what applications were told (epsilon, mechanism, chunk length).
"""

import msgspec

from eyestream.errors import ConfigError
from eyestream.privacy.charge import Ceilings, ceiling_units, charge_units
from eyestream.rim.config import Settings

__all__ = ["lowered_ceilings"]

_LOWERABLE = ("window_epsilon", "session_epsilon", "day_epsilon")


def lowered_ceilings(old: Settings, new: Settings, epsilon: float) -> Ceilings:
    """The ceilings of `new`, none of which is above that of `old`, nor below `epsilon`, that of one chunk.

    Raises
    ------
    ConfigError
        A ceiling is, or anything else differs.
    """
    same = msgspec.structs.replace(new.budget, **{key: getattr(old.budget, key) for key in _LOWERABLE})
    for table in Settings.__struct_fields__:
        if (same if table == "budget" else getattr(new, table)) != getattr(old, table):
            raise ConfigError(f"[{table}] is another; without a restart only the ceilings of [budget] can be lowered")
    for key in _LOWERABLE:
        ceiling = getattr(new.budget, key)
        if ceiling > getattr(old.budget, key):
            raise ConfigError(f"[budget] {key} is higher; without a restart it can only be lowered")
        if ceiling_units(ceiling) < charge_units(epsilon):
            raise ConfigError(f"[budget] {key}: expected at least the epsilon of one chunk, {epsilon:g}")
    budget = new.budget
    return Ceilings.of(budget.window_chunks, budget.window_epsilon, budget.session_epsilon, budget.day_epsilon)
