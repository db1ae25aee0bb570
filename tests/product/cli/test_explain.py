"""`eyestream explain`: the page for the wearer is short, true to configuration, ledger and broker, and safe to show."""

import re
import time
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from eyestream.cli.main import main
from eyestream.core.meter import Odometer, WearerOdometer
from eyestream.ops.explanation import MOST_WORDS, Situation, as_html, as_text, explanation
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.plan import load
from eyestream.rim.sidecar.off import remember_pause
from tests.product.cli.test_live_commands import deployment, eyestream
from tests.rigs.tile_stream import planned

__all__ = ["deployment"]

NOW = 1_795_000_000.0
"""A moment of November 2026."""


def told(folder: Path, **changed: object) -> str:
    plan = planned(folder)
    state = Situation({}, {}, 0, False, NOW)._replace(**changed)
    return as_text(explanation(plan, state, "sidecar.toml"), 400)


def test_it_has_at_most_250_words_however_many_hear(tmp_path: Path) -> None:
    hears = {f"program-{number}": ("features", "gaze") for number in range(40)}
    text = told(tmp_path, hears=hears, paused=True, created=1_700_000_000)
    assert 100 < len(text.split()) <= MOST_WORDS
    assert "36 more" in text
    assert "eyestream revoke" in text


def test_who_gets_what_is_said_as_the_broker_has_it(tmp_path: Path) -> None:
    text = told(tmp_path, hears={"game": ("gaze",), "cut": (), "study": ("features",)})
    assert "  game: roughly where you look\n" in text
    assert "  study: how your eyes move\n" in text
    assert "cut" not in text
    assert "Nobody." in told(tmp_path)
    anybody = told(tmp_path, hears=None)
    assert "Any program that can connect to mqtt://localhost" in anybody
    assert "eyestream revoke" not in anybody, "nothing there revokes"


def test_figures_are_those_of_the_guarantee(tmp_path: Path) -> None:
    stream = planned(tmp_path).streams["features"]
    gains = [one.guarantee.gain for one in planned(tmp_path).streams.values()]
    said = re.search(r"right\s+up\s+to\s+(\d+)\s+times\s+in\s+1,000", told(tmp_path))
    assert stream.guarantee.gain is not None
    if said is None:  # a gain that is not known, or too large for the example
        assert None in gains or max(gain for gain in gains if gain is not None) >= 1000
        assert "much better" in told(tmp_path)
    else:
        assert int(said[1]) >= max(gain for gain in gains if gain is not None)


def test_the_default_says_what_a_guess_gains(deployment: Path) -> None:
    plan = load(deployment)
    gain = plan.streams["features"].guarantee.gain
    said = re.search(
        r"right\s+up\s+to\s+(\d+)\s+times\s+in\s+1,000", eyestream("explain", "--config", deployment).stdout
    )
    assert said is not None
    assert gain is not None
    assert 0 <= int(said[1]) - gain < 1


def test_what_was_spent_is_that_of_the_ledger(tmp_path: Path) -> None:
    create_ledger(tmp_path / "ledger", created=1)
    odometer = read_ledger(tmp_path / "ledger").odometers
    assert "Nothing yet." in told(tmp_path, odometers=odometer)
    plan = planned(tmp_path)
    day = plan.ceilings.day
    assert day is not None
    spent = Odometer(
        epsilon=day, delta=0, session_epsilon=0, session_delta=0, window_epsilon=0, window_delta=0,
        day=int(NOW) // 86400, day_epsilon=day // 3, day_delta=0, released=600, withheld=0, unreadable=0,
        window=2, wait=0, wearers={}, streams={},
    )  # fmt: skip
    created = int(NOW) - 21 * 86400
    text = told(tmp_path, odometers={"hmd-1": spent}, created=created)
    assert "Today: 34% of the daily limit." in text
    assert f"Since {time.strftime('%Y-%m-%d', time.gmtime(created))}: 600 messages, about 200 a week." in text
    two = dict.fromkeys((7, 8), WearerOdometer(1, 0, 0, 0))
    shared = told(tmp_path, odometers={"hmd-1": msgspec.structs.replace(spent, wearers=two)}, created=created)
    assert "600 messages, of all who wore it, about 200 a week." in shared
    tomorrow = told(tmp_path, odometers={"hmd-1": spent}, created=created, now=NOW + 86400)
    assert "Today: 0%" in tomorrow


def test_a_pause_is_said_and_how_to_end_it(deployment: Path) -> None:
    assert "eyestream pause" in eyestream("explain", "--config", deployment).stdout
    remember_pause(deployment.parent / "ledger")
    text = eyestream("explain", "--config", deployment).stdout
    assert "Sending is paused: nothing leaves now." in text
    assert "eyestream resume" in text


def test_pages(deployment: Path) -> None:
    text, page, marked = (
        eyestream("explain", "--config", deployment, "--format", form).stdout for form in ("text", "html", "markdown")
    )
    assert marked.startswith("# What this device tells others about your eyes\n")
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            seen.append(tag)
            assert not {"src", "href"} & {name for name, _ in attrs}, "it loads nothing"

    Reader().feed(page)
    assert "script" not in seen
    for heading in re.findall(r"^## (.*)$", marked, re.MULTILINE):
        assert f"<h2>{heading}</h2>" in page
        assert f"\n{heading}\n" in text


def test_names_of_others_are_no_markup(tmp_path: Path) -> None:
    page = as_html(explanation(planned(tmp_path), Situation({"<b>x": ("gaze",)}, {}, 0, False, NOW), "<i>.toml"))
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;x: roughly where you look" in page


@pytest.mark.parametrize("missing", ["ledger", "sidecar.toml"])
def test_without_a_ledger_nothing_is_said(deployment: Path, missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    (deployment.parent / missing).unlink()
    with pytest.raises(SystemExit):
        main(["explain", "--config", str(deployment)])
    assert capsys.readouterr().out == ""
