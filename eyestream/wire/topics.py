"""Addresses: ``eyestream/v1/<device>/<stream>/<leaf>``.

Names are short, plain ASCII: no wildcard, separator or control character can enter a topic or a filter through one.
The stream name ``sidecar`` is taken: a sidecar's own status is at ``eyestream/v1/<sidecar>/sidecar/status``.
"""

import re
from typing import Literal, cast, get_args

import msgspec

from eyestream.errors import ConfigError
from eyestream.wire.envelope import VERSION, refuse

Leaf = Literal["raw", "private", "meta", "status", "budget", "odometer"]
FEATURE_STREAM = "features"
GAZE_STREAM = "gaze"
SIDECAR_STREAM = "sidecar"
OWNER_LEAF = "owner"

RETAINED: frozenset[str] = frozenset({"meta", "status", "budget", "odometer", OWNER_LEAF})
"""Leaves whose last message the broker keeps. The others are never retained, and a retained `raw` is refused."""

QOS = 1
"""QoS at which applications subscribe, and at which the SDK's publisher sends rows.

What a sidecar publishes leaves at QoS 1, whatever this says: `Outgoing.flush` needs the acknowledgement.
"""

RAW_QOS = 0
"""QoS of a sidecar's subscriptions to trackers: at QoS 1 mosquitto 2.0 counts drops as under way, and falls silent."""

_LEAVES: frozenset[str] = frozenset(get_args(Leaf))
_ROOT = f"eyestream/v{VERSION}"
OWNER_FILTER = f"{_ROOT}/+/{SIDECAR_STREAM}/{OWNER_LEAF}"
NAME = "[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
"""Pattern of a name of a device, a sidecar or a stream."""

_NAME = re.compile(NAME, re.ASCII)


class Topic(msgspec.Struct, frozen=True):
    """A parsed address; for a sidecar's own status `device` is the sidecar and `stream` is ``sidecar``."""

    device: str
    stream: str
    leaf: Leaf


def is_name(text: str) -> bool:
    """Whether `text` may name a device, a sidecar or a stream: 1 to 64 of A-Z a-z 0-9 _ -, a letter or digit first.

    >>> is_name("hmd-1"), is_name("#"), is_name("a/b")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def raw_topic(device: str, stream: str = FEATURE_STREAM) -> str:
    """Where a tracker publishes rows; raises `ConfigError` for a name that is not allowed."""
    return _topic(device, stream, "raw")


def gaze_topic(device: str) -> str:
    """Where a tracker publishes samples of gaze; raises `ConfigError` for a name that is not allowed."""
    return _topic(device, GAZE_STREAM, "raw")


def ask_topic(device: str, stream: str = GAZE_STREAM) -> str:
    """Where questions to a gatekeeper are asked; raises `ConfigError` for a name that is not allowed."""
    return _topic(device, stream, "ask")


def answer_topic(device: str, stream: str = GAZE_STREAM) -> str:
    """Where a gatekeeper answers; raises `ConfigError` for a name that is not allowed."""
    return _topic(device, stream, "answer")


def private_topic(device: str, stream: str = FEATURE_STREAM) -> str:
    """Where released chunks appear; raises `ConfigError` for a name that is not allowed."""
    return _topic(device, stream, "private")


def meta_topic(device: str, stream: str = FEATURE_STREAM) -> str:
    """Where the retained description of a stream is; raises `ConfigError` for a name that is not allowed."""
    return _topic(device, stream, "meta")


def status_topic(device: str, stream: str = FEATURE_STREAM) -> str:
    """Where the retained status of a stream is; raises `ConfigError` for a name that is not allowed."""
    return _topic(device, stream, "status")


def budget_topic(device: str, stream: str = FEATURE_STREAM) -> str:
    """Where what is left of a stream's budget is, retained; raises `ConfigError` for a name that is not allowed."""
    return _topic(device, stream, "budget")


def odometer_topic(device: str, stream: str = FEATURE_STREAM) -> str:
    """Where a stream's odometer is, retained; raises `ConfigError` for a name that is not allowed."""
    return _topic(device, stream, "odometer")


def refuse_shared(topic_filter: str) -> None:
    """Let pass what is no shared subscription.

    Two sidecars that share one each get a part of the rows and release every chunk: what leaves costs twice the epsilon
    that each ledger knows. An application that shares one gets a part of the chunks.

    Raises
    ------
    ConfigError
        ``$share/...``, or mosquitto's older ``$queue/...``.
    """
    if topic_filter.split("/", 1)[0] in ("$share", "$queue"):
        raise ConfigError(
            f"{topic_filter}: a shared subscription gives each of several sidecars a part of the rows of a device, and "
            "each would release every chunk: no ledger would know what was spent. Name the devices of each sidecar"
        )


def sidecar_status_topic(sidecar: str) -> str:
    """Where a sidecar's own status, its last will, is; raises `ConfigError` for a name that is not allowed."""
    return f"{_ROOT}/{_checked(sidecar)}/{SIDECAR_STREAM}/status"


def owner_topic(sidecar: str) -> str:
    """Where a sidecar says which devices it serves; raises `ConfigError` for a name that is not allowed."""
    return f"{_ROOT}/{_checked(sidecar)}/{SIDECAR_STREAM}/{OWNER_LEAF}"


def sidecar_of(topic: str) -> tuple[str, str]:
    """Name and leaf of an address of a sidecar itself. Raises PayloadError, ``topic``, for any other."""
    parts = topic.split("/", 5)
    known = {OWNER_LEAF, "status"}
    if len(parts) != 5 or "/".join(parts[:2]) != _ROOT or parts[3] != SIDECAR_STREAM or parts[4] not in known:
        raise refuse("topic")
    if not is_name(parts[2]):
        raise refuse("topic")
    return parts[2], parts[4]


def every_topic(leaf: Leaf) -> str:
    """Topic filter for a leaf of all streams of all devices, and for the status of sidecars among them."""
    return f"{_ROOT}/+/+/{leaf}"


def parse_topic(topic: str) -> Topic:
    """Parts of an address.

    >>> parse_topic("eyestream/v1/hmd-1/features/private")
    Topic(device='hmd-1', stream='features', leaf='private')

    Raises
    ------
    PayloadError
        ``topic``: of another version, or none of ours.
    """
    parts = topic.split("/", 5)
    if len(parts) != 5 or "/".join(parts[:2]) != _ROOT or not is_name(parts[2]) or not is_name(parts[3]):
        raise refuse("topic")
    device, stream, leaf = parts[2:]
    if leaf not in _LEAVES or (stream == SIDECAR_STREAM and leaf != "status"):
        raise refuse("topic")
    return Topic(device, stream, cast(Leaf, leaf))


def _topic(device: str, stream: str, leaf: Leaf | Literal["ask", "answer"]) -> str:
    if stream == SIDECAR_STREAM:
        raise ConfigError(f"a stream cannot be named {SIDECAR_STREAM!r}")
    return f"{_ROOT}/{_checked(device)}/{_checked(stream)}/{leaf}"


def _checked(name: str) -> str:
    refuse_shared(name)
    if not is_name(name):
        raise ConfigError(
            f"{name!r} cannot be used in a topic: expected 1 to 64 of A-Z a-z 0-9 _ -, a letter or digit first"
        )
    return name
