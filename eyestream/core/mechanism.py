"""The face that all mechanisms share.

A mechanism is built once from (calibration, epsilon, noise) and then frozen: it holds public figures and the source of
noise, and refuses to be changed. Its price is `loss`: of one chunk of one device, all features together, under
`replace_one` in the local model (two chunks are neighbours when they differ in any way inside the declared domain).
`release` is one release: releasing the same chunk twice costs twice.

What is particular to a mechanism is its *core*: from an admitted chunk to a released one. The core holds public figures
too; the arrays that it needs to work are its *step*, of which every release gets one for itself. So any number of
threads may release at once, and share neither rows nor noise. A *session* is for one thread at a time and refuses a
second one. A copy of the process that is made during a release waits for nobody.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import ClassVar, Protocol, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.core.charge import faded
from eyestream.core.frame import Frame, Page, Workspaces
from eyestream.core.kinds import Claim, DifferentialPrivacy, Loss, NoClaim
from eyestream.core.noise import Noise, SecureNoise, is_certified
from eyestream.core.protection import Fact, Protection
from eyestream.core.release_type import InputDomain, OutputSchema, Rows
from eyestream.core.session import Session
from eyestream.errors import ConfigError, MechanismError

__all__ = ["RAISED", "Core", "Mechanism", "Session", "Step", "building", "require_real_noise"]

Array = NDArray[np.float64]


RAISED = (
    ArithmeticError,  # FloatingPointError, OverflowError, ZeroDivisionError, those of decimal
    AssertionError,
    AttributeError,
    BufferError,
    EOFError,
    ImportError,
    LookupError,  # IndexError, KeyError
    MemoryError,
    NameError,
    OSError,
    RuntimeError,  # NotImplementedError, RecursionError
    TypeError,
    ValueError,  # numpy's LinAlgError, UnicodeError
    Warning,  # where warnings are errors
    msgspec.MsgspecError,
)
"""Errors of Python, numpy and most libraries for their arguments, or for what they cannot do. What is derived from
`Exception` alone, and what ends a program, goes on as it is."""


@contextmanager
def building(name: str, epsilon: float) -> Iterator[None]:
    """Around whatever makes a mechanism `name` for `epsilon`, or says what it guarantees.

    Raises
    ------
    MechanismError
        In place of anything of `RAISED`, which is its cause; our own errors stay what they are.
    """
    try:
        yield
    except RAISED as error:
        said = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":. ")
        raise MechanismError(
            f"mechanism {name} cannot be built at epsilon {epsilon}: {said}. Take another epsilon, calibration or "
            "option, or mend the mechanism"
        ) from error


class Step(Protocol):
    """One release at a time, with arrays of its own."""

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array | None:
        """Write the release of an admitted chunk (A, n) to `out` (A, n); give the session's new state.

        Parameters
        ----------
        admitted
            Finite and in range; may be overwritten.
        noise
            Where the noise comes from.
        turn
            How many chunks the session has released.
        state
            What the session knows from *released* values alone; None when the core has no state. Not to be changed.
        """
        ...


class Core(Protocol):
    """The part that is particular to a mechanism. Public figures alone, never changed.

    Where the domain does not keep features and rows, it has `schema`, an `OutputSchema`, too: releases are of its
    shape, and `noise_sd` is of its features.
    """

    @property
    def delta(self) -> Fraction:
        """Delta of one chunk."""
        ...

    @property
    def k(self) -> tuple[int, ...]:
        """Coefficients kept of each released feature; one number where coded jointly; empty: nothing cut."""
        ...

    @property
    def noise_sd(self) -> Array:
        """(A,) expected error of a released value, root mean square over the rows."""
        ...

    @property
    def start(self) -> Array | None:
        """State of a session before its first chunk; None when chunks do not help each other."""
        ...

    def step(self) -> Step:
        """A step that releases, with arrays of its own."""
        ...


class Mechanism:
    """Private release of chunks.

    Parameters
    ----------
    frame
        Calibration, epsilon and features.
    core
        What is particular to the mechanism.
    noise
        Source of noise; tests alone pass another than `SecureNoise`.
    options
        What the mechanism was built with, by name; for `repr`, claims and snapshots.

    Attributes
    ----------
    name, protection, domain : of the class: what calibrations call it, what its guarantee rests on, and what it takes.
    unit : of the class: what a chunk is called in its guarantee.
    calibration : made for this mechanism.
    epsilon, delta, loss : of one chunk, all features together.
    noise_sd : one number for each released feature: expected standard deviation of the noise in it; 0 for constants.
    sessions : of a pseudonym, whose history is taken off its rows, the first one withheld; 0: there is no history.
    n, features : chunk length and number of features, constants included.
    k : coefficients kept of each feature, 0 for constants; one number where the features are coded jointly; empty where
        nothing is cut.
    frame, core, noise, options : as given.
    """

    name: ClassVar[str]
    protection: ClassVar[Protection]
    domain: ClassVar[InputDomain] = Rows()
    unit: ClassVar[str] = "chunk"

    def __init__(
        self, frame: Frame, core: Core, noise: Noise | None = None, options: Mapping[str, object] | None = None
    ) -> None:
        self.domain.check(frame.calibration)
        self.frame, self.core = frame, core
        self.noise: Noise = noise if noise is not None else SecureNoise()
        self.options = dict(options or {})
        self.calibration, self.epsilon = frame.calibration, frame.epsilon
        self.loss = Loss(self.unit, Fraction(frame.epsilon), core.delta)
        self.delta = float(core.delta)
        self.n, self.features = frame.n, frame.features
        kept = dict(zip(frame.active.tolist(), core.k, strict=False))
        coded_apart = len(core.k) == len(frame.active)
        self.k = tuple(kept.get(feature, 0) for feature in range(frame.features)) if coded_apart else core.k
        self.noise_sd = frame.whole(core.noise_sd) if self.domain.keeps else core.noise_sd
        self.sessions = frame.calibration.sessions
        self._faded: dict[int, Mechanism] = {}
        self._workspaces = Workspaces(lambda: (self.page(), core.step()))

    @property
    def follows(self) -> Array | None:
        """(A,) correlation to expect of a released feature with the truth; None: the mechanism expects none."""
        return None

    def __setattr__(self, name: str, value: object) -> None:
        if "_workspaces" in self.__dict__:
            raise AttributeError(f"a mechanism is frozen: {name} cannot be set; build another one")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"{type(self).__name__}({self.calibration!r}, epsilon={self.epsilon:g}{given})"

    @property
    def schema(self) -> OutputSchema:
        """Schema of a released chunk: the core's own, or features and rows as they came in."""
        of = self.calibration
        own: OutputSchema | None = getattr(self.core, "schema", None)
        return own or OutputSchema(of.names, of.units, (len(of.names), of.n), 1 / of.rate_hz)

    @property
    def claim(self) -> Claim:
        """The claim about one released chunk. A mechanism without differential privacy states another one."""
        takes_off = self.calibration.takes_off
        which = "one chunk" if takes_off is None else takes_off.reach.given
        return DifferentialPrivacy(
            self.loss,
            f"{which} of {self.n} row{'s' * (self.n > 1)} of one device, all features together, replace-one, local "
            "model; losses of chunks add up",
        )

    @property
    def promised(self) -> Claim:
        """`claim`, and none for noise of a test."""
        return self.claim if is_certified(self.noise) else NoClaim("the noise comes from a test source")

    @property
    def guarantee(self) -> str:
        """The claim about one released chunk, in words; "none" with its reason for noise of a test."""
        return self.promised.statement

    @property
    def baseline_chunks(self) -> int:
        """Chunks at the beginning of each session that make its baseline; nothing is released of them by themselves."""
        return 0 if self.calibration.takes_off is None else self.calibration.takes_off.chunks

    def facts(self, seconds: float) -> tuple[Fact, ...]:
        """Facts for a guarantee, of this mechanism alone; its chunks are of so many seconds."""
        takes_off = self.calibration.takes_off
        return () if takes_off is None else (takes_off.fact(self.n, seconds),)

    @property
    def gain(self) -> Fraction | None:
        """Factor by which the release of one chunk raises the chance of a right guess about it, at most.

        On average over releases, for any prior and anything to be guessed (`eyestream.core.leakage`). None where the
        core has no such figure; e^epsilon holds of every pure mechanism. What a library raises meanwhile is a
        MechanismError.
        """
        with building(self.name, self.epsilon):
            gain: Fraction | None = getattr(self.core, "gain", None)
        return gain

    @property
    def identity(self) -> bytes:
        """16 bytes that tell mechanisms apart: of name, calibration, epsilon and options."""
        facts = [self.name, self.calibration.content_hash, self.epsilon.hex(), sorted(self.options.items())]
        return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).digest()

    def release(self, chunk: Array) -> Array:
        """One private release of a chunk, as the first one of a session: a new array of the shape of `schema`.

        Parameters
        ----------
        chunk
            (F, n), features by rows; any values, NaN and infinities are missing.

        Returns
        -------
        A new array of the shape of `schema`; (F, n) unless the domain says otherwise.

        Raises
        ------
        ValueError
            when the shape is another, or the calibration takes something off the rows of sessions.
        """
        if self.calibration.takes_off is not None:
            raise ValueError("the calibration takes something off the rows: chunks are released by sessions alone")
        return self.release_turn(chunk, 0, self.core.start)[0]

    def session(self, snapshot: bytes | None = None) -> "Session":
        """A session, which releases its chunks in order.

        Parameters
        ----------
        snapshot
            Of `Session.snapshot`: the session goes on from there.

        Raises
        ------
        SnapshotError
            when the snapshot is damaged, of another version, or of another mechanism, or sessions have a history.
        """
        if snapshot is None:
            return self.session_after(None)
        from eyestream.core.session_bytes import unpacked  # noqa: PLC0415  for who keeps sessions

        return Session(self, *unpacked(snapshot, self.identity, self.core.start, self.calibration.takes_off))

    def session_after(self, before: "Session | None") -> "Session":
        """The next session of a pseudonym; None: the first one of a new pseudonym.

        Which sessions are released is a matter of their number alone (`eyestream_lab.words`).
        """
        takes_off = self.calibration.takes_off
        past = None if before is None else before.taken_off
        return Session(self, 0, self.core.start, None if takes_off is None else takes_off.session(past))

    def faded(self, level: int) -> "Mechanism":
        """The same mechanism with the epsilon of a level of a lifetime that fades (`eyestream.core.charge`).

        Made once, by the constructor, with calibration, noise and options of this one.

        Raises
        ------
        ConfigError
            when the epsilon of the level cannot be used.
        MechanismError
            in place of what a library raises meanwhile (`building`).
        """
        if level == 0:
            return self
        if level not in self._faded:
            make = cast("Callable[..., Mechanism]", type(self))
            epsilon = faded(self.epsilon, level)
            with building(self.name, epsilon):
                self._faded[level] = make(self.calibration, epsilon, noise=self.noise, **self.options)
        return self._faded[level]

    def continue_session(self, session: "Session") -> "Session":
        """A session of another level of this mechanism goes on with this one: see `Session.continued`."""
        return session.continued(self, self.core.start)

    def page(self) -> Page:
        """The arrays in which one chunk is taken in and put together."""
        return Page(self.frame, None if self.domain.keeps else self.schema.shape)

    def checked_chunk(self, chunk: Array) -> Array:
        """The chunk itself; raises ValueError when it is not (F, n)."""
        if chunk.shape != (self.features, self.n):
            raise ValueError(f"a chunk must have the shape {(self.features, self.n)}, not {chunk.shape}")
        return chunk

    def release_turn(self, chunk: Array, turn: int, state: Array | None) -> tuple[Array, Array | None]:
        """A released chunk, of the shape of `schema`, and the state after it."""
        self.checked_chunk(chunk)
        workspace = self._workspaces.take()
        page, step = workspace
        try:
            with np.errstate(all="ignore"):  # a warning of numpy in a log would tell that a raw value is a special one
                state = step.release(page.admit(chunk), self.noise, turn, state, page.released)
                return page.complete(), state
        finally:
            self._workspaces.give(workspace)


def require_real_noise(mechanisms: Iterable[Mechanism]) -> None:
    """Raise ConfigError unless all of them draw what the operating system gives: before anything can leave."""
    for mechanism in mechanisms:
        if not is_certified(mechanism.noise):
            raise ConfigError(
                f"mechanism {mechanism.name}: its noise comes from a test source or a seed, which is for tests and "
                "studies alone; nothing is released with it"
            )
