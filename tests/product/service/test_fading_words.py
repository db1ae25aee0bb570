"""What an operator is told of a lifetime that fades, and what a configuration of one must have."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.charge import LEVELS, Ceilings, charges_of
from eyestream.core.kinds import Loss
from eyestream.core.meter import Odometer
from eyestream.core.remaining import left_of, levels_left
from eyestream.core.reservation import Granted, Request
from eyestream.errors import ConfigError
from eyestream.rim.config import Settings, load
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.plan import resolved
from eyestream.streams import StreamKey

FADE = 'lifetime_epsilon = 960.0\nlifetime_mode = "fade"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    main(["init", str(tmp_path / "sidecar")])
    found = tmp_path / "sidecar" / "sidecar.toml"
    return changed(found, "# lifetime_epsilon", FADE + "# lifetime_epsilon")


def changed(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def spend(path: Path, chunks: int) -> Odometer:
    """So many chunks of the configuration's device are reserved."""
    settings = load(path)
    ceilings, device = Ceilings.of(lifetime=960.0, levels=LEVELS), settings.device[0].id
    charge, *later = charges_of(Loss("chunk", Fraction(4.8)), LEVELS)
    asked = [
        Request(StreamKey(device, "features"), 1, 64 * i, 64 * i + 63, 64, charge, later=tuple(later))
        for i in range(chunks)
    ]
    with Ledger(settings.sidecar.ledger, ceilings=ceilings) as ledger:
        assert all(isinstance(answer, Granted) for answer in ledger.reserve(asked, 20_000))
        odometer = ledger.odometer(device)
    assert odometer is not None
    return odometer


def test_the_guarantee_and_the_start_line_say_when_levels_begin(path: Path) -> None:
    """960 is 200 chunks of 4.8: levels of 100 chunks of 32 s, 53 min 20 s each, and nine times that in all."""
    settings = load(path)
    stream = resolved(settings).streams["features"]
    told = stream.guarantee
    words = dict(told.sentences())["lifetime"]
    assert "a chunk costs epsilon 4.8 until half of the ceiling is spent (53 min of releases)" in words
    assert "8 levels, on the last of which (1 h 46 min) a chunk costs 0.0375" in words
    assert "no word is kept and sent again" in words
    assert (told.window_chunks, told.session_chunks) == (None, None), "on a later level there are more"
    assert told.gain == max(stream.mechanism.faded(level).gain or 0 for level in range(LEVELS))
    assert "enough for 8 h 00 min of releases" in words
    assert next(scope.seconds for scope in told.scopes if scope.unit == "lifetime") == 900 * 32
    start = stream.lasting
    assert "a lifetime 8 h 00 min of releases; the lifetime fades on 8 levels" in start
    assert start.count("53 min") == 7
    plain = load(changed(path, '"fade"', '"stop"'))
    assert (
        "enough for 1 h 46 min of releases"
        in dict(resolved(plain).streams["features"].guarantee.sentences())["lifetime"]
    )


@pytest.mark.parametrize("name", [pytest.param("klt-anchored-64", marks=pytest.mark.long), "cfpa-64"])
def test_the_error_of_later_levels_is_told(path: Path, name: str) -> None:
    """`noise_sd` has one row of figures, of the first level; that of noise doubles as epsilon halves."""
    settings = load(changed(path, "klt-anchored-64", name))
    stream = resolved(settings).streams["features"]
    meta = stream.meta
    [line] = [line for line in meta.guarantee.splitlines() if line.startswith("error: ")]
    assert line == f"error: {stream.guarantee.claim()['error']}"
    factors = [float(found) for found in re.findall(r"([\d.]+) at epsilon", line)]
    assert len(factors) == LEVELS - 1
    assert factors == sorted(factors)
    last, first = stream.mechanism.faded(LEVELS - 1).noise_sd, stream.mechanism.noise_sd
    assert factors[-1] == pytest.approx(np.median(last[first > 0] / first[first > 0]), rel=0.01)
    assert "0.0375" in line
    if name == "cfpa-64":
        assert factors == pytest.approx([2.0**level for level in range(1, LEVELS)], rel=0.01)
    still = load(changed(path, '"fade"', '"stop"'))
    assert "\nerror: " not in resolved(still).streams["features"].meta.guarantee
    assert resolved(still).streams["features"].guarantee.claim()["error"] is None


