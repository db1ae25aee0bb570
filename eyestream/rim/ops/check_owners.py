"""Whether the devices of a configuration are its own: no other sidecar of the private broker states one of them."""

import secrets
from collections.abc import Mapping

from eyestream.errors import LedgerError, LinkError
from eyestream.rim.config import Settings
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import connect
from eyestream.rim.ops.findings import Finding, bad, good
from eyestream.rim.sidecar.ownership import Ownership

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
    try:
        reading = read_ledger(settings.sidecar.ledger)
        ledger, former = ledger_name(reading.header.ledger_id), reading.former_ledgers
    except LedgerError:
        ledger = secrets.token_hex(16)  # said by another check; every statement is then another's
    devices = [device.id for device in settings.device]
    owners = Ownership(
        settings.sidecar.name, ledger, devices, lambda: None, lambda device: frozenset(former.get(device, ()))
    )
    try:
        async with connect(sidecar, client_id=f"check-{secrets.token_hex(4)}", deliver=owners.deliver) as link:
            seen = await owners.look(link)
    except LinkError as error:
        return bad(what, str(error), "Start the broker; check its log")
    if owners.fault is not None:
        return bad(what, owners.fault, "A device belongs to one sidecar")
    if not seen:
        remedy = "Let the sidecar read eyestream/v1/+/sidecar/owner and .../status, as private.acl of a deployment"
        return bad(what, "the sidecar cannot see what others state", remedy)
    return good(what)
