"""The page of profiles has every key, and every shipped profile."""

import dataclasses
import re
from pathlib import Path

from eyestream.gaze.profile import Camera, Columns, Detection, Profile, Table
from eyestream.rim.files.profiles import SHIPPED

PAGE = (Path(__file__).parents[2] / "docs/profiles.md").read_text(encoding="utf-8")


def keys(part: str) -> set[str]:
    """What stands in code in the first cell of each line of a part's table."""
    return {key for line in re.findall(r"(?m)^\| (`.*?) \|", part) for key in re.findall(r"`(\w+)`", line)}


def test_every_key_is_on_the_page() -> None:
    parts = PAGE.split("\n## ")[1:]
    for kind, part in zip((Profile, Columns, Table, Camera, Detection), parts, strict=False):
        tables = {"columns", "camera", "detection", "table"} if kind is Profile else set()
        assert keys(part) == {field.name for field in dataclasses.fields(kind)} - tables


def test_every_shipped_profile_is_on_the_page() -> None:
    table = PAGE.split("## Which file, which profile")[1]
    assert [name for name in SHIPPED if f"`{name}`" not in table] == []
