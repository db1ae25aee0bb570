"""The brokers as we ship them: who may do what, and what they must not keep."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import aiomqtt
import pytest

from eyestream.errors import LinkError
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, RefusedError, Will, connect
from eyestream.wire.raw import encode_raw
from eyestream_lab.testing.clocks import until
from tests.product.faults.deployment import PASSWORDS, Deployment
from tests.rigs.payloads import rows_of_a_stranger

TOPICS = {
    leaf: f"eyestream/v1/hmd-1/features/{leaf}" for leaf in ("raw", "private", "meta", "status", "budget", "odometer")
}
TOPICS |= {leaf: f"eyestream/v1/hmd-1/gaze/{leaf}" for leaf in ("ask", "answer")}
TOPICS["own status"] = "eyestream/v1/sidecar/sidecar/status"
TOPICS["foreign"] = "somewhere/else"
FILTERS = (
    "#",
    "+/+/+/+/raw",
    "eyestream/#",
    "eyestream/v1/hmd-1/features/+",
    "$share/{role}/eyestream/#",
    "$share/{role}/#",
)
RELEASED = {"private", "meta", "status", "budget", "odometer", "own status"}
ALLOWED = {
    ("raw", "tracker", "write"): {"raw"},
    ("raw", "sidecar", "read"): {"raw"},
    ("private", "sidecar", "write"): RELEASED,
    ("private", "sidecar", "read"): {"own status"},
    ("private", "application", "read"): RELEASED | {"answer"},
    ("private", "application", "write"): {"ask"},
    ("private", "gatekeeper", "read"): RELEASED | {"ask"},
    ("private", "gatekeeper", "write"): {"answer"},
}


@pytest.fixture
def deployment(tmp_path_factory: pytest.TempPathFactory, mosquitto: object) -> Iterator[Deployment]:
    made = Deployment(tmp_path_factory.mktemp("d"))
    made.start()
    yield made
    made.stop()


async def publish(deployment: Deployment, role: str, url: str, topic: str, payload: bytes, **options: object) -> bool:
    """Publish as `role`; whether the broker took it without breaking the link."""
    with contextlib.suppress(LinkError):
        async with connect(Endpoint.of(deployment.login(role, url)), client_id=None, deliver=print) as link:
            await link.publish(topic, payload, qos=1, **options)
            return True
    return False


@pytest.mark.parametrize("side", ["raw", "private"])
async def test_only_the_allowed_cells_pass(deployment: Deployment, side: str) -> None:
    """Every role writes every topic and listens with every filter; what arrives is what the ACL allows, and no more.

    For that the ACL gets two more logins, that may write everything and read everything.
    """
    broker = deployment.raw if side == "raw" else deployment.private
    broker.acl.write_text(broker.acl.read_text() + "\nuser writer\ntopic write #\n\nuser reader\ntopic read #\n")
    for helper in ("writer", "reader"):
        broker.add_user(helper, helper)
        secret = deployment.folder / f"{helper}.password"
        secret.touch(0o600)
        secret.write_text(helper)
    broker.reload()
    await asyncio.sleep(0.2)
    heard: dict[tuple[str, str], list[Message]] = {key: [] for key in itertools.product(PASSWORDS, FILTERS)}
    written: list[Message] = []
    async with contextlib.AsyncExitStack() as stack:
        links = {}
        for role in (*PASSWORDS, "writer"):
            endpoint = Endpoint.of(deployment.login(role, broker.url))
            links[role] = await stack.enter_async_context(connect(endpoint, client_id=None, deliver=print))
        reader = Endpoint.of(deployment.login("reader", broker.url))
        everything = await stack.enter_async_context(connect(reader, client_id=None, deliver=written.append))
        await everything.subscribe("#", 1)
        for number, (role, topic_filter) in enumerate(heard):
            # client ids with wildcards in them once passed pattern ACLs (CVE-2017-7650)
            endpoint = Endpoint.of(deployment.login(role, broker.url))
            name = f"{'#' if number % 2 else '+'}/{number}"
            link = await stack.enter_async_context(
                connect(endpoint, client_id=name, deliver=heard[role, topic_filter].append)
            )
            with contextlib.suppress(LinkError):
                await link._client.subscribe([topic_filter], 1)  # a link of ours refuses $share by itself
        for role, link in links.items():
            for topic in TOPICS.values():
                with contextlib.suppress(RefusedError):  # what is not refused in words is looked at where it arrives
                    await link.publish(topic, role.encode(), qos=1)
        await asyncio.sleep(0.3)
    for role in PASSWORDS:
        got = {message.topic for message in written if message.payload == role.encode()}
        assert got == {TOPICS[leaf] for leaf in ALLOWED.get((side, role, "write"), set())}, role
    for (role, topic_filter), messages in heard.items():
        allowed = {TOPICS[leaf] for leaf in ALLOWED.get((side, role, "read"), set())}
        got = {message.topic for message in messages}
        assert got <= allowed, (role, topic_filter)
        if topic_filter in {"#", "eyestream/#"}:
            assert got == allowed, (role, topic_filter)
        elif topic_filter == "$share/{role}/eyestream/#" and role != "sidecar":  # whose part the application may get
            assert bool(got) == bool(allowed), (role, topic_filter)


async def test_strangers_do_not_get_in(deployment: Deployment) -> None:
    for broker in (deployment.raw, deployment.private):
        for username, password in ((None, None), ("stranger", "x"), ("sidecar", "x"), ("sidecar", "")):
            client = aiomqtt.Client(str(broker.socket), transport="unix", username=username, password=password)
            with pytest.raises(aiomqtt.MqttError):
                await client.__aenter__()


async def test_raw_is_not_kept(deployment: Deployment) -> None:
    """Retained rows, rows for an absent persistent reader, a will with rows: nothing is there later, nor on disk."""
    rows = rows_of_a_stranger(4, 52)
    payload = encode_raw(1, 0, rows, 1)
    url, topic = deployment.raw.url, TOPICS["raw"]
    sidecar = Endpoint.of(deployment.login("sidecar", url))
    tracker = Endpoint.of(deployment.login("tracker", url))
    assert not await publish(deployment, "tracker", url, topic, payload, retain=True)
    with pytest.raises(LinkError):
        async with connect(tracker, client_id="t", deliver=print, will=Will(topic, payload)):
            pass
    async with connect(sidecar, client_id="keen", deliver=print, clean_session=False) as link:
        await link.subscribe(topic, 1)
    assert await publish(deployment, "tracker", url, topic, payload)  # queued for the absent, in memory only
    deployment.raw.stop()
    files = b"".join(path.read_bytes() for path in deployment.raw.socket.parent.iterdir() if path.is_file())
    deployment.raw.start()
    late: list[Message] = []
    async with connect(sidecar, client_id="keen", deliver=late.append, clean_session=False) as link:
        await link.subscribe("#", 1)
        await asyncio.sleep(0.3)
    assert late == []
    assert rows.tobytes()[:16] not in files
    assert payload[:40] not in files


async def test_what_is_too_large_is_refused(deployment: Deployment) -> None:
    url, topic = deployment.raw.url, TOPICS["raw"]
    assert await publish(deployment, "tracker", url, topic, bytes(65_000))
    got: list[Message] = []
    async with connect(Endpoint.of(deployment.login("sidecar", url)), client_id=None, deliver=got.append) as link:
        await link.subscribe(topic, 1)
        await publish(deployment, "tracker", url, topic, bytes(70_000))
        assert await publish(deployment, "tracker", url, topic, b"small")
        await until(lambda: got != [])
    assert [message.payload for message in got] == [b"small"]


@pytest.mark.parametrize("empty", ["passwords", "acl"])
async def test_an_empty_file_opens_nothing(deployment: Deployment, empty: str) -> None:
    """CVE-2018-12550 and -12551: a broker whose password or ACL file is empty must not be an open one."""
    broker = deployment.raw
    broker.stop()
    (broker.passwords if empty == "passwords" else broker.acl).write_text("\n")
    broker.start()
    got: list[Message] = []
    with contextlib.suppress(LinkError):
        async with connect(
            Endpoint.of(deployment.login("sidecar", broker.url)), client_id=None, deliver=got.append
        ) as link:
            await link.subscribe("#", 1)
            await publish(deployment, "tracker", broker.url, TOPICS["raw"], b"rows")
            await asyncio.sleep(0.3)
    assert got == []
    client = aiomqtt.Client(str(broker.socket), transport="unix")
    with pytest.raises(aiomqtt.MqttError):
        await client.__aenter__()


async def test_a_right_that_was_taken_away_is_gone_for_those_who_were_away(deployment: Deployment) -> None:
    """CVE-2021-34434: a persistent session, offline while its right is taken away, gets nothing of what was queued."""
    broker = deployment.private
    application = Endpoint.of(deployment.login("application", broker.url))
    got: list[Message] = []

    async def visit() -> None:
        async with connect(application, client_id="app", deliver=got.append, clean_session=False) as link:
            with contextlib.suppress(LinkError):
                await link.subscribe(TOPICS["private"], 1)
            await asyncio.sleep(0.3)

    await visit()
    assert await publish(deployment, "sidecar", broker.url, TOPICS["private"], b"before")
    await visit()
    assert [message.payload for message in got] == [b"before"]
    broker.acl.write_text(broker.acl.read_text().replace("topic read", "# topic read"))
    broker.reload()
    await asyncio.sleep(0.2)
    assert await publish(deployment, "sidecar", broker.url, TOPICS["private"], b"after")
    await visit()
    assert [message.payload for message in got] == [b"before"]


def test_the_ledger_and_sockets_of_a_checkout_stay_out_of_it() -> None:
    root = Path(__file__).resolve().parents[3]
    assert "config/ledger" in (root / ".gitignore").read_text().splitlines()
