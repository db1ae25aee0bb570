"""Decisions of live gaze beside its rows: where sessions begin and end. For who has live gaze."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionBorders:
    """A session's borders are decided by samples, so one gaze event may decide them (`eyestream.gaze.clock_map`).

    Attributes
    ----------
    period_s : the samples of so many seconds decide together whether a session begins, goes on or ends.
    seconds : so many different seconds of samples decide it; one event is in fewer.
    silence_s : after so long without a sign of the tracker its session ends.
    answers : whether that sign is an answer of the tracker; else it is a sample.
    """

    period_s: float
    seconds: int
    silence_s: float
    answers: bool

    def words(self) -> str:
        """The meaning for the price of a gaze event."""
        silent = (
            ""
            if self.answers
            else f". The tracker is not asked whether it is there: {self.silence_s:g} s without a sample end the "
            "session, and one sample in them keeps it"
        )
        return (
            "a session's borders are decided by samples. Its first sample decides where its rows begin and when they "
            f"come. The samples of {self.period_s:g} s decide whether it begins, goes on or ends. The price of a gaze "
            "event above does not cover an event that has the first sample in it, or that comes where the other "
            f"samples of these {self.period_s:g} s leave a border open. Such an event can be in all rows of the "
            f"session that begins there, and it can decide how many rows the session before has{silent}"
        )

    def claim(self) -> dict[str, object]:
        """For machines."""
        return {
            "decided_by": "samples",
            "period_s": self.period_s,
            "seconds_that_decide": self.seconds,
            "silence_s": self.silence_s,
            "silence_of": "answers" if self.answers else "samples",
        }
