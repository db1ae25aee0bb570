"""The devices of a partition as a value in the log: what a worker takes, and what it refuses by name."""

from typing import Any

import pytest

from eyestream.errors import ConfigError, ShardError
from eyestream_fleet.log import partition_of
from eyestream_fleet.roll import Roll, by_partition, followed, read_roll

PARTITIONS = 4
OWN = [name for name in (f"d{number}" for number in range(40)) if partition_of(name, PARTITIONS) == 1]
FOREIGN = next(name for name in (f"d{number}" for number in range(40)) if partition_of(name, PARTITIONS) == 2)


def test_a_roll_is_what_was_added_and_not_removed() -> None:
    first = Roll(1, PARTITIONS).changed(OWN[:3], [], 100)
    assert read_roll(first.pack(), 1, PARTITIONS) == first == Roll(1, PARTITIONS, 100, tuple(sorted(OWN[:3])))
    assert first.changed(OWN[:2], OWN[5:], 200) is first, "nothing changes"
    second = first.changed([], OWN[:1], 90)
    assert (second.devices, second.serial) == (tuple(sorted(OWN[1:3])), 101), "also where a clock went back"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Roll(1, 250, 1), "roll of partition 1 of 4: the log has that of partition 1 of 250; .*another fleet"),
        (Roll(2, PARTITIONS, 1), "roll of partition 1 of 4: the log has that of partition 2 of 4"),
        (Roll(1, PARTITIONS, 1, (OWN[0], FOREIGN)), f"names '{FOREIGN}', which is of partition 2, and of no other"),
        (Roll(1, PARTITIONS, 1, ("a/b",)), "names 'a/b', which cannot be the name of a device"),
    ],
)
def test_a_roll_that_is_none_of_the_partition_is_refused_by_name(given: Roll, said: str) -> None:
    for read in (lambda data: read_roll(data, 1, PARTITIONS), lambda data: followed(Roll(1, PARTITIONS), data)):
        with pytest.raises(ShardError, match=said):
            read(given.pack())


@pytest.mark.parametrize("data", [b"", b"[]", b'{"partition": 1}', b'{"partition": 1, "partitions": 4, "more": 1}'])
def test_what_is_no_roll_is_refused(data: bytes) -> None:
    with pytest.raises(ShardError, match="is damaged, or of another version"):
        read_roll(data, 1, PARTITIONS)


def test_a_device_cannot_be_named_in_two_partitions() -> None:
    """Whichever of the two it does not belong to is refused."""
    rolls = [Roll(partition, PARTITIONS, 1, (FOREIGN,)) for partition in range(PARTITIONS)]

    for roll in rolls:
        if roll.partition == 2:
            assert read_roll(roll.pack(), 2, PARTITIONS) == roll
            continue
        with pytest.raises(ShardError, match=f"{FOREIGN}.* is of partition 2"):
            read_roll(roll.pack(), roll.partition, PARTITIONS)


def test_an_older_roll_is_not_followed() -> None:
    first = Roll(1, PARTITIONS).changed(OWN[:1], [], 100)
    second = first.changed([], OWN[:1], 100)
    assert followed(first, second.pack()) == second
    with pytest.raises(ShardError, match="is older than the one that was taken"):
        followed(second, first.pack())


def test_names_are_sorted_by_their_partition() -> None:
    assert by_partition([*OWN[:2], FOREIGN], PARTITIONS) == {1: OWN[:2], 2: [FOREIGN]}
    wrong: Any
    for wrong in ("a/b", "", "#", "-x", "a" * 65):
        with pytest.raises(ConfigError, match="cannot be the name of a device"):
            by_partition([wrong], PARTITIONS)
