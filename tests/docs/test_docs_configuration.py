"""The page of the configuration has every key with its default, and its example is a configuration."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eyestream.rim.config import tables
from eyestream.rim.plan import load

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")

TABLES = {
    "`[[stream]]`": tables.StreamSettings,
    "`[stream.privacy]`": tables.PrivacySettings,
    "`[stream.budget]`": tables.StreamBudgetSettings,
    "`[[device]]`": tables.DeviceEntry,
    "`[source]`, `[[source]]`": tables.SourceEntry,
    "`[budget]`": tables.BudgetSettings,
    "`[budget.wearer]`": tables.WearerBudgetSettings,
    "`[sidecar]`": tables.SidecarSettings,
    "`[private]`, `[raw]`": tables.BrokerSettings,
    "`[limits]`": tables.LimitSettings,
    "`[control]`": tables.ControlSettings,
    "`[log]`": tables.LogSettings,
    "`[metrics]`": tables.MetricsSettings,
}


def default_of(field: Any) -> str:
    if field.required:
        return "required"
    if field.default is None or field.default is msgspec.NODEFAULT:
        return "none"
    return f'`"{field.default}"`' if isinstance(field.default, str | Path) else f"`{field.default!r}`"


def test_every_table_is_there() -> None:
    assert re.findall(r"(?m)^## (.*)$", PAGE) == list(TABLES)


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_has_its_default(heading: str) -> None:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    said = dict(re.findall(r"(?m)^\| `(\w+)` \| ([^|]*) \|", section))
    assert said == {field.name: default_of(field) for field in msgspec.structs.fields(TABLES[heading])}


def test_the_example_is_a_whole_configuration(tmp_path: Path) -> None:
    (path := tmp_path / "sidecar.toml").write_text(PAGE.partition("```toml\n")[2].partition("```")[0])
    plan = load(path)
    assert [tuple(key) for key in plan.served] == [("hmd-1", "features")]
    assert plan.sources().keys() == plan.served.keys()
