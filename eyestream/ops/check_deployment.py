"""Whether a deployment is still as it was laid out: version, files, owners, rights, certificate. Nothing is changed."""

import datetime
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from eyestream.ops.deployment.layout import CERTIFICATES, MANIFEST, SETTINGS, Item, Manifest, at, read_manifest
from eyestream.ops.findings import Finding, bad, good
from eyestream.rim.config import Settings

_DAYS = 30
"""A certificate that is valid for fewer days is a fault."""


def root_of(path: Path) -> Path | None:
    """The root of the deployment that a configuration belongs to; None when it belongs to none."""
    found = path.resolve()
    inside = Path(SETTINGS).relative_to("/").parts
    if found.parts[-len(inside) :] != inside or not found.with_name(Path(MANIFEST).name).exists():
        return None
    return found.parents[len(inside) - 1]


def deployment_findings(root: Path, settings: Settings, version: str, now: datetime.datetime) -> list[Finding]:
    """Findings about the deployment at `root`. What this user may not see is left out; root may see all of it.

    Raises
    ------
    ConfigError
        Its list of files cannot be read, or names a user that is not there, or the extra `deploy` is not installed.
    """
    manifest = read_manifest(root)
    if manifest is None:
        return []
    return [
        _version(manifest, version, root),
        *_places(manifest, root),
        *(finding for side in manifest.outside for finding in _certificate(side, root, now)),
        *_sockets(settings),
    ]


def _version(manifest: Manifest, version: str, root: Path) -> Finding:
    what = "the deployment is of this version"
    if manifest.version == version:
        return good(what)
    fault = f"its units and broker files are of {manifest.version}, this is {version}"
    return bad(what, fault, f"eyestream deploy --upgrade {root}")


def _places(manifest: Manifest, root: Path) -> Iterator[Finding]:
    from eyestream.ops.deployment.writing import owners_of  # noqa: PLC0415  only a deployment needs the extra

    faults, seen = [], 0
    for place, owner in owners_of(root, manifest.places).items():
        path = at(root, place.path)
        try:
            found = os.lstat(path)
        except PermissionError:
            continue
        except OSError as error:
            remedy = "Put it back" if place.kind == "kept" else f"eyestream deploy --upgrade {root}"
            faults.append(bad(f"{place.what} is in its place", f"{path}: {error.strerror}", remedy))
            continue
        seen += 1
        fault = _rights(place, path, found, owner)
        if fault is not None:
            faults.append(fault)
    yield from faults
    if not faults:
        yield good(f"files of the deployment have their owners and rights: {seen} looked at")


def _rights(place: Item, path: Path, found: os.stat_result, owner: tuple[int, int]) -> Finding | None:
    what = "files of the deployment have their owners and rights"
    if stat.S_ISDIR(found.st_mode) != (place.kind == "directory") or stat.S_ISLNK(found.st_mode):
        return bad(what, f"{path} is not what it should be", "Put back what was there")
    numbers = ((found.st_uid, owner[0], "uid"), (found.st_gid, owner[1], "gid"))
    if any(number != wanted and _has_number(wanted, kind) for number, wanted, kind in numbers):
        return bad(what, f"{path} belongs to others", f"chown {place.user}:{place.group} {path}")
    if stat.S_IMODE(found.st_mode) != place.mode:
        return bad(what, f"{path} has mode {stat.S_IMODE(found.st_mode):o}", f"chmod {place.mode:o} {path}")
    return None


def _has_number(number: int, kind: str) -> bool:
    """Whether a user or group can be told from others here.

    In a user namespace, as of PrivateUsers=, most have no number, and all look alike (user_namespaces(7)).
    """
    ranges = [[int(word) for word in line.split()] for line in Path(f"/proc/self/{kind}_map").read_text().splitlines()]
    return any(first <= number < first + count for first, _, count in ranges)


def _certificate(side: str, root: Path, now: datetime.datetime) -> Iterator[Finding]:
    what, remedy = f"the {side} broker's certificate is valid", f"eyestream deploy --upgrade {root}"
    from eyestream.ops.deployment.credentials import days_left  # noqa: PLC0415  as above

    path = at(root, CERTIFICATES[side])
    try:
        days = days_left(path.read_bytes(), now)
    except OSError as error:
        yield bad(what, f"{path}: {error.strerror}", remedy)
    except ValueError:
        yield bad(what, f"{path}: not a certificate", remedy)
    else:
        yield good(f"{what} for {days} days") if days >= _DAYS else bad(what, f"for {days} days more", remedy)


def _sockets(settings: Settings) -> Iterator[Finding]:
    """A socket is as open as its directory is."""
    for side, broker in (("raw", settings.raw), ("private", settings.private)):
        if broker is None or urlsplit(broker.url).scheme != "unix":
            continue
        what, folder = f"the {side} broker's socket is for its group alone", Path(urlsplit(broker.url).path).parent
        try:
            mode = stat.S_IMODE(os.stat(folder).st_mode)
        except OSError as error:
            yield bad(what, f"{folder}: {error.strerror}", f"systemctl start eyestream-{side}")
            continue
        yield bad(what, f"{folder} has mode {mode:o}", f"chmod 750 {folder}") if mode & 0o007 else good(what)
