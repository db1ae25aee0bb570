"""Whether the devices of a configuration are its own: no other sidecar of the private broker states one of them."""

import secrets
from collections.abc import Mapping

from eyestream.errors import LedgerError, LinkError
from eyestream.ops.findings import Finding, bad, good
from eyestream.rim.config import Settings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import connect
from eyestream.rim.sidecar.ownership import Ownership, UnseenError

__all__ = ["owner_finding"]


async def owner_finding(sidecar: Endpoint, settings: Settings) -> Finding:
    """Look as the sidecar does before it starts.

    Parameters
    ----------
    sidecar
        Its login at the private broker.
    settings
        The configuration; its ledger says which statements are its own.
    """
    what = "private broker: no other sidecar states these devices, or has this name"
    former: Mapping[str, tuple[str, ...]] = {}
    name, ledger_id = settings.sidecar.name, secrets.token_bytes(16)
    try:
        reading = read_ledger(settings.sidecar.ledger)
        ledger_id, former = reading.header.ledger_id, reading.former_ledgers
    except LedgerError:
        pass  # said by another check; every statement is then another's
    devices = [device.id for device in settings.device]
    owners = Ownership(name, ledger_id, devices, lambda: None, lambda device: frozenset(former.get(device, ())))
    try:
        async with connect(sidecar, client_id=f"check-{secrets.token_hex(4)}", deliver=owners.deliver) as link:
            await owners.look(link)
            copy = await owners.find_copy()
    except UnseenError:
        remedy = "Let the sidecar read eyestream/v1/+/sidecar/owner and .../status, as private.acl of a deployment"
        return bad(what, "the sidecar cannot see what others state", remedy)
    except LinkError as error:
        return bad(what, str(error), "Start the broker; check its log")
    fault = owners.fault if copy in (None, name) else owners.copied_by(copy)  # our own name is this sidecar, at work
    return good(what) if fault is None else bad(what, fault, "A device belongs to one sidecar")
