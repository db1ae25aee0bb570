"""Configurations near a valid one, most of them wrong, and what must hold of each."""

import re
import secrets
from pathlib import Path

import msgspec
import numpy as np
from hypothesis import strategies as st

import eyestream
from eyestream.core.accountant import Account, Announcement
from eyestream.core.charge import EPSILON_UNITS, Charge, spendable
from eyestream.core.mechanisms import CFPA, DCFPA, KLT, LPA
from eyestream.core.reservation import Request
from eyestream.errors import ConfigError, OperatorError
from eyestream.rim import config
from eyestream.rim.config import Settings
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import Assembly, assemble
from eyestream.streams import StreamKey

__all__ = ["configurations", "judge"]

EXAMPLE = (Path(eyestream.__file__).parent / "data" / "sidecar.toml").read_text(encoding="utf-8")
LINES = re.sub(r"^# (\[[\w.]+\]|\w+ = )", r"\1", EXAMPLE, flags=re.MULTILINE).splitlines()
KEYS = [number for number, line in enumerate(LINES) if re.match(r"\w+ = ", line)]
TABLES = [number for number, line in enumerate(LINES) if line.startswith("[")]
OPTIONAL = [number for number, line in enumerate(LINES) if line not in EXAMPLE.splitlines()]
CALIBRATIONS = [f"everyday-{name}-{n}" for name in ("lpa", "cfpa", "dcfpa", "klt", "klt-one") for n in (32, 64)]
CALIBRATIONS += ["everyday-klt-anchored-64"]

_NUMBERS = (
    "nan +nan inf -inf -1 0 0.0 -0.0 1 2 3 64 0.5 4.8 9.6 1e-300 5e-324 1e-12 1e-13 1e6 1e7 1.8e7 1.9e7 1e18 1e300"
)
_NUMBERS += " 1e400 9223372036854775807 18446744073709551616 1000001 -9223372036854775809 0x10 1_000"
_TEXTS = (
    "none identity off raw pass-through Laplace lpa dp 4.8 nan inf . / .. /dev/null /etc/passwd ./sidecar.toml ledger"
)
_OTHERS = [
    '""',
    "true",
    "false",
    "[]",
    "{}",
    "[4.8]",
    "{ epsilon = 4.8 }",
    "1979-05-27",
    '"\\u0000"',
    '"a\\nb"',
    "",
    "'''",
    "null",
]

values = st.one_of(
    st.sampled_from(_NUMBERS.split()),
    st.sampled_from([f'"{text}"' for text in _TEXTS.split() + CALIBRATIONS]),
    st.sampled_from(_OTHERS),
    st.floats().map(repr),
    st.floats(min_value=1e-6, max_value=1e5).map(repr),
    st.integers(-(2**70), 2**70).map(str),
)
unknown = st.sampled_from(
    [
        "mechanism",
        "noise",
        "seed",
        "pass_through",
        "debug",
        "enabled",
        "Epsilon",
        "delta",
        "dry_run",
        "sampler",
        "sensitivity",
    ]
)
places = st.sampled_from(range(len(LINES)))
calibrations = st.sampled_from(CALIBRATIONS)


amounts = st.floats(-3, 6).map(lambda power: repr(10.0**power))
PLAUSIBLE = {
    "epsilon": st.one_of(amounts, st.sampled_from(["0.1", "0.48", "1", "4.8", "24", "48"])),
    "k": st.integers(1, 40).map(str),
    "window_chunks": st.integers(1, 100).map(str),
    "window_epsilon": amounts,
    "session_epsilon": amounts,
    "day_epsilon": amounts,
    "grace_s": amounts,
    "idle_s": amounts,
    "window_s": amounts,
    "release": st.sampled_from(['"on_row"', '"on_clock"']),
    "shrink": st.sampled_from(["true", "false"]),
    "clip": st.sampled_from(["true", "false"]),
    "smooth": st.sampled_from(["true", "false"]),
}
"""Values that may stand there, each by itself."""


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """The text of the example with one to four changes, another calibration, and some of its optional keys."""
    lines: list[str | None] = list(LINES)
    kept = draw(st.sets(st.sampled_from(OPTIONAL), max_size=3)) if draw(st.integers(0, 3)) == 0 else set()
    for number in OPTIONAL:
        if number not in kept:
            lines[number] = None
    changing = draw(st.sampled_from([_change, _choose]))
    for _ in range(draw(st.integers(1, 4))):
        changing(draw, lines)
    text = "\n".join(line for line in lines if line is not None)
    return text.replace('"everyday-klt-anchored-64"', f'"{draw(calibrations)}"') + "\n"


def _choose(draw: st.DrawFn, lines: list[str | None]) -> None:
    name = draw(st.sampled_from(sorted(PLAUSIBLE)))
    at = draw(st.sampled_from([number for number in KEYS if LINES[number].startswith(f"{name} = ")]))
    lines[at] = f"{name} = {draw(PLAUSIBLE[name])}"


