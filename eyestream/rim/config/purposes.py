"""A purpose in the place of a calibration: ``[stream.privacy] purpose = "trends"`` with ``epsilon_per_minute``.

It becomes the calibration, and so the chunk length, and the epsilon of a chunk that `eyestream advise` answers with at
that price. The figures that decide come with the program. So a newer version with better figures, or a better
calibration, may mean another one by the same purpose; that is what a purpose is for.

**What a newer version must not do is to spend more.** The advice alone would not keep to that: its own epsilon might
rise. So nothing that costs comes from it. `epsilon_per_minute` must stand beside the purpose, and is the operator's
figure: whatever is chosen costs no more than that, on average, a minute of rows without a pause. A session's last chunk
costs as much as a full one, however few rows it has; so many short sessions cost more a minute, the more the longer the
chunks, and `session_epsilon` and `day_epsilon` bound that. A longer chunk costs more by itself at the same price a
minute, and with it a blink or a second of gaze; that is held by `window_epsilon`, also the operator's, below which the
chunks that one second enters must fit, else the sidecar does not start (`check_window`). Pinning the
calibration as well was the other way; whoever wants that names it, and no purpose.
"""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from eyestream.core.purposes import PURPOSES, TASKS, Row, Wish, choose
from eyestream.errors import ConfigError, meant

_ADVICE = Path(__file__).resolve().parents[2] / "data" / "advice.json"
_USUAL = {
    name: f"{wish.epsilon_per_minute:g} is what `eyestream init --purpose` writes" for name, wish in PURPOSES.items()
}
_INSTEAD = ("calibration", "epsilon", "mechanism")


@cache
def load_table() -> dict[str, Any]:
    """The saved figures of what ships: `rows`, `corpus`, `people` and so on; nobody changes them.

    Read once: a process that takes its configuration again, after the package was upgraded, goes on with what it began
    with, as with its mechanisms. A restart takes the newer figures.
    """
    table: dict[str, Any] = json.loads(_ADVICE.read_text(encoding="utf-8"))
    return table


def resolve_purpose(
    privacy: dict[str, Any], where: str, rows: Callable[[], list[Row]] = lambda: load_table()["rows"]
) -> dict[str, Any]:
    """A ``[stream.privacy]`` table with calibration and epsilon where it has a purpose; the purpose stays.

    Parameters
    ----------
    privacy
        The table; one without a purpose is left as it is.
    where
        Its place in the file, for messages.
    rows
        Gives the saved figures; asked only where there is a purpose.

    Raises
    ------
    ConfigError
        The purpose is unknown, stands beside what it stands for, or has no price; or the figures have no answer for it.
    """
    if "purpose" not in privacy and "epsilon_per_minute" not in privacy:
        return privacy
    return privacy | _answer(privacy, rows(), where)


def check_window(purpose: str, epsilon: float, touched: int, window_epsilon: float) -> None:
    """Raise ConfigError where a second of gaze, which enters `touched` chunks, costs more than a window may."""
    if touched * epsilon > window_epsilon * (1 + 1e-9):
        raise ConfigError(
            f"[budget] window_epsilon: expected at least {touched * epsilon:g}: purpose {purpose!r} comes to a "
            f"calibration of which one second of gaze enters {touched} chunks of epsilon {epsilon:g} each; or name a "
            "calibration in the place of the purpose"
        )


def _answer(privacy: dict[str, Any], rows: list[Row], where: str) -> dict[str, Any]:
    """``calibration`` and ``epsilon`` of the purpose in a ``[stream.privacy]`` table."""
    purpose, minute = privacy.get("purpose"), privacy.get("epsilon_per_minute")
    if purpose is None:
        raise ConfigError(f"{where} purpose: missing beside epsilon_per_minute; a calibration goes with epsilon")
    known = sorted({*PURPOSES, TASKS})
    if not isinstance(purpose, str) or purpose not in known:
        near = meant(purpose, known) if isinstance(purpose, str) else ""
        raise ConfigError(f"{where} purpose: expected one of {', '.join(known)}{near}")
    for key in _INSTEAD:
        if key in privacy and (purpose, key) != (TASKS, "calibration"):
            raise ConfigError(f"{where} purpose: it stands for calibration and epsilon; take out {key}, or the purpose")
    if minute is None:
        raise ConfigError(
            f"{where} epsilon_per_minute: missing beside purpose: what it may cost is for you to say, as no newer "
            f"version may raise it ({_USUAL.get(purpose, '4.5 is usual for words of tasks')})"
        )
    if isinstance(minute, bool) or not isinstance(minute, int | float) or not math.isfinite(minute):
        raise ConfigError(f"{where} epsilon_per_minute: expected a number")
    if purpose == TASKS:
        if "calibration" not in privacy:
            raise ConfigError(
                f"{where} calibration: missing beside purpose {TASKS!r}: which tasks there are is for you to say; "
                "eyestream calibrate --labels makes one"
            )
        return {"epsilon": float(minute)}  # of a chunk: once its length is known (`eyestream.rim.plan`)
    wish = PURPOSES[purpose]
    try:
        choice = choose(Wish(float(minute), wish.delay_s, wish.hide_identity), rows)
    except ConfigError as error:
        key, _, said = str(error).partition(": ")
        raise ConfigError(f"{where} {key if key == 'epsilon_per_minute' else 'purpose'}: {said}") from None
    return {"calibration": choice.calibration, "epsilon": choice.epsilon}
