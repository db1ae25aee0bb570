"""Grants over real mosquitto, by its files and by its plugin: who is revoked in mid-stream hears nothing more."""

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest

from eyestream.cli.main import main
from eyestream.ops.grants.access import list_of, matches, rights_to, with_rights
from eyestream.ops.grants.by_files import Files
from eyestream.ops.grants.record import read_record
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.product.faults.deployment import PASSWORDS, Deployment
from tests.rigs.mosquitto import Mosquitto, plugin
from tests.rigs.tile_stream import TEXT

APPS = ("application", "game")
STREAMS = ("features", "gaze")
LOGIN = '\nusername = "{0}"\npassword_file = "{1}/{0}.password"\n'


class Place:
    """A broker whose rights can be changed, and the configuration of its sidecar."""

    def __init__(self, url: str, config: Path, *more: str) -> None:
        self.url, self.config, self._more = url, config, more
        folder = config.parent
        for name, password in (PASSWORDS | {"game": "of the game", "admin": "of the admin"}).items():
            secret = folder / f"{name}.password"
            secret.touch(0o600)
            secret.write_text(password)
            (folder / f"{name}.toml").write_text(LOGIN.format(name, folder))
        text = TEXT.format(url=url, session=1152.0)
        config.write_text(text.replace(f'url = "{url}"', f'url = "{url}"{LOGIN.format("sidecar", folder)}'))
        create_ledger(folder / "ledger", created=1)

    def endpoint(self, name: str) -> Endpoint:
        password = (self.config.parent / f"{name}.password").read_text().strip()
        host = self.url.removeprefix("unix://").removeprefix("mqtt://")
        if self.url.startswith("unix"):
            return Endpoint(host, 0, unix=True, username=name, password=password)
        return Endpoint(host.split(":")[0], int(host.split(":")[1]), username=name, password=password)

    def type(self, *words: str) -> None:
        main([*words, "--config", str(self.config), *self._more])

    async def do(self, *words: str) -> None:
        await asyncio.to_thread(self.type, *words)


