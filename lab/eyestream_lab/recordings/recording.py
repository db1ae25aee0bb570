"""Recordings through the order of effects: every chunk of every recording is reserved before the first is released."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.charge import charge_of, charges_of
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.release.order import Release, ReleaseOrder, Reserve
from eyestream.core.reservation import Granted, Request, Withheld, refuse_above
from eyestream.core.session import Session
from eyestream.wire.raw import MAX_ROWS, RawRows
from eyestream_lab.hindsight import hindsight

Array = NDArray[np.float64]


class RecordingRelease:
    """One recording, as one session of a stream: reserve it whole, then release it.

    Parameters
    ----------
    settings
        Of the stream; the device is the person's.
    mechanism
        Releases its chunks, of `settings.n` rows.
    session
        Number of the session in the ledger.
    rows
        (m, F); NaN where a value is missing. A partial last chunk is imputed, released whole and cut.
    levels
        Of the ledger's lifetime (`eyestream.core.charge`); 1: it does not fade.
    every
        One chunk in so many is released, and nothing of the others: a schedule that the data have no part in.
    before
        Where a history is taken off: the release of the person's session before this one, which must have been
        released; None: this is the first one, of which nothing is.
    """

    def __init__(
        self,
        settings: DeviceSettings,
        mechanism: Mechanism,
        session: int,
        rows: Array,
        levels: int = 1,
        *,
        every: int = 1,
        before: "RecordingRelease | None" = None,
    ) -> None:
        self._mechanism, self._shape, self._every = mechanism, rows.shape, every
        self._before = before
        self._place: int = 0 if before is None or not mechanism.sessions else (before._place + 1) % mechanism.sessions
        self._session: Session | None = None
        charges = charges_of(mechanism, levels)
        self._order = ReleaseOrder(
            settings,
            charges,
            baseline=mechanism.baseline_chunks,
            every=every,
            sessions=0 if self._place else mechanism.sessions,
        )
        self._n = settings.n
        self.requests: list[Request] = []
        """One for each chunk, to be asked before `release`; those of which nothing is released cost nothing."""
        for start in range(0, len(rows), MAX_ROWS):
            part = rows[start : start + MAX_ROWS]
            last = start + len(part) == len(rows)
            effects = self._order.feed(RawRows(session, start, part, end=last), 0.0)
            self.requests += [effect.request for effect in effects if isinstance(effect, Reserve)]

    def release(self, answers: Sequence[Granted | Withheld]) -> Array:
        """Private rows (m, F) under the ledger's `answers` to all `requests`; a chunk each where rows are of their own.

        Every chunk is estimated from all releases of the session on its level where the mechanism can do that, and no
        chunk is left out. Rows of the session's baseline, of a withheld session, and of chunks that are left out, are
        NaN.

        Raises
        ------
        ValueError
            Not every chunk was granted; nothing is released.
        RuntimeError
            A release would cost more than its chunk was charged.
        """
        if len(answers) != len(self.requests) or not all(isinstance(answer, Granted) for answer in answers):
            raise ValueError("expected a reservation for every chunk of the recording")
        level, mechanism, session = 0, self._mechanism, self._begun()
        released = self._nothing()
        starts: list[int] = []
        chunks: list[Array] = []
        states: list[Array | None] = []
        for effect in self._order.answer(answers):
            assert isinstance(effect, Release)
            if session.awaits_baseline:
                session.anchor(effect.chunk.values)
                continue
            if effect.granted.spent is None:
                continue
            if effect.granted.level != level:
                self._write(released, starts, self._looked_back(mechanism, states) or chunks)
                level, starts, chunks, states = effect.granted.level, [], [], []
                mechanism = self._mechanism.faded(level)
                session = mechanism.continue_session(session)
            refuse_above(effect.granted, charge_of(mechanism))
            starts.append(effect.chunk.span.first_row)
            chunks.append(session.release(effect.chunk.values))
            states.append(session.state)
        self._write(released, starts, self._looked_back(mechanism, states) or chunks)
        self._session = session
        return released

    def _begun(self) -> Session:
        """The session, which goes on from the one before where a history is taken off."""
        if not self._mechanism.sessions:
            return self._mechanism.session()
        return self._mechanism.session_after(None if self._before is None else self._before._session)

    def _nothing(self) -> Array:
        """Rows of which nothing is released yet."""
        features, rows = self._mechanism.schema.shape
        return np.full((-(-self._shape[0] * rows // self._n), features), np.nan)

    def _looked_back(self, mechanism: Mechanism, states: Sequence[Array | None]) -> list[Array] | None:
        return hindsight(mechanism, states) if self._every == 1 else None

    def _write(self, released: Array, starts: Sequence[int], chunks: Sequence[Array]) -> None:
        for start, chunk in zip(starts, chunks, strict=True):
            rows = chunk.shape[1]
            first = start // self._n * rows
            part = released[first : first + rows]
            part[:] = chunk[:, : len(part)].T
