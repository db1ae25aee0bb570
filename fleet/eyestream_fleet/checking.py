"""Checks of `eyestream check` for a fleet: the shards on this host, their second places, and the log."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from eyestream.errors import LinkError, OperatorError
from eyestream.rim.config import Settings
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.reading import read_ledger
from eyestream_fleet.log import partition_of
from eyestream_fleet.nats.opening import opened
from eyestream_fleet.roll import read_roll
from eyestream_fleet.table import FleetSettings

_OTHERS = 0o077

Found = tuple[str, str | None, str]


def fleet_findings(fleet: FleetSettings, settings: Settings) -> Iterator[Found]:
    """Things that must be, what is wrong with each, and what mends it. Harmless beside workers at work."""
    for key in ("password_file", "key_file"):
        if (path := getattr(fleet, key)) is not None:
            yield _private(f"[fleet] {key} is a secret", path)
    here = fleet.ledgers
    for path in here:
        yield _private(f"{path.parent.name} is private", path.parent)
        what = f"the ledger of {path.parent.name} opens"
        try:
            reading = read_ledger(path)
        except OperatorError as error:
            yield what, str(error), "Put the newest copy of the shard in its place"
            continue
        yield what, None, ""
        strange = [
            one for one in reading.odometers if f"shard-{partition_of(one, fleet.partitions)}" != path.parent.name
        ]
        yield (
            f"the devices of {path.parent.name} are of its partition",
            f"{strange[0]} is not" if strange else None,
            "The number of partitions was changed: put the old one back",
        )
        if fleet.second_place is not None:
            yield _apart(path.parent, fleet.second_place / path.parent.name)
    if not here:
        yield "a shard is on this host", f"{fleet.folder} has none", "`eyestream shard --new` makes one, once"
    yield from asyncio.run(_log(fleet, settings, here))


def _private(what: str, path: Path) -> Found:
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError as error:
        return what, f"{path}: {error.strerror}", "Put it there, or correct the path in the configuration"
    return what, f"{path} has mode {mode:o}" if mode & _OTHERS else None, f"chmod go= {path}"


def _apart(folder: Path, place: Path) -> Found:
    what = f"the second place of {folder.name} is there, on another disk"
    if not place.exists():
        return what, f"there is no file {place}", "Put it back; if it is lost, `eyestream shard --accept`"
    same = os.stat(place).st_dev == os.stat(folder).st_dev
    return what, f"{place} is on the same one" if same else None, "Name a folder on another disk"


async def _log(fleet: FleetSettings, settings: Settings, here: list[Path]) -> list[Found]:
    """The log of each partition that is here, its second place, and its roll."""
    found: list[Found] = []
    for path in here:
        partition = int(path.parent.name.removeprefix("shard-"))
        what = f"the log and the second place of partition {partition} fit"
        remedy = "Let [fleet] servers be those of this fleet; docs/scale.md says how they are set up"
        try:
            async with opened(fleet, partition, new=False) as log:
                name = ledger_name(read_ledger(path).header.ledger_id)
                known = fleet.second_place is not None or await log.place.read(name) is not None
                found.append((what, None if known else f"the second place knows nothing of shard {name}", remedy))
                held = None if settings.device else await log.rolls.read(partition)
                if held is not None:
                    roll = read_roll(held[1], partition, fleet.partitions)
                    found.append((f"partition {partition} serves {len(roll.devices)} devices", None, ""))
                elif not settings.device:
                    what = f"devices of partition {partition} are enrolled"
                    found.append((what, "there are none", "`eyestream enrol --config FILE NAME ...`"))
        except (OperatorError, LinkError) as error:
            found.append((what, str(error), remedy))
    return found
