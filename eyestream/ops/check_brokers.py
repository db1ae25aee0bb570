"""Trials that show whether the brokers keep strangers out: without a login, with a wrong one, and with each good one.

Trials publish at topics of a device that does not exist, so that no sidecar and no application at work meets them. A
granted subscription proves nothing: mosquitto grants all, and filters what it delivers. So what counts is what arrives.

For trying things out, one broker without logins on a machine of one person is enough: then only others must stay out.
"""

import asyncio
import contextlib
import dataclasses
import ipaddress
import secrets
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping

from eyestream.errors import ConfigError, LinkError
from eyestream.ops.check_ports import NO_PORTS, Port, Ports, name_finding
from eyestream.ops.check_private import listening, owner_finding, probe_id, size_finding
from eyestream.ops.findings import Finding, bad, good
from eyestream.rim.config import BrokerSettings, LoginSettings, Settings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import CONNECT_SECONDS, Message, connect
from eyestream.rim.plan import Plan
from eyestream.wire.topics import budget_topic, gaze_topic, meta_topic, odometer_topic, private_topic, raw_topic

Others = Mapping[str, Mapping[str, Endpoint]]
"""By broker, ``raw`` and ``private``: how those other than the sidecar get in, by who they are."""

SETTLE_SECONDS = 0.4
"""So long we listen for what should not arrive."""

_ELSEWHERE = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""Addresses of documentation (RFC 5737, 3849): which of ours would be used to go there? Nothing is sent."""

_ACL = "Give the listener the acl_file that `eyestream deploy` writes"
_FAR = " on another machine"
_SIDECAR, _TRACKER, _APPLICATION, _ANONYMOUS = "the sidecar", "the tracker", "the application", "a stranger"


def others_of(
    settings: Settings, tracker: LoginSettings | None, application: LoginSettings | None, ports: Ports = NO_PORTS
) -> Others:
    """Logins of tracker and application, where they are at hand; raises ConfigError for one that cannot be used.

    Where a broker has a port for other machines, each stands there a second time.
    """
    logins = {name: login for name, login in ((_TRACKER, tracker), (_APPLICATION, application)) if login is not None}
    found: dict[str, dict[str, Endpoint]] = {}
    for side, broker in (("private", settings.private), ("raw", settings.raw_broker)):
        people = found[side] = {}
        for name, login in logins.items():
            people[name] = Endpoint.of(
                BrokerSettings(
                    broker.url, login.username, login.password_file, broker.ca_file, login.cert_file, login.key_file
                )
            )
            if side in ports:
                known = people[name]
                people[name + _FAR] = dataclasses.replace(
                    ports[side].endpoint, username=known.username, password=known.password
                )
    return found


async def broker_findings(
    settings: Settings, plan: Plan | None, others: Others, ports: Ports = NO_PORTS
) -> list[Finding]:
    """Try both brokers.

    Parameters
    ----------
    settings, plan
        The configuration, and the same resolved; None where it cannot be.
    others
        Of `others_of`: what an ACL grants them is then tried too.
    ports
        For other machines, by broker.
    """
    findings = []
    sides = [("private", settings.private, _APPLICATION)]
    if settings.rows_cross_a_broker:
        apart = "raw rows have a listener of their own"
        shared = settings.raw is None or settings.raw.url == settings.private.url
        remedy = "Add a [raw] table, and run two brokers, as `eyestream deploy` lays them out"
        findings.append(bad(apart, "raw and private are one", remedy) if shared else good(apart))
        sides.insert(0, ("raw", settings.raw_broker, _TRACKER))
    else:
        findings.append(good("raw rows cross no broker: every stream has a source in this process"))
    for side, broker, expected in sides:
        findings += await _side(side, broker, settings, plan, Guests(others[side], ports.get(side), expected))
    return findings


@dataclasses.dataclass(frozen=True, slots=True)
class Guests:
    """Others who may want to enter a broker, its port for other machines, and the one of them who must get in."""

    others: Mapping[str, Endpoint]
    port: Port | None
    welcome: str


async def _side(
    side: str, broker: BrokerSettings, settings: Settings, plan: Plan | None, expected: Guests
) -> list[Finding]:
    """All findings about one broker; of one that cannot be used, only that."""
    what = f"{side} broker: the sidecar gets in"
    try:
        own = Endpoint.of(broker)
        fault = await _refusal(own)
    except ConfigError as error:
        return [bad(what, str(error), f"Correct [{side}]")]
    if fault is not None:
        return [bad(what, fault, "Start the broker; check its log, and url, login and ca_file of the configuration")]
    people = {_SIDECAR: own}
    entered: list[Finding] = []
    for name, endpoint in expected.others.items():
        refusal = await _refusal(endpoint)
        if refusal is None:
            people[name] = endpoint
        elif name.removesuffix(_FAR) == expected.welcome:
            entered.append(bad(f"{side} broker: {name} gets in", refusal, "Correct its login, or the password_file"))
    stranger = Endpoint.of(BrokerSettings(broker.url, ca_file=broker.ca_file))
    entry = await _entry(f"{side} broker", own, stranger)
    if not entry[0].passed:
        people[_ANONYMOUS] = stranger
    if expected.port is not None:
        far = await _entry(f"{side} broker, from other machines", own, expected.port.endpoint)
        if not far[0].passed:
            people[_ANONYMOUS + _FAR] = expected.port.endpoint
        entry += [*far, await name_finding(side, expected.port)]
    if side == "raw":
        rights = await _raw_rights(people, settings)
    else:
        size, owners = await size_finding(own, people.values(), plan), await owner_finding(own, settings)
        rights = [*await _private_rights(people, [stream.name for stream in settings.stream]), size, owners]
    return [good(what), await _encryption(side, broker, own), *entered, *entry, *rights]


async def _refusal(endpoint: Endpoint) -> str | None:
    """Why `endpoint` cannot be entered; None: it can."""
    try:
        async with connect(endpoint, client_id=probe_id(), deliver=_ignore):
            return None
    except LinkError as error:
        return str(error)


def _ignore(message: Message) -> None:
    """For links that listen to nothing."""


async def _encryption(side: str, broker: BrokerSettings, own: Endpoint) -> Finding:
    """Find a Unix socket, or TLS for the broker's name alone: a certificate that fits any name protects nobody."""
    what = f"{side} broker: a Unix socket, or TLS with the right name"
    if own.unix:
        return good(what)
    if own.tls is None:
        remedy = f"Use unix:///... on one machine and mqtts://... between two in [{side}] url"
        return bad(what, f"{broker.url} is neither, and an impostor there would be told password and rows", remedy)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(
                own.host, own.port, ssl=own.tls, server_hostname="not-the-broker.invalid"
            )
        writer.close()
    except ssl.SSLCertVerificationError:
        return good(what)
    except (OSError, TimeoutError):
        return bad(what, "the broker does not answer a second connection", "Check max_connections")
    return bad(what, "its certificate passes for any name", "Issue one for the broker's name alone")


