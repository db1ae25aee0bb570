"""A headset's broker and a far one, as `config/mosquitto` and docs/bridge.md have them."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgpack
import pytest

from eyestream.rim.config import BrokerSettings, LimitSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Link, Message, connect
from eyestream.sdk.publisher import Publisher
from eyestream.wire.topics import private_topic, raw_topic, sidecar_status_topic
from eyestream_lab.testing.clocks import until
from tests.rigs.certificates import Authority, Certificate
from tests.rigs.mosquitto import Mosquitto, program
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import NAMES

CONFIGURATIONS = Path(__file__).resolve().parents[3] / "config" / "mosquitto"
SECRET = "2fd30ca68f1a77b0c4e911"
NOTICE = "eyestream/v1/headset-1/bridge/up"


class Cloud(Mosquitto):
    """The far broker: `cloud.conf`, its paths and port replaced."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        super().__init__(folder)
        self.url = f"mqtts://localhost:{self.port}"
        broker = authority.issue("cloud-broker", host="localhost")
        self.acl = folder / "cloud.acl"
        self.acl.write_text((CONFIGURATIONS / "cloud.acl").read_text())
        text = (CONFIGURATIONS / "cloud.conf").read_text()
        for there, here in (
            ("/etc/eyestream/mosquitto/ca.pem", str(authority.pem)),
            ("/etc/eyestream/mosquitto/broker.pem", str(broker.pem)),
            ("/etc/eyestream/mosquitto/broker.key", str(broker.key)),
            ("/etc/eyestream/mosquitto/cloud.acl", str(self.acl)),
            ("/var/lib/eyestream-broker/", f"{folder}/"),
            ("listener 8883", f"listener {self.port} 127.0.0.1"),
            ("log_dest stderr", f"log_dest file {self.log}"),
        ):
            assert there in text
            text = text.replace(there, here)
        self._configuration.write_text(text + ("user root\n" if os.geteuid() == 0 else ""))


class Headset(Mosquitto):
    """The headset's broker: a plain listener, which has raw rows too, and `bridge.conf`."""

    def __init__(self, folder: Path, cloud: Cloud, authority: Authority, own: Certificate) -> None:
        text = (CONFIGURATIONS / "bridge.conf").read_text()
        for there, here in (
            ("cloud.example:8883", f"localhost:{cloud.port}"),
            ("\nremote_clientid\n", f"\nremote_clientid {SECRET}\n"),
            ("/etc/eyestream/mosquitto/cloud-ca.pem", str(authority.pem)),
            ("/etc/eyestream/mosquitto/bridge.pem", str(own.pem)),
            ("/etc/eyestream/mosquitto/bridge.key", str(own.key)),
        ):
            assert there in text
            text = text.replace(there, here)
        super().__init__(folder)
        self._configuration.write_text(self._configuration.read_text() + text)

    def change(self, there: str, here: str) -> None:
        """Another line in its configuration."""
        text = self._configuration.read_text()
        assert there in text
        self._configuration.write_text(text.replace(there, here))


class Parts:
    """Both brokers, and who signs for them."""

    def __init__(self, folder: Path) -> None:
        for name in ("cloud", "headset", "certificates", "ledger"):
            (folder / name).mkdir()
        self.ledger = folder / "ledger"
        self.authority = Authority(folder / "certificates")
        self.cloud = Cloud(folder / "cloud", self.authority)
        self.headset = Headset(folder / "headset", self.cloud, self.authority, self.authority.issue("headset-1"))
        application = self.authority.issue("application")
        self.application = Endpoint.of(
            BrokerSettings(
                self.cloud.url,
                ca_file=self.authority.pem,
                cert_file=application.pem,
                key_file=application.key,
            )
        )

    @contextlib.asynccontextmanager
    async def listening(self, got: list[Message], name: str | None = None) -> AsyncIterator[Link]:
        """An application at the far side that hears everything that it may."""
        link = connect(self.application, client_id=name, deliver=got.append, clean_session=name is None)
        async with link as made:
            await made.subscribe("#", 1)
            yield made


