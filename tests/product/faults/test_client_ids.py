"""No login but its own takes the place of a sidecar at a broker, by any client id that one can read or guess."""

import asyncio
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgpack
import msgspec
import pytest

from eyestream.errors import LinkError
from eyestream.rim.config import Settings
from eyestream.rim.ledger.identity import client_id
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect
from eyestream.sdk.publisher import Publisher
from eyestream_lab.testing.clocks import until
from tests.product.faults.deployment import Deployment
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import ceilings_of, client_ids, running, settings_for
from tests.rigs.storms import NAMES

WELL_KNOWN = (
    *("sidecar", "sidecar-raw", "sidecar-private", "raw-sidecar", "private sidecar", "raw sidecar", "eyestream"),
    *("tracker", "application", "root", "1", "auto-1"),
)


@pytest.fixture
def deployment(tmp_path_factory: pytest.TempPathFactory, mosquitto: Mosquitto) -> Iterator[Deployment]:
    made = Deployment(tmp_path_factory.mktemp("d"))
    made.start()
    yield made
    made.stop()


def hardened(deployment: Deployment, folder: Path) -> Settings:
    """A sidecar at both brokers as we ship them, with its logins."""
    settings = settings_for(deployment.private.url, folder, raw_url=deployment.raw.url)
    private, raw = (deployment.login("sidecar", broker.url) for broker in (deployment.private, deployment.raw))
    return msgspec.structs.replace(settings, private=private, raw=raw)


def guesses(heard: list[Message]) -> set[str]:
    """Whatever could be an id in what was heard: whole, word by word, and cut to the length of ours.

    Also what suggests itself, and what our own recipe makes of keys that were heard.
    """
    texts = {str(part) for message in heard for part in (message.topic, *message.topic.split("/"), *message.more.user)}
    for message in heard:
        with contextlib.suppress(ValueError, msgpack.UnpackException):
            told = msgpack.unpackb(message.payload)
            texts |= {str(value) for value in told.values() if isinstance(value, str | int)}
    names = {name for text in texts for name in [text, *re.findall(r"[\w-]{4,}", text)] if len(name) <= 64}
    names |= {name[:22] for name in names} | set(WELL_KNOWN) | {f"{name}-raw" for name in ("hmd-1", "sidecar")}
    keys = [b"", *(bytes.fromhex(name) for name in names if re.fullmatch(r"(?:[0-9a-f]{2}){8,32}", name))]
    return names | {client_id(key, f"{link} sidecar") for key in keys for link in ("private", "raw")}


async def everything(deployment: Deployment, heard: list[Message]) -> None:
    """What applications may read at the private broker, and more: the word to other sidecars, as if they could."""
    for role in ("application", "sidecar"):
        endpoint = Endpoint.of(deployment.login(role, deployment.private.url))
        async with connect(endpoint, client_id=None, deliver=heard.append) as link:
            for topic_filter in ("#", "$SYS/#", "eyestream/v1/+/sidecar/owner"):
                with contextlib.suppress(LinkError):
                    await link.subscribe(topic_filter, 1)
            await asyncio.sleep(0.3)


async def take(deployment: Deployment, name: str, version: Literal["5", "3.1.1"]) -> None:
    """Connect under `name` with every login but the sidecar's, to both brokers."""
    for broker in (deployment.private, deployment.raw):
        for role in ("application", "tracker"):
            login = msgspec.structs.replace(deployment.login(role, broker.url), version=version)
            with contextlib.suppress(LinkError):
                async with connect(Endpoint.of(login), client_id=name, deliver=print):
                    pass


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_no_login_but_its_own_takes_the_sidecars_place(
    deployment: Deployment, tmp_path: Path, version: Literal["5", "3.1.1"]
) -> None:
    heard: list[Message] = []
    async with running(hardened(deployment, tmp_path)) as sidecar:
        await until(lambda: sidecar.raw_stands and sidecar.private_stands)
        tracker = deployment.login("tracker", deployment.raw.url)
        async with Publisher(tracker, "hmd-1", NAMES, 2.0) as publisher:
            assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
            await until(lambda: sidecar.outbox.delivered == 1)
            await everything(deployment, heard)
            names = guesses(heard)
            assert len(names) > 50
            assert "sidecar" in names
            for name in sorted(names):
                await take(deployment, name, version)
            await asyncio.sleep(0.5)  # a link that is lost comes back in less
            assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
            await until(lambda: sidecar.outbox.delivered == 2)
            assert sidecar.links == {"raw": 1, "private": 1}
        for own in client_ids(sidecar):  # control: who knew them could
            await take(deployment, own, version)
        await until(lambda: sidecar.links["raw"] > 1 and sidecar.links["private"] > 1)


async def test_a_restart_takes_the_place_of_the_life_before(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """A broker may hold the old link for alive, and would say later that the sidecar is lost: so the id stays."""
    settings = settings_for(mosquitto.url, tmp_path)
    async with running(settings) as sidecar:
        first = client_ids(sidecar)
    async with running(settings) as sidecar:
        assert client_ids(sidecar) == first
    renamed = msgspec.structs.replace(settings, sidecar=msgspec.structs.replace(settings.sidecar, name="other"))
    (tmp_path / "new").mkdir()
    for other in (renamed, settings_for(mosquitto.url, tmp_path / "new")):
        async with running(other) as sidecar:
            private, raw = client_ids(sidecar)
            assert raw not in first
            assert (private in first) == (other is renamed)  # a copy of the ledger takes its place under any name


def test_ids_say_nothing_of_the_ledger_and_fit_every_broker(tmp_path: Path) -> None:
    """MQTT 3.1.1, 3.1.3.1: a broker must take 23 characters of 0-9 a-z A-Z, and may refuse more."""
    settings = settings_for("mqtt://127.0.0.1:1", tmp_path)
    with Ledger(settings.sidecar.ledger, ceilings=ceilings_of(settings)) as ledger:
        key = ledger.header.ledger_id
    made = {client_id(key, link) for link in ("private a", "raw a", "private b", "x" * 1000)}
    assert len(made) == 4
    assert all(re.fullmatch("[0-9a-f]{22}", name) for name in made)
    assert not any(key.hex().startswith(name[:8]) for name in made)
