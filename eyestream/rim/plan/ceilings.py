"""The ceilings of a configuration, and which of them may be lowered while the sidecar runs.

A lower ceiling only withholds more, or lets a lifetime fade sooner, so it may be taken over without a restart.
Everything else either loosens (a higher ceiling, another broker), or is bound to what is reserved already and to the
descriptions that applications have.
"""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from eyestream.errors import ConfigError
from eyestream.privacy.charge import DELTA_UNITS, EPSILON_UNITS, Ceilings, Charge, ceiling_units
from eyestream.privacy.mechanism import Mechanism
from eyestream.problems import Problems
from eyestream.rim.config import (
    BudgetSettings,
    Settings,
    StreamBudgetSettings,
    StreamSettings,
    WearerBudgetSettings,
)

__all__ = ["AllCeilings", "ceilings_of", "check_lowered", "fading"]

_SCOPES = ("window", "session", "day", "lifetime")

_Table = BudgetSettings | StreamBudgetSettings | WearerBudgetSettings


@dataclass(frozen=True, slots=True)
class AllCeilings:
    """What a ledger holds every device to.

    Attributes
    ----------
    device : of a device, over all its streams, and of its wearers.
    streams : of single streams of a device, by name; only those that have a table of their own.
    """

    device: Ceilings
    streams: Mapping[str, Ceilings]


def ceilings_of(settings: Settings, mechanisms: Mapping[str, Mechanism]) -> AllCeilings:
    """The ceilings of a configuration, each of which lets one chunk through: of whichever stream, or of its own.

    Parameters
    ----------
    settings
        The configuration.
    mechanisms
        Of its streams, by name.

    Raises
    ------
    ConfigError
        A ceiling is below the charge of one chunk; or a mechanism has a delta, and nothing bounds the sum of deltas.
        The lifetime is to fade, and has no ceiling, or one below two chunks, or a mechanism has a delta.
    """
    problems = Problems()
    charges = {name: Charge.of(mechanism.epsilon, mechanism.delta) for name, mechanism in mechanisms.items()}
    own = {
        stream.name: _read(f"[stream.budget] of {stream.name}", stream.budget, 0, charges[stream.name], problems)
        for stream in settings.stream
        if stream.budget is not None
    }
    device = _of_device(settings.budget, charges.values(), problems)
    problems.refuse()
    return AllCeilings(device, own)


def _of_device(budget: BudgetSettings, charges: Collection[Charge], problems: Problems) -> Ceilings:
    charge = Charge(max(c.epsilon for c in charges), max(c.delta for c in charges))
    if charge.delta and budget.lifetime_delta is None:
        problems.add("[budget] lifetime_delta: missing, and a mechanism of the configuration has a delta")
    ceilings = _read("[budget]", budget, budget.window_chunks, charge, problems)
    if budget.wearer is not None:
        wearer = _read("[budget.wearer]", budget.wearer, 0, charge, problems)
        ceilings = dataclasses.replace(ceilings, wearer=wearer)
    if budget.levels > 1:
        with problems.gathered():
            return fading(ceilings, charge, budget.levels, "[budget] lifetime_mode")
    return ceilings


def fading(
    ceilings: Ceilings, charge: Charge, levels: int, where: str, *, lifetime: str = "a lifetime_epsilon"
) -> Ceilings:
    """The same ceilings with a lifetime that fades on `levels` levels.

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
    return dataclasses.replace(ceilings, levels=levels)


def _read(where: str, table: _Table, window_chunks: int, charge: Charge, problems: Problems) -> Ceilings:
    epsilons: dict[str, Any] = {scope: getattr(table, f"{scope}_epsilon", None) for scope in _SCOPES}
    deltas: dict[str, Any] = {f"{scope}_delta": getattr(table, f"{scope}_delta", None) for scope in _SCOPES}
    for scope, ceiling in epsilons.items():
        if ceiling is not None and ceiling_units(ceiling) < charge.epsilon:
            least = f"{charge.epsilon / EPSILON_UNITS:.15g}"
            problems.add(
                f"{where} {scope}_epsilon: expected at least the epsilon of one chunk as it is booked, {least}"
            )
    for key, ceiling in deltas.items():
        if ceiling is not None and ceiling_units(ceiling, DELTA_UNITS) < charge.delta:
            problems.add(f"{where} {key}: expected at least the delta of one chunk, {charge.delta / DELTA_UNITS:g}")
    return Ceilings.of(window_chunks, **epsilons, **deltas)


def check_lowered(old: Settings, new: Settings) -> None:
    """Raise ConfigError unless `new` differs from `old` in ceilings alone, none of which is higher."""
    for table in Settings.__struct_fields__:
        if _without_ceilings(table, getattr(new, table)) != _without_ceilings(table, getattr(old, table)):
            raise ConfigError(f"[{table}] is another; without a restart only the ceilings of [budget] can be lowered")
    pairs: list[tuple[str, Any, Any]] = [("[budget]", old.budget, new.budget)]
    pairs.append(("[budget.wearer]", old.budget.wearer, new.budget.wearer))
    pairs += [("[stream.budget]", a.budget, b.budget) for a, b in zip(old.stream, new.stream, strict=True)]
    for where, before, after in pairs:
        for key in _ceiling_keys(before, after):
            first, second = getattr(before, key, None), getattr(after, key, None)
            if first is not None and (second is None or second > first):
                raise ConfigError(f"{where} {key} is higher; without a restart it can only be lowered")


def _ceiling_keys(*tables: _Table | None) -> list[str]:
    fields = {field for table in tables if table is not None for field in table.__struct_fields__}
    return sorted(fields - {"window_chunks", "lifetime_mode", "wearer"})


def _without_ceilings(name: str, table: Any) -> Any:
    """What of a table must stay as it is."""
    if isinstance(table, BudgetSettings):
        return table.window_chunks, table.lifetime_mode
    if name == "stream":
        return tuple(_without_budget(stream) for stream in table)
    return table


def _without_budget(stream: StreamSettings) -> StreamSettings:
    return msgspec.structs.replace(stream, budget=None)
