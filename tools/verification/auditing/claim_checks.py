"""Checks of what is said of a mechanism, and of what is asked of it.

`words`: the guarantee's text is of what the mechanism does. `options`: what it is built with it takes, or refuses.
"""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from eyestream.claims.guarantee import guarantee_of
from eyestream.core.charge import Ceilings
from eyestream.core.mechanisms import build
from eyestream.core.noise import Law, SecureNoise
from eyestream.core.noise.laws import LaplaceLaw
from eyestream.core.scopes import Deployment
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations
from eyestream.streams import StreamSpec
from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.calibrations import synthetic, synthetic_joint
from tools.verification.auditing.findings import Finding, Part, first_failure

__all__ = ["options", "words"]

_ADDITIVE_WORDS = ("noise: discrete laplace", "noise: grid", "exact: ball of integers", "sampler: charged inside")
_RESPONSE_WORDS = ("noise: code word", "noise: randomised response", "sampler: nothing is charged")


@contextlib.contextmanager
def _watched() -> Iterator[set[type[Law]]]:
    """Which laws the real noise draws from meanwhile; noise of a class of its own would get no claim."""
    laws, draw = set[type[Law]](), SecureNoise.draw

    def noted(noise: SecureNoise, law: Law) -> NDArray[np.int64]:
        laws.add(type(law))
        return draw(noise, law)

    with mock.patch.object(SecureNoise, "draw", noted):
        yield laws


def words() -> Finding:
    """By the law that a release draws from: what the text must say, and must not; and whom it holds against."""
    deployment = Deployment(StreamSpec("features", 1, ("a",), ("1",), 2.0), Ceilings.of(2, 9.6))
    parts: list[Part] = []
    for name in ("lpa", "cfpa", "dcfpa", "klt"):
        mechanism = build(synthetic_joint(4) if name == "klt" else synthetic(name, 4, 2), 4.8, noise=SecureNoise())
        with _watched() as laws:
            mechanism.release(np.zeros((mechanism.features, mechanism.n)))
        said = {topic: sentence.lower() for topic, sentence in guarantee_of(mechanism, deployment).sentences()}
        additive = laws == {LaplaceLaw}
        right, wrong = (_ADDITIVE_WORDS, _RESPONSE_WORDS) if additive else (_RESPONSE_WORDS, _ADDITIVE_WORDS)
        parts += [(_says(said, one), f"{name}: its text does not say {one!r}") for one in right]
        parts += [
            (not _says(said, one), f"{name}: its text says {one!r}, and that is not what it does") for one in wrong
        ]
        limited = _says(said, "attacker: cannot break") and _says(said, "attacker: generator")
        parts.append((limited, f"{name}: its text names no attacker whose computing power is limited"))
        asked = _says(said, "entropy: operating system's generator, asked directly")
        parts.append((asked, f"{name}: its text does not say where the random words come from"))
        bounded = _says(said, "odds: knows every other chunk") and _says(said, "odds: session only the sum")
        parts.append((bounded, f"{name}: the odds of one chunk are claimed for more than a chunk"))
    return first_failure((True, "texts of lpa, cfpa, dcfpa and klt are of what they do"), *parts)


def _says(said: dict[str, str], what: str) -> bool:
    topic, _, phrase = what.partition(": ")
    return phrase in said[topic]


_REFUSED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("klt", {"k": 3}),
    ("klt", {"shrink": True}),
    ("lpa", {"k": 2}),
    ("lpa", {"fill_band": True}),
    ("cfpa", {"smoth": True}),
    ("cfpa", {"k": "2"}),
    ("dcfpa", {"clip": 1}),
    ("dcfpa", {"smooth": True, "shrink": False}),
)

_APPLIED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("lpa", {"shrink": True}),
    ("lpa", {"smooth": True}),
    ("lpa", {"clip": True}),
    ("cfpa", {"k": 2}),
    ("cfpa", {"fill_band": True}),
    ("cfpa", {"clip": True}),
    ("dcfpa", {"shrink": True}),
    ("dcfpa", {"smooth": True}),
)


def options() -> Finding:
    """An option that a mechanism does not know is refused; each that it takes changes what it releases."""
    known = {name: calibrations.load(f"everyday-{name}-32") for name in ("lpa", "cfpa", "dcfpa", "klt")}
    silent = [f"{name} {given}" for name, given in _REFUSED if not _refuses(known[name], given)]
    idle = [
        f"{name} {given}" for name, given in _APPLIED if _released(known[name], given) == _released(known[name], {})
    ]
    return first_failure(
        (not silent, f"taken in silence: {', '.join(silent) or 'none of ' + str(len(_REFUSED))}"),
        (not idle, f"without any effect: {', '.join(idle)}"),
    )


def _refuses(calibration: Any, given: dict[str, Any]) -> bool:
    try:
        build(calibration, 4.8, **given)
    except ConfigError:
        return True
    return False


def _released(calibration: Any, given: dict[str, Any]) -> bytes:
    """Two chunks of a session with noise that is always the same."""
    mechanism = build(calibration, 4.8, noise=SeededNoise(1), **given)
    session, chunk = mechanism.session(), np.zeros((mechanism.features, mechanism.n))
    return session.release(chunk).tobytes() + session.release(chunk).tobytes()
