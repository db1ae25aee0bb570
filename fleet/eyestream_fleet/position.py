"""How far a shard has read its log, and whether that is still the log that was read.

A log may lose its newest messages, and give their offsets again to others: as NATS does where servers go on from what
they still have. Its name and its end do not say so once it is as long again. So the newest message that was read is
read again first. While it is in its place, taken at the same time, nothing before it was replaced. Else the log is read
from its beginning: what was released of it stays refused, and what nobody has read is not missed.
"""

import logging
from collections.abc import Sequence

from eyestream.errors import LinkError
from eyestream_fleet.log import Bounds, Entry

__all__ = ["Position"]

_LOG = logging.getLogger("eyestream.shard")

_NONE = (-1, 0.0)


class Position:
    """Where a shard is in its log.

    Parameters
    ----------
    epoch, next, newest
        As `Contents` has them: the life of the log, the first offset to read, and the newest message that was read.

    Attributes
    ----------
    epoch, next, newest : as given, at any moment.
    losses : how often the log was found without messages that it had, by name.
    missing : offsets that were not read: the log forgot them before, or left them out.
    """

    def __init__(self, epoch: str, next: int, newest: tuple[int, float]) -> None:
        self.epoch, self.next, self.newest = epoch, next, newest
        self.losses, self.missing = {"made_again": 0, "cut_off": 0, "forgotten": 0}, 0
        self._expects = self._replaced = False

    def begin(self, bounds: Bounds) -> bool:
        """Take what the log has; whether it is another one than before, whose offsets are of other messages."""
        if self.epoch != bounds.epoch:
            if self.epoch:
                self._lose("made_again", "the log is a new one; what the old one held is lost")
        elif self._replaced or max(self.next, self.newest[0] + 1) > bounds.end:
            self._lose("cut_off", "the log was cut off: messages that it had are lost; it is read from its beginning")
        else:
            self._pass_over(bounds.first)
            self._expects = self.newest[0] >= bounds.first
            return False
        self.epoch, self.next, self.newest = bounds.epoch, bounds.first, _NONE
        self._expects = self._replaced = False
        return True

    @property
    def start(self) -> int:
        """From which offset on the log is to be read after `begin`."""
        return min(self.next, self.newest[0]) if self._expects else self.next

    def recognised(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """What is to be taken of `entries`, which follow one another from `start` on.

        Raises
        ------
        LinkError
            Another message is in the place of the newest one that was read. `begin` comes next.
        """
        newest, at = self.newest
        if not self._expects or not entries or entries[-1].offset < newest:
            return entries
        if [entry.at for entry in entries if entry.offset == newest] != [at]:
            self._replaced = True
            raise LinkError("another message is in the place of the newest one that was read")
        self._expects = False
        return [entry for entry in entries if entry.offset >= self.next]

    def take(self, entry: Entry) -> bool:
        """Go past `entry`; whether it comes for the first time."""
        if entry.offset < self.next:
            return False
        self._pass_over(entry.offset)
        self.next, self.newest = entry.offset + 1, max(self.newest, (entry.offset, entry.at))
        return True

    def _pass_over(self, offset: int) -> None:
        """Go to `offset` where it lies ahead."""
        if self.next < offset:
            self.missing += offset - self.next
            self._lose("forgotten", f"the log has forgotten {offset - self.next} offsets that were not read")
            self.next = offset

    def _lose(self, kind: str, words: str) -> None:
        self.losses[kind] += 1
        _LOG.warning(words)