def _change(draw: st.DrawFn, lines: list[str | None]) -> None:
    kind = draw(st.sampled_from(["value", "value", "value", "missing", "twice", "extra", "table", "renamed", "letter"]))
    if kind in {"value", "missing", "twice", "renamed"}:
        at = draw(st.sampled_from(KEYS))
        name, _, old = (lines[at] or LINES[at]).partition(" = ")
        lines[at] = {
            "value": f"{name} = {draw(values)}",
            "missing": None,
            "twice": f"{name} = {old}\n{name} = {old}",
            "renamed": f"{draw(unknown)} = {old}",
        }[kind]
    elif kind == "extra":
        at = draw(st.sampled_from(TABLES))
        lines[at] = f"{lines[at] or LINES[at]}\n{draw(unknown)} = {draw(values)}"
    elif kind == "table":
        at = draw(st.sampled_from(TABLES))
        lines[at] = draw(st.sampled_from([None, f"[{draw(unknown)}]", f"[{LINES[at]}]", LINES[at].strip("[]")]))
    else:
        at = draw(places)
        line = lines[at] or ""
        cut = draw(st.integers(0, len(line)))
        lines[at] = line[:cut] + draw(st.sampled_from('"=[].-#e0\n\x00é')) + line[cut:]


def judge(text: str, folder: Path) -> str:
    """Load it and assemble its sidecar; ``refused`` or ``assembled``, and `AssertionError` when it is neither."""
    path = folder / "sidecar.toml"
    path.write_text(text, encoding="utf-8")
    try:
        settings = config.load(path)
    except ConfigError as error:
        for line in str(error).splitlines():
            _check_line(line, path)
        return "refused when read"
    ledger = folder / f"ledger-{secrets.token_hex(4)}"
    try:
        settings = _with_ledger(settings, ledger)
        with assemble(resolved(settings), today=lambda: 20_000) as made:
            _check_made(made, settings)
    except OperatorError as error:
        for line in str(error).splitlines():
            assert len(line.split()) > 3, line
        return f"refused when assembled: {type(error).__name__}"
    finally:
        ledger.unlink(missing_ok=True)
    return "assembled"


def _with_ledger(settings: Settings, ledger: Path) -> Settings:
    """The same settings with a ledger that is there."""
    own = msgspec.structs.replace(settings.sidecar, ledger=ledger)
    settings = msgspec.structs.replace(settings, sidecar=own)
    create_ledger(ledger, created=0)
    return settings


def _check_line(line: str, path: Path) -> None:
    assert line.startswith(f"{path}: "), line
    rest = line.removeprefix(f"{path}: ")
    assert re.match(r"\[|not TOML|the file|has the tables|not a text|.*: unknown key", rest), line


def _check_made(made: Assembly, settings: Settings) -> None:
    """One of our mechanisms, at the configured price, under ceilings that are finite and hold."""
    [mechanism], ceilings, budget = made.plan.mechanisms.values(), made._ledger._ceilings, made.plan.settings.budget
    assert type(mechanism) in {LPA, CFPA, DCFPA, KLT}
    assert 0 < mechanism.epsilon < np.inf
    assert mechanism.epsilon == spendable(settings.stream[0].privacy.epsilon)
    assert "differential privacy" in mechanism.guarantee
    charge = Charge.of(mechanism.epsilon, mechanism.delta)
    for ceiling, stated in (
        (ceilings.window, budget.window_epsilon),
        (ceilings.session, budget.session_epsilon),
        (ceilings.day, budget.day_epsilon),
    ):
        assert ceiling is not None
        assert stated is not None
        assert charge.epsilon <= ceiling <= stated * EPSILON_UNITS * (1 + 1e-12)
    account = Account()
    most = min(ceilings.window, ceilings.session, ceilings.day) if ceilings.window_chunks > 1 else ceilings.session
    key, n = StreamKey("d", "s"), mechanism.n
    account.announce("s", Announcement(n, ceilings.window_chunks, 0, 1, most, 0))
    account.take("s", 1, 0, day=1, epsilon=most)
    assert account.obstacle(Request(key, 1, 1, n, n, charge), ceilings, 1) in {"window", "session", "day"}
    _check_noise(mechanism)


def _check_noise(mechanism: LPA | CFPA | DCFPA | KLT) -> None:
    """No chunk comes out as it went in; a release of the same chunk is another one.

    KLT releases one of a few public words, so that two of its releases may be alike: of many, not all.
    """
    chunk = np.random.default_rng(1).normal(20.0, 5.0, (mechanism.features, mechanism.n))

    def released() -> np.ndarray:
        session = mechanism.session()
        while session.awaits_baseline:
            session.anchor(chunk)
        return session.release(chunk)

    once = released()
    assert np.isfinite(once).all()
    noisy = np.asarray(mechanism.noise_sd) > 0
    assert not (once == chunk)[noisy].any()
    if not isinstance(mechanism, KLT):
        assert (once != released()).any()
    elif mechanism.epsilon <= 1:
        assert len({released().tobytes() for _ in range(60)}) > 1
