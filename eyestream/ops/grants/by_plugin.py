"""Rights by mosquitto's dynamic security plugin, over MQTT, as a login that may administer it.

Each application has a role of its own, before all its other roles: it allows what was granted, and denies the rest of
our topics. The plugin ends the connection of a client that it disables, and a new link is checked anew. Source:
https://mosquitto.org/documentation/dynamic-security/.
"""

import asyncio
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from eyestream.errors import ConfigError
from eyestream.ops.grants.access import Hears, matches, rights_to
from eyestream.rim.config import LoginSettings, Settings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect

_TOPIC = "$CONTROL/dynamic-security/v1"
_OURS = "eyestream/#"
_FIRST = 1000
"""Priority of our role, before those that an operator gives."""

ANSWER_S = 5.0


class Plugin:
    """The private broker of a configuration, administered by `admin`."""

    def __init__(self, settings: Settings, admin: LoginSettings) -> None:
        given = {field: getattr(admin, field) for field in admin.__struct_fields__}
        self._endpoint = Endpoint.of(msgspec.structs.replace(settings.private, **given))
        self._others = {settings.private.username, admin.username}

    async def hearing(self) -> Mapping[str, Hears]:
        """By login, as roles, groups and what holds by default have it."""
        clients, roles, groups, default = await self._all()
        return {
            name: _hears(
                [*_acls(client, roles), *(a for g in client["groups"] for a in _acls(groups[g], roles))], default
            )
            for name, client in clients.items()
            if not client.get("disabled") and name not in self._others
        }

    async def closed(self) -> Collection[str]:
        """Logins that are disabled."""
        return [name for name, client in (await self._all())[0].items() if client.get("disabled")]

    async def add(self, application: str) -> str:
        """Make a client."""
        password = secrets.token_urlsafe(24)
        await self._ask({"command": "createClient", "username": application, "password": password})
        return password

    async def allow(self, application: str, streams: Collection[str], *, cut: bool) -> None:
        """Write its role, and disable it to cut it."""
        clients, roles, *_ = await self._all()
        role = f"eyestream-{application}"
        acls = [_acl("publishClientReceive" if a == "read" else "publishClientSend", t, 1) for a, t in
                rights_to(application, streams)]  # fmt: skip
        acls += [_acl(kind, _OURS, 0, allow=False) for kind in ("publishClientReceive", "publishClientSend")]
        acls += [_acl(kind, _OURS, 0) for kind in ("subscribePattern", "unsubscribePattern")]
        commands: list[dict[str, Any]] = [
            {"command": "modifyRole" if role in roles else "createRole", "rolename": role, "acls": acls}
        ]
        name = {"username": application}
        if role not in {one["rolename"] for one in clients[application]["roles"]}:
            commands.append({"command": "addClientRole", **name, "rolename": role, "priority": _FIRST})
        if cut or not streams:
            commands.append({"command": "disableClient", **name})
        if streams:
            commands.append({"command": "enableClient", **name})
        await self._ask(*commands)

    async def _all(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], bool]:
        """Clients, roles and groups by name, and whether a client hears by default what no right speaks of."""
        lists = [
            {"command": f"list{what}", "verbose": True, "count": -1, "offset": 0}
            for what in ("Clients", "Roles", "Groups")
        ]
        clients, roles, groups, default = await self._ask(*lists, {"command": "getDefaultACLAccess"})
        return (
            {
                one["username"]: one | {"groups": [g["groupname"] for g in one.get("groups", [])]}
                for one in clients["clients"]
            },
            {one["rolename"]: one for one in roles["roles"]},
            {one["groupname"]: one for one in groups["groups"]},
            any(one["acltype"] == "publishClientReceive" and one["allow"] for one in default["acls"]),
        )

    async def _ask(self, *commands: dict[str, Any]) -> list[dict[str, Any]]:
        """Data of each answer; raises ConfigError where one is an error, or there is none."""
        mark, answered = secrets.token_hex(8), asyncio.get_running_loop().create_future()

        def hear(message: Message) -> None:
            try:
                answers = msgspec.json.decode(message.payload)["responses"]
            except (msgspec.MsgspecError, KeyError, TypeError):
                return
            if not answered.done() and any(one.get("correlationData") == mark for one in answers):
                answered.set_result(answers)

        async with connect(self._endpoint, client_id=None, deliver=hear) as link:
            await link.subscribe(f"{_TOPIC}/response", 1)
            asked = {"commands": [one | {"correlationData": mark} for one in commands]}
            await link.publish(_TOPIC, msgspec.json.encode(asked), qos=1)
            try:
                async with asyncio.timeout(ANSWER_S):
                    answers = await answered
            except TimeoutError:
                raise ConfigError(
                    f"{self._endpoint}: no answer of the dynamic security plugin: it is not in use there, or "
                    f"{self._endpoint.username} may not administer it"
                ) from None
        for one in answers:
            if "error" in one:
                raise ConfigError(f"{self._endpoint}: {one.get('command')}: {one['error']}")
        return [one.get("data", {}) for one in answers]


def _acl(kind: str, topic: str, priority: int, *, allow: bool = True) -> dict[str, Any]:
    return {"acltype": kind, "topic": topic, "priority": priority, "allow": allow}


def _acls(holder: Mapping[str, Any], roles: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Rights of a client or a group, in the order in which the plugin looks at them."""
    for held in sorted(holder.get("roles", []), key=lambda one: -one.get("priority", -1)):
        yield from sorted(roles[held["rolename"]].get("acls", []), key=lambda one: -one.get("priority", 0))


def _hears(acls: list[Mapping[str, Any]], default: bool) -> Hears:
    def hears(topic: str) -> bool:
        found = [one for one in acls if matches(one["topic"], topic)]
        subscribes = any(one["acltype"] in ("subscribePattern", "subscribeLiteral") and one["allow"] for one in found)
        return subscribes and next((one["allow"] for one in found if one["acltype"] == "publishClientReceive"), default)

    return hears