async def _entry(where: str, own: Endpoint, stranger: Endpoint) -> list[Finding]:
    """Try to get in without a login, and with wrong ones."""
    nobody, wrong = f"{where}: nobody gets in without a login", f"{where}: nobody gets in with a wrong login"
    entered = await _refusal(stranger) is None
    remedy = "Set allow_anonymous false on the listener"
    first = bad(nobody, "an anonymous client was let in", remedy) if entered else good(nobody)
    # The sidecar's own name with a made-up password too: some brokers look at names alone.
    names = [probe_id(), *([] if own.username is None else [own.username])]
    guesses = [dataclasses.replace(stranger, username=name, password=secrets.token_hex(8)) for name in names]
    accepted = [name for name, guess in zip(names, guesses, strict=True) if await _refusal(guess) is None]
    remedy = "Give the listener a password_file, or require_certificate and use_identity_as_username"
    return [first, bad(wrong, "a made-up password was accepted", remedy) if accepted else good(wrong)]


async def _raw_rights(people: Mapping[str, Endpoint], settings: Settings) -> list[Finding]:
    """Findings on who writes raw rows, who reads them, and whether the broker keeps them."""
    probe = raw_topic(probe_id())

    async def write() -> None:
        for name, endpoint in people.items():
            await _publish(endpoint, probe, name.encode())

    heard = await _overhear(people, [probe, "#"], write)
    arrived = {message.payload.decode(errors="replace") for message in heard[_SIDECAR] if message.topic == probe}
    findings = []
    for name in people:
        if name.removesuffix(_FAR) == _TRACKER:
            what = f"raw broker: rows of {name} reach the sidecar"
            findings.append(good(what) if name in arrived else bad(what, "they do not", _ACL))
        else:
            what = f"raw broker: {name} writes no raw rows"
            findings.append(bad(what, "what it wrote arrived", _ACL) if name in arrived else good(what))
    for name in [name for name in people if name != _SIDECAR]:
        what = f"raw broker: {name} reads no raw rows"
        if any(message.topic.endswith("/raw") for message in heard[name]):
            findings.append(bad(what, "raw rows arrived there", _ACL))
        elif not arrived:
            findings.append(bad(what, "nothing was written that it could have read", "Give --tracker FILE"))
        else:
            findings.append(good(what))
    if not {_ANONYMOUS, _APPLICATION} & {name.removesuffix(_FAR) for name in people}:
        findings.append(good("raw broker: a stranger reads no raw rows, as none gets in"))
    return [*findings, await _retention(people, settings, probe)]


async def _retention(people: Mapping[str, Endpoint], settings: Settings, probe: str) -> Finding:
    """Whether rows that are published as retained, by whoever may, are there for a late subscriber."""
    what, remedy = "raw broker: raw rows are not retained", "Set retain_available false for the raw broker"
    topics = [raw_topic(device.id, stream.name) for device in settings.device for stream in settings.streams_of(device)]
    topics += [gaze_topic(source.device) for source in settings.source if source.kind == "mqtt"]
    for endpoint in people.values():
        await _publish(endpoint, probe, b"kept", retain=True)

    heard: list[Message] = []
    async with listening([(people[_SIDECAR], heard.append)], [probe, *topics]):
        await asyncio.sleep(SETTLE_SECONDS)
    for endpoint in people.values():
        await _publish(endpoint, probe, b"", retain=True)  # forget the probe
    return bad(what, "a retained message is there", remedy) if any(m.retain for m in heard) else good(what)


