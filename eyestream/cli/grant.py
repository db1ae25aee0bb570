"""``eyestream grant APP STREAM``: let one application hear one stream."""

import argparse
import asyncio
import contextlib
import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, TextIO

from eyestream.errors import ConfigError, meant
from eyestream.ops.asked_sets import asked_features
from eyestream.ops.check_deployment import root_of
from eyestream.ops.grants.access import Broker, Hears
from eyestream.ops.grants.record import GrantEntry, append, record_beside
from eyestream.rim.config import load_login
from eyestream.rim.ledger.file import held_alone
from eyestream.rim.plan import Plan, load
from eyestream.rim.plan.stream import StreamPlan
from eyestream.streams import GAZE
from eyestream.wire.topics import is_name, private_topic


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "grant",
        help="let an application receive a stream",
        description="Give a login at the private broker the right to hear a stream. The broker holds to it: by "
        "mosquitto's dynamic security plugin with --admin, else by the files of a deployment. Written down beside the "
        "ledger. All applications together spend one budget, that of the device.",
    )
    parser.add_argument("application", metavar="APP", help="its login at the private broker")
    parser.add_argument(
        "stream", metavar="STREAM",
        help="a stream of the configuration; coarse: all of where somebody looks; fine: all of how eyes move",
    )  # fmt: skip
    parser.add_argument(
        "--features", metavar="NAME[,NAME...]", help="only if the stream releases none but these; a set does too"
    )
    parser.add_argument("--new", metavar="FILE", type=Path, help="make the login, with its password in a new FILE")
    add_place(parser)


def add_place(parser: argparse.ArgumentParser) -> None:
    """The options that say at which broker."""
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the sidecar's configuration")
    parser.add_argument(
        "--admin", type=Path, metavar="FILE",
        help="a login, as `check --application` takes it, that may administer mosquitto's dynamic security plugin",
    )  # fmt: skip


def main(options: argparse.Namespace) -> None:
    """Run the subcommand. Raises ConfigError, LedgerError, LinkError."""
    print(asyncio.run(_granted(options)))


async def _granted(options: argparse.Namespace) -> str:
    plan = load(options.config)
    streams = streams_meant(plan, options.stream)
    for name in streams:
        _check_features(plan.streams[name], options.features)
    broker, ledger, app = broker_of(plan, options), plan.settings.sidecar.ledger, options.application
    with alone(ledger):
        hearing, closed = await broker.hearing(), await broker.closed()
        if options.new is not None:
            await _add(broker, app, {*hearing, *closed}, options.new)
        elif app not in hearing and app not in closed:
            known = meant(app, [*hearing, *closed])
            raise ConfigError(f"there is no login {app} at the private broker{known or '; --new FILE makes it'}")
        before = heard(plan, hearing[app]) if app in hearing else frozenset()
        now = int(time.time())
        append(ledger, *(GrantEntry(now, "granted", app, name, names_of(plan.streams[name])) for name in streams))
        await broker.allow(app, before | streams, cut=False)
    return "\n".join(f"{app} hears {name}: {kind_of(plan.streams[name])}" for name in sorted(streams))


async def _add(broker: Broker, app: str, there: Collection[str], file: Path) -> None:
    if not is_name(app):
        raise ConfigError(f"APP {app}: expected 1 to 64 of A-Z a-z 0-9 _ -, a letter or digit first")
    if app in there:
        raise ConfigError(f"there is a login {app} already; leave --new out")
    with _secret(file) as secret:
        secret.write(f"{await broker.add(app)}\n")


def _secret(file: Path) -> TextIO:
    """A new file that its owner alone may read."""
    try:
        return open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be made: {error.strerror}") from None


def streams_meant(plan: Plan, word: str) -> frozenset[str]:
    """The streams that STREAM means; raises ConfigError where it means none."""
    if word in plan.streams:
        return frozenset({word})
    found = frozenset(name for name, stream in plan.streams.items() if kind_of(stream).startswith(f"{word}:"))
    if word not in ("coarse", "fine") or not found:
        known = [*plan.streams, "coarse", "fine"]
        raise ConfigError(
            f"STREAM {word}: expected {', '.join(plan.streams)}, or coarse or fine where there is such a stream"
            f"{meant(word, known)}"
        )
    return found


def kind_of(stream: StreamPlan) -> str:
    """Coarse or fine, as platforms tell the two apart, and what it is."""
    if GAZE.keys() <= set(names_of(stream)):
        return "coarse: roughly where somebody looks"
    count = len(names_of(stream))
    return f"fine: how eyes move, {count} feature{'s' if count > 1 else ''}"


def names_of(stream: StreamPlan) -> tuple[str, ...]:
    """Names of what its chunks have."""
    return stream.mechanism.schema.names


def heard(plan: Plan, hears: Hears) -> frozenset[str]:
    """Streams that a login hears, of any device."""
    return frozenset(key.stream for key in plan.served if hears(private_topic(key.device, key.stream)))


def broker_of(plan: Plan, options: argparse.Namespace) -> Broker:
    """The private broker and the means to change its rights; raises ConfigError where there are none."""
    settings, root = plan.settings, root_of(options.config)
    if settings.added is not None:
        raise ConfigError(f"{options.config}: nobody wears a server: grants are of a sidecar")
    if options.admin is not None:
        from eyestream.ops.grants.by_plugin import Plugin  # noqa: PLC0415  one of the two

        return Plugin(settings, load_login(options.admin))
    if root is None:
        raise ConfigError(
            f"{options.config} belongs to no deployment, so the files of its broker are not known: lay one out "
            "(eyestream deploy /), or name a login of mosquitto's dynamic security plugin (--admin FILE)"
        )
    from eyestream.ops.grants.by_files import Files  # noqa: PLC0415  one of the two

    return Files(root, settings)


def _check_features(stream: StreamPlan, asked: str | None) -> None:
    """Refuse a grant of some features of a stream that releases more: a broker hands a message on whole."""
    if asked is None:
        return
    names = names_of(stream)
    more = [name for name in names if name not in asked_features(asked, names)]
    if more:
        raise ConfigError(
            f"the stream {stream.name} releases {len(names)} features, and a broker hands on all or nothing: for these "
            f"alone add a [[stream]] with features = [...] in its [stream.privacy]. Others are {', '.join(more[:3])}"
        )


@contextlib.contextmanager
def alone(ledger: Path) -> Iterator[None]:
    """Hold the list of grants while a command changes it. Raises ConfigError: another command does."""
    record = record_beside(ledger)
    try:
        with held_alone(record.with_name(f"{record.name}.lock")):
            yield
    except BlockingIOError:
        raise ConfigError(f"{record}: another grant or revoke is at work") from None
    except OSError as error:
        raise ConfigError(f"{record}: cannot be written: {error.strerror}; run it as root (sudo)") from None
