"""Rights at the private broker: the streams that a login hears, and the rights that let it hear just these.

A broker has one of two means. What both hold to:

========= ========================================================================================================
grant     the rights are in force, and nobody is cut
revoke    the rights are in force, and the login is cut: a broker checks rights when a message comes, and not again
          when it sends what it has queued for a slow reader. Where nothing is left, the login is closed too
========= ========================================================================================================
"""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from eyestream.ops.deployment.layout import acl_text
from eyestream.wire.topics import SIDECAR_STREAM, every_topic

Hears = Callable[[str], bool]
"""Whether a login that is open hears what is published at a topic."""


class Broker(Protocol):
    """The private broker, as whoever may change its rights sees it."""

    async def hearing(self) -> Mapping[str, Hears]:
        """By login, of all that are open but the sidecar's and the broker's own."""

    async def closed(self) -> Collection[str]:
        """The logins that a revocation has closed."""

    async def add(self, application: str) -> str:
        """Make a login that hears nothing, and return its password."""

    async def allow(self, application: str, streams: Collection[str], *, cut: bool) -> None:
        """Let a login hear just these streams; with `cut` its connection ends. Returns when that is so.

        Raises
        ------
        ConfigError
            It cannot be done, or is not known to be done.
        LinkError
            The broker cannot be reached.
        """


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a topic filter has a topic of ours, which begins with no ``$``.

    >>> matches("eyestream/v1/+/gaze/#", "eyestream/v1/hmd-1/gaze/private"), matches("+/v1", "eyestream/v1/hmd-1")
    (True, False)
    """
    wanted, found = topic_filter.split("/"), topic.split("/")
    if wanted[-1] == "#":
        wanted, found = wanted[:-1], found[: len(wanted) - 1]
    return len(wanted) == len(found) and all(one in ("+", other) for one, other in zip(wanted, found, strict=True))


def rights_to(application: str, streams: Collection[str]) -> list[tuple[str, str]]:
    """Access (``read`` or ``write``) and topic filter of each right of an application that hears just these streams.

    They are those of the shipped list, for one stream in the place of all: of the login of this name, else of
    ``application``. With any stream goes the status of sidecars.
    """
    shipped = acl_text("private")
    template = list_of(shipped, application) or list_of(shipped, "application")
    found = [
        (access, topic.replace("/+/+/", f"/+/{stream}/")) for stream in sorted(streams) for access, topic in template
    ]
    return [*found, ("read", every_topic("status").replace("/+/+/", f"/+/{SIDECAR_STREAM}/"))] if found else []


def list_of(text: str, user: str) -> list[tuple[str, str]]:
    """Access and topic filter of each line of an ACL file of mosquitto that holds for a user.

    A ``pattern`` holds for everybody; any client id stands for ``%c``.
    """
    found, current = [], None
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if word == "user":
            current = rest
        elif word == "pattern" or (word == "topic" and current == user):
            access, _, topic = rest.partition(" ")
            if access not in ("read", "write", "readwrite", "deny"):
                access, topic = "readwrite", rest
            if word == "pattern":
                topic = topic.replace("%u", user).replace("%c", "+")
            found.append((access, topic.strip()))
    return found


def with_rights(text: str, user: str, rights: Collection[tuple[str, str]]) -> str:
    """The ACL file of mosquitto with just these rights of a user; comments and the lines of others stay."""
    kept, current = [], None
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "user":
            current = rest.strip()
        if current != user or word not in ("user", "topic"):
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    lines = [f"topic {access} {topic}" for access, topic in rights]
    return "\n".join([*kept, *(["", f"user {user}", *lines] if lines else []), ""])
