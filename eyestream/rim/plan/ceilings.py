"""The ceilings of a configuration, and which of them may be lowered while the sidecar runs.

A lower ceiling only withholds more, or lets a lifetime fade sooner, so it may be taken over without a restart.
Everything else either loosens (a higher ceiling, another broker), or is bound to what is reserved already and to the
descriptions that applications have.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from eyestream.core.charge import DELTA_UNITS, EPSILON_UNITS, NEW_WEARERS, Ceilings, Charge, charge_of
from eyestream.core.mechanism import Mechanism
from eyestream.errors import ConfigError
from eyestream.problems import Problems
from eyestream.rim.config import (
    BudgetSettings,
    Settings,
    StreamBudgetSettings,
    WearerBudgetSettings,
)

_SCOPES = ("window", "session", "day", "lifetime")

_Table = BudgetSettings | StreamBudgetSettings | WearerBudgetSettings


def ceilings_of(settings: Settings) -> Ceilings:
    """The ceilings of every device as they are written, and those of its wearers and streams beneath."""
    budget = settings.budget
    return dataclasses.replace(
        _read(budget, budget.window_chunks),
        levels=1 if budget.lifetime_epsilon is None else budget.levels,  # without one `check_ceilings` refuses to fade
        wearer=None if budget.wearer is None else _read(budget.wearer),
        streams={stream.name: _read(stream.budget) for stream in settings.stream if stream.budget is not None},
        new_wearers=NEW_WEARERS if budget.wearer is None else budget.wearer.new_a_day,
    )


def _read(table: _Table, window_chunks: int = 0) -> Ceilings:
    epsilons: dict[str, Any] = {scope: getattr(table, f"{scope}_epsilon", None) for scope in _SCOPES}
    deltas: dict[str, Any] = {f"{scope}_delta": getattr(table, f"{scope}_delta", None) for scope in _SCOPES}
    return Ceilings.of(window_chunks, **epsilons, **deltas)


def check_ceilings(settings: Settings, mechanisms: Mapping[str, Mechanism]) -> None:
    """Refuse ceilings that let no chunk through: of whichever stream of a device, or of the stream that they are for.

    Raises
    ------
    ConfigError
        A ceiling is below the charge of one chunk; or a mechanism has a delta, and nothing bounds the sum of deltas.
        The lifetime is to fade, and has no ceiling, or one below two chunks, or a mechanism has a delta.
    """
    problems, ceilings = Problems(), ceilings_of(settings)
    charges = {name: charge_of(mechanism) for name, mechanism in mechanisms.items()}
    for name, own in ceilings.streams.items():
        _check(f"[stream.budget] of {name}", own, charges[name], problems)
    charge = Charge(max(c.epsilon for c in charges.values()), max(c.delta for c in charges.values()))
    if charge.delta and ceilings.lifetime_delta is None:
        problems.add("[budget] lifetime_delta: missing, and a mechanism of the configuration has a delta")
    _check("[budget]", ceilings, charge, problems)
    if ceilings.wearer is not None:
        _check("[budget.wearer]", ceilings.wearer, charge, problems)
    if settings.budget.levels > 1:
        with problems.gathered():
            check_fading(ceilings, charge, "[budget] lifetime_mode")
    problems.refuse()


def check_fading(ceilings: Ceilings, charge: Charge, where: str, *, lifetime: str = "a lifetime_epsilon") -> None:
    """Refuse a lifetime that cannot fade.

    Parameters
    ----------
    ceilings
        Of a device.
    charge
        The highest of a chunk on level 0.
    where
        The key or option that asks for it, for errors.
    lifetime
        And the one that sets the lifetime's ceiling.

    Raises
    ------
    ConfigError
        The lifetime has no ceiling, or one below two chunks; or there is a delta.
    """
    if ceilings.lifetime is None or ceilings.lifetime < 2 * charge.epsilon:  # level 0 holds a chunk
        raise ConfigError(
            f"{where}: 'fade' needs {lifetime} of at least two chunks, {2 * charge.epsilon / EPSILON_UNITS:.15g}"
        )
    if charge.delta:
        raise ConfigError(f"{where}: expected 'stop', as a mechanism has a delta")


def _check(where: str, ceilings: Ceilings, charge: Charge, problems: Problems) -> None:
    for scope in _SCOPES:
        epsilon, delta = ceilings.on(scope)
        if epsilon is not None and epsilon < charge.epsilon:
            least = f"{charge.epsilon / EPSILON_UNITS:.15g}"
            problems.add(
                f"{where} {scope}_epsilon: expected at least the epsilon of one chunk as it is booked, {least}"
            )
        if delta is not None and delta < charge.delta:
            least = f"{charge.delta / DELTA_UNITS:g}"
            problems.add(f"{where} {scope}_delta: expected at least the delta of one chunk, {least}")


def refuse_others(old: Settings, new: Settings) -> None:
    """Raise ConfigError unless `new` differs from `old` in ceilings alone."""
    for table in Settings.__struct_fields__:
        if _without_ceilings(table, getattr(new, table)) != _without_ceilings(table, getattr(old, table)):
            raise ConfigError(f"[{table}] has changed; without a restart only the ceilings of [budget] can be lowered")


def refuse_raised(old: Ceilings, new: Ceilings) -> None:
    """Raise ConfigError unless each ceiling is as it was, or lower."""
    for raised in new.raised_over(old):
        if raised == "new_wearers":
            raise ConfigError("[budget.wearer] new_a_day is higher; without a restart it can only be lowered")
        *beneath, name = raised.split(".")
        table = {"wearer": "[budget.wearer]", "streams": "[stream.budget]"}[beneath[0]] if beneath else "[budget]"
        key = name if name.endswith("_delta") else f"{name}_epsilon"
        raise ConfigError(f"{table} {key} is higher; without a restart it can only be lowered")


def _without_ceilings(name: str, table: Any) -> Any:
    """The keys of a table that must stay as they are."""
    if isinstance(table, BudgetSettings):
        return table.window_chunks, table.lifetime_mode
    if name == "stream":
        return tuple(msgspec.structs.replace(stream, budget=None) for stream in table)
    return table