def test_a_session_of_the_last_level_has_most_chunks_and_the_plain_sum_stays(path: Path) -> None:
    """1152 is 240 chunks of 4.8 and 30,720 of a 128th: what a class says of fewer would be too low there."""
    changed(changed(path, "klt-anchored-64", "klt-one-64"), "# correlation = ", "correlation = ")
    settings, plain = load(path), load(changed(path.with_name("sidecar.toml"), '"fade"', '"stop"'))
    faded, still = (resolved(one).streams["features"].claim for one in (settings, plain))
    assert faded is not None
    assert still is not None
    assert (still.chunks, faded.chunks) == (240, 240 * 128)
    assert still.plain == pytest.approx(faded.plain) == pytest.approx(1152.0)
    assert still.chunk < faded.chunk < 1.1 * still.chunk


def test_budget_lists_the_present_level_and_those_behind_it(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spend(path, 130)
    capsys.readouterr()
    main(["budget", "--config", str(path)])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "level 1 epsilon 2.4 a chunk: 70 chunks, 37 min" in lines
    assert "level 7 epsilon 0.0375 a chunk: 200 chunks, 1 h 46 min" in lines
    assert not [line for line in lines if line.startswith("level 0")]
    assert "this lifetime 770 chunks, 6 h 50 min; then never" in lines
    main(["budget", "--config", str(path), "--json"])
    [levels] = json.loads(capsys.readouterr().out)["levels"].values()
    assert levels[0] == {"level": 1, "epsilon": "2.4", "chunks": 70, "seconds": 70 * 32}


def test_what_is_said_to_be_left_is_what_a_ledger_grants(path: Path) -> None:
    """From odd places too, where a level's last charge leaves a rest."""
    ceilings, charges = Ceilings.of(lifetime=960.0, levels=LEVELS), charges_of(Loss("chunk", Fraction(4.8)), LEVELS)
    odometer = spend(path, 130)
    [left] = left_of(odometer, ceilings, charges, 1)
    own = Ceilings.of(lifetime=560.0)  # the stream's: 8 of them left, 3 chunks of 2.4
    both = replace(ceilings, streams={"features": own})
    [lower] = left_of(odometer, both, charges, 1, stream="features")
    assert (lower.scope, lower.chunks) == ("lifetime", 3)
    assert spend(path, 0) == odometer
    device = load(path).device[0].id
    with Ledger(load(path).sidecar.ledger, ceilings=ceilings) as ledger:
        asked = [
            Request(StreamKey(device, "features"), 2, i, i, 64, charges[0], later=charges[1:])
            for i in range(left.chunks + 1)
        ]
        answers = ledger.reserve(asked, 20_000)
    granted = [answer.level for answer in answers if isinstance(answer, Granted)]
    assert len(granted) == left.chunks
    assert {one.level: one.chunks for one in levels_left(odometer, ceilings, charges)} == {
        level: granted.count(level) for level in range(1, LEVELS)
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("lifetime_epsilon = 960.0\n", "", "needs a lifetime_epsilon of at least two chunks, 9.6"),
        ("960.0", "9.5", "needs a lifetime_epsilon of at least two chunks, 9.6"),
        ("epsilon = 4.8", "epsilon = 1e-11", "lifetime_mode: 'fade' is not for this epsilon"),
        ('"fade"', '"slow"', r"\[budget\] lifetime_mode"),
    ],
)
def test_a_configuration_that_cannot_fade_is_refused(path: Path, old: str, new: str, said: str) -> None:
    changed(path, old, new)
    with pytest.raises(ConfigError, match=said):
        resolved(load(path))


def test_only_the_ceiling_is_taken_over_without_a_restart(path: Path) -> None:
    old = load(path)
    plan = resolved(old)
    lower: Settings = load(changed(path, "960.0", "500.0"))
    ceilings = plan.lowered(lower).ceilings
    assert (ceilings.lifetime, ceilings.levels) == (500 * 10**12, LEVELS)
    with pytest.raises(ConfigError, match=r"\[budget\] lifetime_epsilon is higher"):
        resolved(lower).lowered(old)
    with pytest.raises(ConfigError, match=r"\[budget\] has changed"):
        plan.lowered(load(changed(path, '"fade"', '"stop"')))
