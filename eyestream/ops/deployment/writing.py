"""Writing a deployment: all of it, or nothing; and renewing it for another version.

A renewal writes again what an older version wrote. What the operator owns stays.
"""

import datetime
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import msgspec

from eyestream.errors import ConfigError
from eyestream.ops.deployment import layout
from eyestream.ops.deployment.accounts import ids, make_accounts
from eyestream.ops.deployment.credentials import (
    CertificateAndKey,
    days_left,
    new_authority,
    new_certificate,
    new_password,
    password_line,
)
from eyestream.ops.deployment.layout import MANIFEST, Item, Manifest, Outside, at, digest, manifest_of, read_manifest
from eyestream.rim.ledger.reading import create_ledger, read_ledger

RENEW_DAYS = 90
"""A certificate that is valid for fewer days gets a successor."""

_OURS = b"`eyestream deploy`"
_HOME = "/etc/eyestream"
_AUTHORITY = "/etc/eyestream/certificates/ca.pem"


def deploy(root: Path, *, version: str, program: str, outside: Outside, now: datetime.datetime) -> Manifest:
    """Write a deployment for the host whose file system is at `root`.

    `/etc/eyestream` appears last and whole. What an interrupted call has left elsewhere is taken over by the next one.

    Parameters
    ----------
    root
        ``/`` for this machine.
    version
        Of eyestream.
    program
        Where the host has it.
    outside
        How other machines reach a broker; a side that is not in it listens to this machine alone.
    now
        Certificates are valid from here on.

    Raises
    ------
    ConfigError
        One is there already, something in its place is not ours, or it cannot be written: then nothing is left.
    LedgerError
        The ledger that is there already cannot be read.
    """
    check_free(root)
    files = _program_files(program, outside)
    made = files | _kept(outside, now)
    manifest = manifest_of(version, program, outside, files)
    make_accounts(root, layout.sysusers_text())
    with _all_or_nothing(root) as done:
        owners = owners_of(root, manifest.places)
        new = at(root, f"{_HOME}.new")
        shutil.rmtree(new, ignore_errors=True)
        for place in manifest.places:
            inside = place.path.startswith(_HOME)
            target = new / place.path.removeprefix(_HOME).removeprefix("/") if inside else at(root, place.path)
            _put(target, place, made, owners[place], created=int(now.timestamp()), done=done)
        last = new / MANIFEST.removeprefix(f"{_HOME}/")
        last.write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
        last.chmod(0o644)
        os.rename(new, at(root, _HOME))  # the last step, and one: who finds `/etc/eyestream` finds all of it
    return manifest


def _program_files(program: str, outside: Outside) -> dict[str, bytes]:
    """Files that every deployment of this version has alike, by path."""
    ports = {side: port for side, (_, port) in outside.items()}
    texts = {f"/etc/systemd/system/{unit}.service": layout.unit_text(unit, program, ports) for unit in layout.UNITS}
    for side in ("raw", "private"):
        texts[f"/etc/eyestream/{side}/{side}.conf"] = layout.conf_text(side, ports.get(side))
        texts[f"/etc/eyestream/{side}/{side}.acl"] = layout.acl_text(side)
    texts["/etc/sysusers.d/eyestream.conf"] = layout.sysusers_text()
    texts["/etc/tmpfiles.d/eyestream.conf"] = layout.tmpfiles_text(layout.places(ports))
    texts["/etc/eyestream/README"] = layout.readme_text(layout.places(ports))
    return {path: text.encode() for path, text in texts.items()}


def _broker_certificate(side: str, pem: bytes, key: bytes, host: str, now: datetime.datetime) -> dict[str, bytes]:
    """Files of a new certificate of a broker, signed by the authority of `pem` and `key`."""
    broker = new_certificate(CertificateAndKey(pem, key), host, now)
    return {layout.CERTIFICATES[side]: broker.pem, f"/etc/eyestream/{side}/broker.key": broker.key}


def owners_of(root: Path, wanted: tuple[Item, ...]) -> dict[Item, tuple[int, int]]:
    """User and group of every place, as numbers; raises ConfigError when one of them is not on the host."""
    users, groups = {"root": 0} | dict(ids(root, "passwd")), {"root": 0} | dict(ids(root, "group"))
    missing = sorted({p.user for p in wanted} - users.keys()) or sorted({p.group for p in wanted} - groups.keys())
    if missing:
        raise ConfigError(f"{root}: there is no user or group {missing[0]}")
    return {place: (users[place.user], groups[place.group]) for place in wanted}