@pytest.fixture
def parts(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[Parts]:
    """Stopped at the end."""
    made = Parts(tmp_path)
    yield made
    made.headset.stop()
    made.cloud.stop()


def last(got: list[Message], topic: str) -> bytes | None:
    """What was said there last."""
    return next((message.payload for message in reversed(got) if message.topic == topic), None)


async def bridged(got: list[Message]) -> None:
    await until(lambda: last(got, NOTICE) == b"1")


async def test_what_is_released_crosses_and_nothing_raw(parts: Parts) -> None:
    """Raw rows are on the same broker here, to make it harder; what applications at both sides hear is compared."""
    parts.cloud.start()
    parts.headset.start()
    far: list[Message] = []
    near: list[Message] = []
    here = Endpoint.of(BrokerSettings(parts.headset.url))
    settings = settings_for(parts.headset.url, parts.ledger)
    async with (
        parts.listening(far),
        connect(here, client_id=None, deliver=near.append) as ear,
        running(settings) as sidecar,
    ):
        await ear.subscribe("eyestream/#", 1)
        await bridged(far)
        await until(lambda: sidecar.raw_stands and sidecar.private_stands)
        async with Publisher(parts.headset.url, "hmd-1", NAMES, 2.0) as publisher:
            for _ in range(5):
                assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
        wanted = private_topic("hmd-1")
        for side in (near, far):
            await until(lambda side=side: sum(message.topic == wanted for message in side) == 5)
        payloads = [[message.payload for message in side if message.topic == wanted] for side in (near, far)]
        assert payloads[0] == payloads[1]
        assert any(message.topic == raw_topic("hmd-1") for message in near)  # control: they are there to be seen
        claims = {message.more.user for message in far if message.topic == wanted}
        assert {name for [(name, _)] in claims} == {"claim"}
        expiries = [message.more.expiry_s for message in far if message.topic == wanted]
        assert all(expiry is not None and 0 < expiry <= 60 for expiry in expiries)
    own = sidecar_status_topic("sidecar")
    assert {message.topic for message in far} <= {
        *(wanted, own, NOTICE),
        *(f"eyestream/v1/hmd-1/features/{leaf}" for leaf in ("meta", "status", "budget", "odometer")),
    }  # fmt: skip


async def test_nothing_raw_is_taken_by_the_far_broker_from_anybody(parts: Parts) -> None:
    """Not even from a headset whose bridge would send it."""
    parts.cloud.start()
    far: list[Message] = []
    certificate = parts.authority.issue("headset-1", file="headset-1-again")
    headset = Endpoint.of(
        BrokerSettings(
            parts.cloud.url, ca_file=parts.authority.pem, cert_file=certificate.pem, key_file=certificate.key
        )
    )
    async with parts.listening(far), connect(headset, client_id=None, deliver=print) as link:
        refused = await link.state(
            [(raw_topic("hmd-1"), b"rows"), (private_topic("hmd-2"), b"another's"), (private_topic("hmd-1"), b"own")]
        )
        await until(lambda: far != [])
    assert list(refused) == [raw_topic("hmd-1"), private_topic("hmd-2")]
    assert {message.payload for message in far} == {b"own"}


@pytest.mark.parametrize("who", ["nobody", "a stranger"])
async def test_a_bridge_without_the_right_certificate_does_not_get_in(parts: Parts, tmp_path: Path, who: str) -> None:
    parts.cloud.start()
    (tmp_path / "other").mkdir()
    strange = Authority(tmp_path / "other", "other-ca").issue("headset-1")
    (tmp_path / "wrong").mkdir()
    wrong = Headset(tmp_path / "wrong", parts.cloud, parts.authority, strange)
    if who == "nobody":
        text = wrong._configuration.read_text()
        kept = [line for line in text.splitlines() if not line.startswith(("bridge_certfile", "bridge_keyfile"))]
        wrong._configuration.write_text("\n".join(kept) + "\n")
    got: list[Message] = []
    wrong.start()
    try:
        async with parts.listening(got):
            await until(lambda: "OpenSSL Error" in parts.cloud.log.read_text())
            assert last(got, NOTICE) is None
            parts.headset.start()  # control: the right one
            await bridged(got)
    finally:
        wrong.stop()


def chunks(got: list[Message]) -> list[int]:
    """Numbers of the chunks among what was heard."""
    return [msgpack.unpackb(message.payload)["chunk"] for message in got if message.topic == private_topic("hmd-1")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("away", "version", "late"),
    [
        ("the far broker", "mqttv50", False),
        ("the far broker", "mqttv311", False),
        ("the application", "mqttv50", False),
        ("the application", "mqttv311", True),
    ],
)
async def test_what_is_over_comes_late_where_nobody_knows_it(parts: Parts, away: str, version: str, late: bool) -> None:
    """Somebody is away for longer than the deadline; what is released afterwards comes in any case."""
    parts.headset.change("bridge_protocol_version mqttv50", f"bridge_protocol_version {version}")
    parts.cloud.start()
    parts.headset.start()
    got: list[Message] = []
    settings = settings_for(parts.headset.url, parts.ledger, limits=LimitSettings(deadline_s=1))
    async with running(settings) as sidecar, Publisher(parts.headset.url, "hmd-1", NAMES, 2.0) as publisher:
        await until(lambda: sidecar.raw_stands and sidecar.private_stands)
        async with parts.listening(got, "kept"):
            await bridged(got)
        if away == "the far broker":
            parts.cloud.stop()
        assert await publisher.send(rows_of_a_stranger(64, len(NAMES)))
        await until(lambda: sidecar.outbox.delivered == 2)  # the headset's broker has them
        await asyncio.sleep(2.5)
        if away == "the far broker":
            parts.cloud.start()
        got.clear()
        async with parts.listening(got, "kept"):
            await bridged(got)
            assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
            await until(lambda: 2 in chunks(got))
    assert chunks(got) == ([0, 1, 2] if late else [2])


@pytest.mark.long
async def test_a_headset_that_is_silent_is_gone_after_one_and_a_half_keep_alives(parts: Parts) -> None:
    """Its broker hangs: the connection stands, and nothing is heard any more."""
    parts.headset.change("keepalive_interval 20", "keepalive_interval 5")
    parts.cloud.start()
    parts.headset.start()
    got: list[Message] = []
    async with parts.listening(got):
        await bridged(got)
        parts.headset.signal(signal.SIGSTOP)
        try:
            began = asyncio.get_running_loop().time()
            await until(lambda: last(got, NOTICE) == b"0")
            assert 2 < asyncio.get_running_loop().time() - began < 15
        finally:
            parts.headset.signal(signal.SIGCONT)
        await bridged(got)


async def test_a_headset_whose_lines_are_taken_out_is_not_heard_any_more(parts: Parts) -> None:
    """After a reload, over the connection that stands."""
    parts.cloud.start()
    parts.headset.start()
    got: list[Message] = []
    here = Endpoint.of(BrokerSettings(parts.headset.url))
    async with parts.listening(got), connect(here, client_id=None, deliver=print) as link:
        await bridged(got)
        await link.state([(private_topic("hmd-1"), b"before")])
        await until(lambda: last(got, private_topic("hmd-1")) == b"before")
        lines = parts.cloud.acl.read_text().splitlines()
        others = lines.index("user application")
        kept = [line for line in lines[:others] if not line.startswith("topic write")] + lines[others:]
        assert len(lines) - len(kept) == 7
        parts.cloud.acl.write_text("\n".join(kept) + "\n")
        parts.cloud.signal(signal.SIGHUP)
        for turn in range(20):  # the broker reads it again a moment later
            payload = b"after %d" % turn
            await link.state([(private_topic("hmd-1"), payload)])
            try:
                await until(lambda payload=payload: last(got, private_topic("hmd-1")) == payload, 1)
            except TimeoutError:
                break
        else:
            pytest.fail("still heard")
        await link.state([(private_topic("hmd-1"), b"again")])
        await asyncio.sleep(1)
        assert last(got, private_topic("hmd-1")) != b"again"
        assert last(got, NOTICE) is not None


async def test_how_an_application_sees_that_the_headset_is_gone(parts: Parts) -> None:
    """Its status stays as it was: only the bridge's notice tells."""
    parts.cloud.start()
    parts.headset.start()
    got: list[Message] = []
    own = sidecar_status_topic("sidecar")
    async with parts.listening(got):
        async with running(settings_for(parts.headset.url, parts.ledger)):
            await until(lambda: (said := last(got, own)) is not None and b"ready" in said)
            parts.headset.stop(kill=True)
            await until(lambda: last(got, NOTICE) == b"0")
            said = last(got, own)
            assert said is not None
            assert msgpack.unpackb(said)["reason"] == "ready"
            late: list[Message] = []
            async with parts.listening(late):  # who comes later learns it too
                await until(lambda: last(late, NOTICE) == b"0" and last(late, own) is not None)
            got.clear()
            parts.headset.start()
            await bridged(got)
            await until(lambda: b"ready" in (last(got, own) or b""))
        await until(lambda: b"stopped" in (last(got, own) or b""))


def test_a_bridge_without_a_client_id_of_its_own_does_not_start(parts: Parts) -> None:
    """As it is shipped: the operator must choose one."""
    parts.headset.change(f"remote_clientid {SECRET}", "remote_clientid")
    done = subprocess.run(
        [program() or "mosquitto", "-c", parts.headset._configuration],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert done.returncode != 0
    assert "clientid" in done.stderr


async def test_no_application_takes_the_bridges_place(parts: Parts) -> None:
    """At either side, by an id that can be read or guessed; with the one of the configuration it could."""
    parts.cloud.start()
    parts.headset.start()
    got: list[Message] = []
    here = Endpoint.of(BrokerSettings(parts.headset.url))

    async def take(*names: str) -> None:
        for name in names:
            for endpoint in (parts.application, here):
                async with connect(endpoint, client_id=name, deliver=print):
                    pass
        await asyncio.sleep(1.0)

    async with parts.listening(got):
        await bridged(got)
        known = {part for message in got for part in message.topic.split("/")} | {socket.gethostname(), "headset-1"}
        await take(*(f"{before}{name}" for name in known for before in ("", "local.", f"{socket.gethostname()}.")))
        assert [message.payload for message in got if message.topic == NOTICE] == [b"1"]
        await take(SECRET)  # control
        await until(lambda: [m.payload for m in got if m.topic == NOTICE][-2:] == [b"0", b"1"])


def test_the_bridge_takes_nothing_in_and_names_no_raw_topic() -> None:
    lines = [line.split() for line in (CONFIGURATIONS / "bridge.conf").read_text().splitlines()]
    topics = [words[1:] for words in lines if words[:1] == ["topic"]]
    assert [words[1] for words in topics] == ["out"] * 5
    assert {words[0].rpartition("/")[2] for words in topics} == {"private", "meta", "status", "budget", "odometer"}
