"""The first line of the page: the worst that is known of one stream, in words."""

from dataclasses import dataclass
from typing import Literal

from eyestream.wire.status import Status, StatusReason

Sidecar = Literal["there", "unsure", "away"]
"""Whether the stream's sidecar runs. Applications are not told which sidecar serves which device. So it is `away` when
every sidecar of the broker is, and `unsure` when one is, until the stream's next chunk."""

_SAID: dict[StatusReason, str] = {
    "stopped": "the sidecar has stopped: nothing is released",
    "lost": "the sidecar is lost: nothing is released",
    "owner": "another sidecar serves this device: nothing is released",
    "internal": "a fault of the sidecar: nothing is released",
    "ledger": "the ledger cannot be used: nothing is released",
    "calibration": "the calibration does not fit: nothing is released",
    "raw_link": "no connection to the tracker",
    "lifetime": "the whole budget is spent: no more releases",
    "day": "the day's budget is spent, until midnight UTC",
    "session": "the session's budget is spent, until the next session releases a chunk",
    "paused": "the wearer has paused it: nothing is released",
    "window": "paused: the window's ceiling is reached",
}

_WAITING = "online: no private chunk yet; if none comes, the log of the sidecar names the cause"


@dataclass(frozen=True, slots=True)
class HeadlineFacts:
    """Facts on one stream, and on nothing else.

    Attributes
    ----------
    connected : whether the link to the broker stands.
    sidecar : whether its sidecar runs.
    status : the sidecar's last word on the stream; None: none that could be read.
    described : whether the stream was described.
    silent : whether chunks are overdue.
    went_back : whether its ledger went back.
    came : whether a chunk has come since the monitor follows the stream.
    """

    connected: bool
    sidecar: Sidecar
    status: Status | None
    described: bool
    silent: bool
    went_back: bool = False
    came: bool = True


@dataclass(frozen=True, slots=True)
class Headline:
    """A line, and whether something is wrong."""

    words: str
    bad: bool


def headline(facts: HeadlineFacts) -> Headline:
    """The worst fact; the first line of this table that holds.

    | | fact | why it comes before those below |
    |---|---|---|
    | 1 | the broker is away | nothing is news |
    | 2 | the sidecar is away | whatever it said last is over |
    | 3 | it said that it stopped, or the broker that it is lost | the same, of this stream |
    | 4 | its ledger went back | what is released was spent before, and nobody counts it |
    | 5 | a pause, another sidecar, a fault, the ledger, the calibration, the tracker's link | no chunk comes |
    | 6 | a ceiling is reached for ever, for the day, for the session | no chunk comes for long |
    | 7 | paused by the window | a chunk comes soon |
    | 8 | no status, or no description | nobody said that chunks come |
    | 9 | a sidecar of the broker is away, perhaps its own | what it said last may be over |
    | 10 | chunks are overdue | it says that they come, and they do not |
    | 11 | no chunk has come yet | nobody has seen that they come: a tracker may send nothing, or nonsense |
    | 12 | chunks come | |

    A status has one reason, so 3 and 5 to 7 never hold together: the sidecar says the worst.
    """
    status = facts.status
    said = None if status is None or status.state == "online" else _SAID.get(status.reason, "nothing is released")
    worse = (
        (not facts.connected, "the broker is away: what is shown is old"),
        (facts.sidecar == "away", "the sidecar is away: nothing is released"),
        (status is not None and status.state == "offline", said),
        (facts.went_back, "its ledger went back: what was spent since is forgotten, and spent again"),
        (said is not None, said),
        (status is None, "no word from the sidecar yet"),
        (not facts.described, "the stream is not described: nothing can be shown"),
        (facts.sidecar == "unsure", "a sidecar of this broker is away, perhaps this stream's: waiting for a chunk"),
        (facts.silent, "online, but chunks are overdue: the log of the sidecar names the cause"),
    )
    words = next((words for holds, words in worse if holds), None)
    good = "online: private chunks come" if facts.came else _WAITING
    return Headline(words or good, bad=words is not None)