@pytest.fixture
def by_files(
    tmp_path_factory: pytest.TempPathFactory, mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """A deployment in a folder, and a systemd that sends the signal that the unit sends."""
    root = tmp_path_factory.mktemp("d")  # the path of a socket is short
    folder = root / "etc" / "eyestream"
    folder.mkdir(parents=True)
    made = Deployment(folder)
    made.private.add_user("game", "of the game")
    made.start()
    assert made.private._process is not None
    (root / "bin").mkdir()
    systemctl = root / "bin" / "systemctl"
    systemctl.write_text(
        f'#!/bin/sh\ntest "$*" = "reload eyestream-private" && kill -HUP {made.private._process.pid}\n'
    )
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{root / 'bin'}:{os.environ['PATH']}")
    (folder / "deployment.json").write_text("{}")
    yield Place(made.private.url, folder / "sidecar.toml")
    made.stop()


@pytest.fixture
def by_plugin(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[Place]:
    state = tmp_path / "state.json"
    subprocess.run(
        ["mosquitto_ctrl", "dynsec", "init", state, "admin", "of the admin"], check=True, capture_output=True
    )
    broker = Mosquitto(tmp_path, f"plugin {plugin()}", f"plugin_opt_config_file {state}", "allow_anonymous false")
    broker.start()
    place = Place(broker.url, tmp_path / "sidecar.toml", "--admin", str(tmp_path / "admin.toml"))
    everything = [{"acltype": kind, "topic": "#", "allow": True} for kind in ("publishClientSend", "subscribePattern")]
    told: list[Message] = []

    async def laid_out() -> None:
        async with connect(place.endpoint("admin"), client_id=None, deliver=told.append) as link:
            topic = "$CONTROL/dynamic-security/v1"
            await link.subscribe(f"{topic}/response", 1)
            commands = [{"command": "createRole", "rolename": "everything", "acls": everything}] + [
                {"command": "createClient", "username": name, "password": password, "roles": roles}
                for name, password, roles in (
                    ("sidecar", PASSWORDS["sidecar"], [{"rolename": "everything"}]),
                    ("application", PASSWORDS["application"], [{"rolename": "everything", "priority": 50}]),
                    ("game", "of the game", []),
                )
            ]
            await link.publish(topic, json.dumps({"commands": commands}).encode(), qos=1)
            await until(lambda: told != [])
            assert b"error" not in told[0].payload

    asyncio.run(laid_out())
    yield place
    broker.stop()


@pytest.fixture(
    params=[
        pytest.param("by_files", marks=pytest.mark.needs("mosquitto")),
        pytest.param("by_plugin", marks=pytest.mark.needs("dynamic-security", "mosquitto")),
    ]
)
def place(request: pytest.FixtureRequest) -> Place:
    made: Place = request.getfixturevalue(request.param)
    return made


class Heard(list[tuple[str, int]]):
    """The stream and the number of each chunk that an application heard."""

    def hear(self, message: Message) -> None:
        self.append((message.topic.split("/")[3], int(message.payload)))

    def of(self, stream: str) -> list[int]:
        return [number for name, number in self if name == stream]


@contextlib.asynccontextmanager
async def streaming(place: Place) -> AsyncIterator[Callable[[], int]]:
    """A sidecar's login publishes numbers on both streams, beside the body; gives the number that comes next."""
    numbers, latest = itertools.count(), [0]

    async def publish() -> None:
        async with connect(place.endpoint("sidecar"), client_id=None, deliver=print) as link:
            for latest[0] in numbers:
                for stream in STREAMS:
                    await link.publish(f"eyestream/v1/hmd-1/{stream}/private", str(latest[0]).encode(), qos=1)
                await asyncio.sleep(0.01)

    task = asyncio.create_task(publish())
    yield lambda: latest[0] + 1
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def applying(place: Place, name: str) -> AsyncIterator[Heard]:
    """An application that subscribes to everything under a fixed name, and comes back whenever its link is lost."""
    heard = Heard()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, f"id-{name}", clean_session=False,
                         transport="unix" if place.url.startswith("unix") else "tcp")  # fmt: skip
    endpoint = place.endpoint(name)
    client.username_pw_set(name, endpoint.password)
    client.reconnect_delay_set(1, 1)
    client.on_connect = lambda client, *rest: client.subscribe("eyestream/#", 1)
    client.on_message = lambda client, data, message: heard.hear(Message(message.topic, message.payload, False))
    client.connect_async(endpoint.host, endpoint.port or 1883)
    client.loop_start()
    try:
        yield heard
    finally:
        await asyncio.to_thread(client.loop_stop)


async def test_two_applications_and_one_is_revoked_in_mid_stream(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """When `revoke` has answered, the one hears nothing more, also when it tries again; the other hears every chunk."""
    for app in APPS:
        await place.do("grant", app, "features")
        await place.do("grant", app, "gaze")
    async with applying(place, "application") as first, applying(place, "game") as second, streaming(place) as coming:
        await until(lambda: min(len(one.of(stream)) for one in (first, second) for stream in STREAMS) > 20)
        await place.do("revoke", "game")
        after = coming()
        await asyncio.sleep(2.5)  # it tries again, twice
        assert [number for _, number in second if number > after] == []
        for stream in STREAMS:
            whole = first.of(stream)
            assert whole == list(range(whole[0], whole[-1] + 1))
            assert whole[-1] > after + 20
        capsys.readouterr()
        await place.do("grants")
        said = capsys.readouterr().out
        assert "application hears features since 20" in said
        assert "game hears" not in said
        assert "game heard gaze from 20" in said
        await place.do("grant", "game", "gaze")  # with the password that it had
        again = coming()
        await until(lambda: second.of("gaze")[-1] > again)
        assert max(second.of("features")) <= after
    record = read_record(place.config.parent / "ledger")
    assert [entry.word for entry in record] == ["granted"] * 4 + ["revoked"] * 2 + ["granted"]


async def test_one_of_two_streams_is_revoked(place: Place) -> None:
    """Coarse and fine apart: it goes on to hear the one, and nothing of the other, in no session."""
    await place.do("grant", "game", "coarse")
    await place.do("grant", "game", "fine")
    async with applying(place, "game") as heard, streaming(place) as coming:
        await until(lambda: min(len(heard.of(stream)) for stream in STREAMS) > 20)
        await place.do("revoke", "game", "fine")
        after = coming()
        await until(lambda: max(heard.of("gaze")) > after + 20)
        assert max(heard.of("features")) <= after


async def test_what_is_kept_for_a_slow_reader_is_not_sent_after_a_revocation(place: Place) -> None:
    """mosquitto checks rights when a message comes in, and not again when it sends what it holds for a slow reader."""
    for stream in STREAMS:
        await place.do("grant", "game", stream)
    endpoint, got, owed = place.endpoint("game"), Heard(), list[tuple[int, int]]()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "slow", clean_session=False, manual_ack=True,
                         transport="unix" if endpoint.unix else "tcp")  # fmt: skip
    client.username_pw_set("game", endpoint.password)
    client.on_connect = lambda client, *rest: client.subscribe("eyestream/#", 1)

    def hear(client: paho.Client, data: object, message: paho.MQTTMessage) -> None:
        got.hear(Message(message.topic, message.payload, False))
        owed.append((message.mid, message.qos))

    client.on_message = hear
    client.connect(endpoint.host, endpoint.port or 1883)
    client.loop_start()
    async with streaming(place) as coming:
        await until(lambda: coming() > 60)  # more than a broker has under way at once, which is 20
        assert len(got) <= 20
    await place.do("revoke", "game", "features")
    got.clear()
    async with asyncio.timeout(PATIENCE_S):
        while not got.of("gaze"):  # what was granted still comes, after it has connected again
            for packet in owed.copy():
                client.ack(*packet)
            await asyncio.sleep(0.05)
    for _ in range(20):
        for packet in owed.copy():
            client.ack(*packet)
        owed.clear()
        await asyncio.sleep(0.05)
    assert len(got.of("gaze")) > 20
    assert got.of("features") == []
    await asyncio.to_thread(client.loop_stop)


async def test_what_is_kept_for_who_is_away_is_not_sent_after_a_revocation(place: Place) -> None:
    """A session that the broker kept has chunks of both streams, and the login is still open for one of them."""
    for stream in STREAMS:
        await place.do("grant", "game", stream)
    async with streaming(place) as coming:
        async with applying(place, "game") as heard:
            await until(lambda: len(heard.of("features")) > 5)
        away = coming()
        await until(lambda: coming() > away + 30)
    await place.do("revoke", "game", "features")
    async with applying(place, "game") as heard:
        await until(lambda: len(heard.of("gaze")) > 20)
        assert heard.of("features") == []


async def test_control_a_reload_alone_sends_what_is_kept(by_files: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plausible wrong version: the access list is written and read, and nobody is cut."""
    allow = Files.allow

    async def without_a_cut(self: Files, application: str, streams: frozenset[str], *, cut: bool) -> None:
        await allow(self, application, streams, cut=False)

    monkeypatch.setattr(Files, "allow", without_a_cut)
    with pytest.raises((AssertionError, TimeoutError)):
        await test_what_is_kept_for_a_slow_reader_is_not_sent_after_a_revocation(by_files)


async def test_a_new_login_gets_in_with_what_is_written_for_it(place: Place, tmp_path: Path) -> None:
    secret = place.config.parent / "new.password"
    await place.do("grant", "new", "gaze", "--new", str(secret))
    assert secret.stat().st_mode & 0o777 == 0o600
    async with applying(place, "new") as heard, streaming(place):
        await until(lambda: len(heard.of("gaze")) > 5)
        assert heard.of("features") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("grant", "gama", "gaze"), "there is no login gama at the private broker; did you mean game?"),
        (("grant", "else", "gaze"), "there is no login else at the private broker; --new FILE makes it"),
        (("revoke", "gama"), "there is no login gama at the private broker; did you mean game?"),
        (("grant", "game", "gase"), "or coarse or fine where there is such a stream; did you mean gaze?"),
        (("grant", "game", "features", "--features", "blink_rat"), "did you mean blink_rate?"),
        (("grant", "game", "features", "--features", "blink_rate"), "a broker hands on all or nothing"),
        (("grant", "sidecar", "gaze"), "there is no login sidecar"),
        (("grant", "game", "gaze", "--new", "x"), "there is a login game already"),
        (("grant", "new/#", "gaze", "--new", "x"), "expected 1 to 64 of A-Z"),
    ],
)  # fmt: skip
def test_a_mistake_changes_nothing(
    by_files: Place, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = by_files.config.parent / "private"
    before = [(folder / name).read_text() for name in ("private.acl", "private.passwd")]
    with pytest.raises(SystemExit):
        by_files.type(*words)
    assert said in capsys.readouterr().err
    assert [(folder / name).read_text() for name in ("private.acl", "private.passwd")] == before
    assert read_record(by_files.config.parent / "ledger") == []


def test_a_broker_that_does_not_read_its_files_is_said(
    by_files: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A revocation that is not in force is never said to be."""
    systemctl = by_files.config.parents[2] / "bin" / "systemctl"
    works, logins = systemctl.read_text(), by_files.config.parent / "private" / "private.passwd"
    systemctl.write_text("#!/bin/sh\n")
    monkeypatch.setattr("eyestream.ops.grants.by_files.RELOAD_S", 0.5)
    with pytest.raises(SystemExit):
        by_files.type("revoke", "application")
    assert "has not read it" in capsys.readouterr().err
    systemctl.write_text("#!/bin/sh\necho no >&2; exit 1\n")
    with pytest.raises(SystemExit):
        by_files.type("revoke", "application")
    assert "systemctl reload eyestream-private failed: no" in capsys.readouterr().err
    assert [entry.word for entry in read_record(by_files.config.parent / "ledger")] == []
    assert "eyestream-moment-" in logins.read_text(), "as after a crash in the middle"
    systemctl.write_text(works)
    by_files.type("revoke", "application")
    assert capsys.readouterr().out == "application hears nothing, and its login is closed\n"
    names = [line.partition(":")[0] for line in logins.read_text().splitlines()]
    assert sorted(names) == ["#revoked application", "game", "gatekeeper", "sidecar", "tracker"]


@pytest.mark.parametrize("line", ["use_identity_as_username true", "plugin /usr/lib/other.so"])
def test_a_broker_whose_files_do_not_say_who_gets_in_is_refused(
    by_files: Place, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a list of who hears would leave somebody out, and a revocation would cut nobody."""
    conf = by_files.config.parent / "private" / "private.conf"
    conf.write_text(f"{conf.read_text()}\n# use_identity_as_username true\n{line}\n")
    for words in (("grants",), ("explain",), ("revoke", "application"), ("grant", "game", "gaze")):
        with pytest.raises(SystemExit):
            by_files.type(*words)
        said = capsys.readouterr()
        assert said.out == ""
        assert f"{line}: its files do not say who gets in" in said.err


def test_a_file_of_logins_whose_last_line_has_no_end_keeps_its_logins(by_files: Place) -> None:
    """As an editor may leave it: the new login would else become part of the last password."""
    logins = by_files.config.parent / "private" / "private.passwd"
    before = logins.read_text().splitlines()
    logins.write_text("\n".join(before))
    by_files.type("grant", "other", "gaze", "--new", str(by_files.config.parent / "other.password"))
    *kept, new = logins.read_text().splitlines()
    assert (sorted(kept), new.partition(":")[0]) == (sorted(before), "other")


def test_lines_for_everybody_are_not_overlooked(by_files: Place, capsys: pytest.CaptureFixture[str]) -> None:
    acl = by_files.config.parent / "private" / "private.acl"
    acl.write_text(f"{acl.read_text()}\npattern read eyestream/v1/+/%u/private\n")
    with pytest.raises(SystemExit):
        by_files.type("revoke", "application")
    assert "gives it to everybody" in capsys.readouterr().err


def test_a_line_that_denies_outweighs_one_that_allows(by_files: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """As mosquitto has it, wherever the line stands."""
    acl = by_files.config.parent / "private" / "private.acl"
    acl.write_text(f"{acl.read_text()}\nuser application\ntopic deny eyestream/v1/+/gaze/private\n")
    by_files.type("grants")
    said = capsys.readouterr().out
    assert "application hears features" in said
    assert "application hears gaze" not in said


@pytest.mark.parametrize(
    ("topic_filter", "topic", "fits"),
    [
        ("#", "a/b", True), ("a/#", "a", True), ("a/#", "b/a", False),
        ("+", "a/b", False), ("+/b", "a/b", True), ("a/b/c", "a/b", False),
    ],
)  # fmt: skip
def test_filters(topic_filter: str, topic: str, fits: bool) -> None:
    assert matches(topic_filter, topic) is fits
    assert paho.topic_matches_sub(topic_filter, topic) is fits


def test_the_list_of_others_stays_as_it_is() -> None:
    text = "# of ours\nuser sidecar\ntopic write a/#\n\nuser game\ntopic read b/#\n# a note\ntopic read c/#\n"
    text += "user x\ntopic d\n"
    changed = with_rights(text, "game", rights_to("game", ["gaze"]))
    assert [line for line in changed.splitlines() if line.startswith("#")] == ["# of ours", "# a note"]
    assert list_of(changed, "sidecar") == [("write", "a/#")]
    assert list_of(changed, "x") == [("readwrite", "d")]
    assert set(list_of(changed, "game")) == set(rights_to("game", ["gaze"]))
    assert list_of(with_rights(changed, "game", []), "game") == []