async def _private_rights(people: Mapping[str, Endpoint], streams: list[str]) -> list[Finding]:
    """Findings on who writes private chunks, seen by everyone who may read them.

    An application need not hear every stream: one of the configuration does.
    """
    device = probe_id()
    probes, left, spent = (
        [of(device, name) for name in streams] for of in (private_topic, budget_topic, odometer_topic)
    )

    async def write() -> None:
        for name, endpoint in people.items():
            for topic in probes:
                await _publish(endpoint, topic, name.encode())
        for topic in (*left, *spent):
            await _publish(people[_SIDECAR], topic, _SIDECAR.encode())

    metas = [meta_topic(device, name) for name in streams]
    heard = await _overhear(people, [*probes, *left, *spent, *metas, "#"], write)
    arrived = {m.payload.decode(errors="replace") for found in heard.values() for m in found if m.topic in probes}
    findings = []
    for name in [name for name in people if name.removesuffix(_FAR) == _APPLICATION]:
        reached = {m.topic for m in heard[name] if m.payload == _SIDECAR.encode()}
        about = (probes, "what the sidecar writes"), (left, "what is left of a budget"), (spent, "what was spent")
        for topics, words in about:
            what = f"private broker: {words} reaches {name}"
            findings.append(bad(what, "it does not", _ACL) if reached.isdisjoint(topics) else good(what))
    for name in [name for name in people if name != _SIDECAR]:
        what = f"private broker: {name} writes no private chunks"
        findings.append(bad(what, "what it wrote arrived", _ACL) if name in arrived else good(what))
    if len(people) == 1:
        findings.append(good("private broker: a stranger writes no private chunks, as none gets in"))
    return findings


async def _publish(endpoint: Endpoint, topic: str, payload: bytes, retain: bool = False) -> None:
    """Try to publish; a broker that breaks the link over it has refused."""
    with contextlib.suppress(LinkError):
        async with connect(endpoint, client_id=probe_id(), deliver=_ignore) as link:
            async with asyncio.timeout(CONNECT_SECONDS):
                await link.publish(topic, payload, qos=1, retain=retain)


async def _overhear(
    listeners: Mapping[str, Endpoint], filters: list[str], act: Callable[[], Awaitable[None]]
) -> dict[str, list[Message]]:
    """Messages that each listener hears while `act` runs and shortly after."""
    heard: dict[str, list[Message]] = {name: [] for name in listeners}
    async with listening([(listeners[name], heard[name].append) for name in listeners], filters):
        await act()
        await asyncio.sleep(SETTLE_SECONDS)  # what must not arrive has no event
    return heard


async def laptop_findings(settings: Settings, plan: Plan | None, elsewhere: Iterable[str]) -> list[Finding]:
    """Try the brokers of a configuration from this machine.

    Parameters
    ----------
    settings, plan
        The configuration, and the same resolved; None where it cannot be.
    elsewhere
        Addresses under which other machines know this one.
    """
    findings = []
    sides = {"private": settings.private} | ({"raw": settings.raw} if settings.raw is not None else {})
    for side, broker in sides.items():
        what = f"{side} broker: the sidecar gets in"
        try:
            endpoint = Endpoint.of(broker)
            async with connect(endpoint, client_id=probe_id(), deliver=_ignore):
                findings.append(good(what))
        except ConfigError as error:
            findings.append(bad(what, str(error), f"Correct [{side}]"))
            continue
        except LinkError as error:
            how = "Start the broker" if endpoint.unix else f"Start one: mosquitto -p {endpoint.port} &"
            findings.append(bad(what, str(error), how))
            continue
        findings.append(await _only_here(side, endpoint, elsewhere))
        if side == "private":
            findings += [await size_finding(endpoint, [endpoint], plan), await owner_finding(endpoint, settings)]
    return findings


def addresses_elsewhere() -> list[str]:
    """Addresses of this machine that others use; none where it has no network."""
    found = []
    for far, family in _ELSEWHERE:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((far, 9))
            except OSError:
                continue
            found.append(str(probe.getsockname()[0]))
    return found


async def _only_here(side: str, endpoint: Endpoint, elsewhere: Iterable[str]) -> Finding:
    """A broker without logins must listen on the loopback alone, or on a Unix socket."""
    what = f"{side} broker: only this machine reaches it"
    if endpoint.unix:
        return good(what)
    if not _is_loopback(endpoint.host):
        return bad(what, f"{endpoint} is another machine", f"Name localhost in [{side}] url, or leave --laptop out")
    for address in elsewhere:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, writer = await asyncio.open_connection(address, endpoint.port)
        except (OSError, TimeoutError):
            continue
        writer.close()
        remedy = f"Let it listen on the loopback: listener {endpoint.port} 127.0.0.1"
        return bad(what, f"it answers at {address} too", remedy)
    return good(what)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
