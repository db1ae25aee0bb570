"""Renewing a deployment for another version: what this version writes is replaced, what the operator owns stays."""

import datetime
import os
from pathlib import Path
from types import MappingProxyType

import msgspec

from eyestream.errors import ConfigError
from eyestream.ops.deployment import layout
from eyestream.ops.deployment.accounts import make_accounts
from eyestream.ops.deployment.credentials import Pair, days_left, new_authority
from eyestream.ops.deployment.layout import MANIFEST, Item
from eyestream.ops.deployment.manifest import Outside, at, digest, manifest_of, read_manifest
from eyestream.ops.deployment.writing import new_broker_certificate, owners_of, program_files

__all__ = ["RENEW_DAYS", "renew"]

RENEW_DAYS = 90
"""A certificate that is valid for fewer days gets a successor."""

_AUTHORITY = "/etc/eyestream/certificates/ca.pem"


def renew(
    root: Path,
    *,
    version: str,
    program: str | None,
    now: datetime.datetime,
    outside: Outside = MappingProxyType({}),
) -> list[str]:
    """Bring the deployment at `root` to this version; what was done, in lines.

    A file that was edited since it was written stays; the new one is put beside it as ``FILE.new``. Interrupted, it can
    be called again.

    Parameters
    ----------
    root, version, now
        As for `deploy`.
    program
        Where the host has eyestream; None: where it was.
    outside
        How other machines reach a broker from now on; a side that is not in it stays as it was.

    Raises
    ------
    ConfigError
        There is none, or it cannot be written.
    """
    old = read_manifest(root)
    if old is None:
        raise ConfigError(f"{root}: there is no deployment; `eyestream deploy {root}` makes one")
    program = program or old.program
    outside = {**old.outside, **outside}
    if len({port for _, port in outside.values()}) < len(outside):
        raise ConfigError("both brokers would listen on one port; --port or --tracker-port gives another")
    files = program_files(program, outside)
    manifest = manifest_of(version, program, outside, files)
    make_accounts(root, layout.sysusers_text())
    owners = owners_of(root, manifest.places)
    known = {place.path: place for place in manifest.places}
    lines = []
    certificates = _certificates(root, old.outside, outside, now)
    try:
        for place in manifest.places:
            if place.kind == "directory" and not at(root, place.path).exists():
                at(root, place.path).mkdir()
                os.chown(at(root, place.path), *owners[place])
                os.chmod(at(root, place.path), place.mode)
        for path, data in files.items():
            lines += _renew_file(root, known[path], owners[known[path]], data, old.written.get(path))
        for path, data in certificates.items():
            _replace(at(root, path), data, known[path], owners[known[path]])
            lines.append(f"renewed  {path}")
        head = Item(MANIFEST, "root", "root", 0o644, "")
        _replace(at(root, MANIFEST), msgspec.json.format(msgspec.json.encode(manifest)), head, (0, 0))
    except OSError as error:
        raise ConfigError(f"{error.filename or root}: cannot be written: {error.strerror}; run it again") from None
    return lines


def _renew_file(root: Path, place: Item, owner: tuple[int, int], data: bytes, before: str | None) -> list[str]:
    target = at(root, place.path)
    beside = target.with_name(target.name + ".new")
    there = target.read_bytes() if target.exists() else None
    if there == data:
        return []
    if there is None or digest(there) == before:
        _replace(target, data, place, owner)
        return [f"renewed  {place.path}"]
    _replace(beside, data, place, owner)
    return [f"kept     {place.path}: edited here; the new one is {place.path}.new"]


def _certificates(root: Path, old: Outside, outside: Outside, now: datetime.datetime) -> dict[str, bytes]:
    """By path: a new certificate of each broker that has none for its name, or one that ends soon; what signs them."""
    authority, made = at(root, _AUTHORITY), {}
    key = authority.with_suffix(".key")
    due = [side for side in outside if _is_due(root, side, old, outside, now)]
    if due and not authority.exists():
        pair = new_authority(now)
        made = {_AUTHORITY: pair.pem, _AUTHORITY.replace(".pem", ".key"): pair.key}
    elif due and not key.exists():
        if any(side not in old or old[side][0] != outside[side][0] for side in due):
            raise ConfigError(f"{key}: is not there, and signs the certificate for another name; put it back first")
        return {}  # of the same name; `check` says how long it still holds
    elif due:
        pair = Pair(authority.read_bytes(), key.read_bytes())
    for side in due:
        made |= new_broker_certificate(side, pair.pem, pair.key, outside[side][0], now)
    return made


def _is_due(root: Path, side: str, old: Outside, outside: Outside, now: datetime.datetime) -> bool:
    path = at(root, layout.CERTIFICATES[side])
    same = side in old and old[side][0] == outside[side][0] and path.exists()
    return not same or days_left(path.read_bytes(), now) < RENEW_DAYS


def _replace(target: Path, data: bytes, place: Item, owner: tuple[int, int]) -> None:
    """Let `data` be at `target`, with owner and rights, at once."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.deploy")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(data)
        os.fsync(file.fileno())
    os.chown(new, *owner)
    os.chmod(new, place.mode)
    os.replace(new, target)