def _kept(outside: Outside, now: datetime.datetime) -> dict[str, bytes]:
    """Files that are made once, by path: configuration, logins, certificates."""
    files = {layout.SETTINGS: layout.settings_text().encode()}
    lines = {"raw": "", "private": ""}
    for role, sides in (("tracker", ("raw",)), ("application", ("private",)), ("sidecar", ("raw", "private"))):
        for side in sides:
            password = new_password()
            lines[side] += password_line(role, password)
            name = f"/etc/eyestream/logins/{role}" if role != "sidecar" else f"/etc/eyestream/sidecar/{side}"
            files[f"{name}.password"] = f"{password}\n".encode()
            if role != "sidecar":
                files[f"{name}.toml"] = f'username = "{role}"\npassword_file = "{role}.password"\n'.encode()
    files |= {f"/etc/eyestream/{side}/{side}.passwd": text.encode() for side, text in lines.items()}
    if outside:
        authority = new_authority(now)
        files |= {f"/etc/eyestream/certificates/ca.{kind}": getattr(authority, kind) for kind in ("pem", "key")}
        for side, (host, _) in outside.items():
            files |= _broker_certificate(side, authority.pem, authority.key, host, now)
    return files


def check_free(root: Path) -> None:
    """Raise ConfigError, or LedgerError for a ledger that cannot be read, where nothing can be laid out."""
    if not (root / "etc").is_dir():
        raise ConfigError(f"{root}: expected the root of a host's file system, with a directory etc")
    found = read_manifest(root)
    if found is not None:
        raise ConfigError(
            f"{at(root, _HOME)} has a deployment of version {found.version} already; `eyestream deploy --upgrade "
            f"{root}` renews it and keeps configuration, logins and ledger"
        )
    if at(root, _HOME).exists():
        raise ConfigError(f"{at(root, _HOME)} is there and not by `eyestream deploy`; move it away first")
    for place in layout.places(()):
        path = at(root, place.path)
        ours_to_write = place.kind == "program" and not place.path.startswith(_HOME)
        if ours_to_write and path.exists() and _OURS not in path.read_bytes():
            raise ConfigError(f"{path} is there and not by `eyestream deploy`; move it away first")
    ledger = at(root, layout.LEDGER)
    if ledger.exists():
        read_ledger(ledger)


@contextmanager
def _all_or_nothing(root: Path) -> Iterator[list[Path]]:
    """Run the body. Where it fails, remove the paths that it put into the list, and the new `/etc/eyestream`."""
    done: list[Path] = []
    finished = False
    try:
        yield done
        finished = True
    except OSError as error:
        where = error.filename or (done[-1] if done else root)
        raise ConfigError(f"{where}: cannot be written: {error.strerror}; nothing is left") from None
    finally:
        if not finished:
            shutil.rmtree(at(root, f"{_HOME}.new"), ignore_errors=True)
            for path in reversed(done):
                if path.is_dir():
                    path.rmdir()
                elif path.exists():
                    path.unlink()


def _put(
    target: Path, place: Item, made: Mapping[str, bytes], owner: tuple[int, int], *, created: int, done: list[Path]
) -> None:
    """Make one place at `target`: at its own path, or in the new folder, where it waits for the others."""
    for above in reversed([p for p in target.parents if not p.exists()]):
        above.mkdir(mode=0o755)
        done.append(above)
    there = target.exists()
    if not there:
        done.append(target)
    if place.kind == "directory":
        target.mkdir(exist_ok=True)
    elif place.path == layout.LEDGER:
        if not there:
            create_ledger(target, created=created)
    else:
        _write(target, made[place.path])
    os.chown(target, *owner, follow_symlinks=False)
    os.chmod(target, place.mode)


def renew(
    root: Path,
    *,
    version: str,
    program: str | None,
    now: datetime.datetime,
    outside: Outside = MappingProxyType({}),
) -> list[str]:
    """Bring the deployment at `root` to this version; gives what was done, in lines.

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
    files = _program_files(program, outside)
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
    """New certificates by path, of brokers with none for their name or one that ends soon; an authority if needed."""
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
        pair = CertificateAndKey(authority.read_bytes(), key.read_bytes())
    for side in due:
        made |= _broker_certificate(side, pair.pem, pair.key, outside[side][0], now)
    return made


def _is_due(root: Path, side: str, old: Outside, outside: Outside, now: datetime.datetime) -> bool:
    path = at(root, layout.CERTIFICATES[side])
    same = side in old and old[side][0] == outside[side][0] and path.exists()
    return not same or days_left(path.read_bytes(), now) < RENEW_DAYS


def _replace(target: Path, data: bytes, place: Item, owner: tuple[int, int]) -> None:
    """Put `data` at `target`, with owner and rights, in one step: a crash leaves the old file or the new one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.deploy")
    _write(new, data)
    os.chown(new, *owner)
    os.chmod(new, place.mode)
    os.replace(new, target)


def _write(target: Path, data: bytes) -> None:
    """Write a new file that its owner alone may read. No link is followed, and what was there is gone."""
    target.unlink(missing_ok=True)
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(data)
        os.fsync(file.fileno())
