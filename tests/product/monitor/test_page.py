"""The page in a real browser: light, dark and small, with the keyboard, and with nothing from elsewhere."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eyestream.cli.monitor import monitoring
from eyestream.rim.config import BrokerSettings
from eyestream.wire.release import encode_meta
from tests.product.monitor.test_strangers import STRANGE
from tests.rigs.browser import Browser, contrast, luminance, opened_browser
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.spoken import Spoken, described_as, speaking_to

pytestmark = [pytest.mark.long, pytest.mark.needs("chromium", "mosquitto")]

RIGHT, ENTER, TAB = "\ue014", "\ue007", "\ue004"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened_browser(tmp_path_factory.mktemp("browser")) as window:
        yield window


async def shown(browser: Browser, script: str, wanted: Any) -> None:
    """Wait until the script returns what is wanted."""
    found = None
    for _ in range(200):
        found = await asyncio.to_thread(browser.run, f"return {script}")
        if found == wanted:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{script} is {found!r}, not {wanted!r}; {browser.complaints()}")


WAITING = "online: no private chunk yet; if none comes, the log of the sidecar names the cause"


def text(place: str) -> str:
    return f"document.getElementById('{place}').textContent"


@contextlib.asynccontextmanager
async def watched(mosquitto: Mosquitto, browser: Browser, **stream: Any) -> AsyncIterator[Spoken]:
    """A stream, and the page open on it."""
    async with speaking_to(mosquitto.url, **stream) as spoken, monitoring(BrokerSettings(mosquitto.url)) as address:
        await asyncio.to_thread(browser.complaints)
        await asyncio.to_thread(browser.asked_for)
        await asyncio.to_thread(browser.open, address)
        await shown(browser, text("state"), WAITING)
        yield spoken
        asked = await asyncio.to_thread(browser.asked_for)
        assert asked
        assert {url for url in asked if not url.startswith((address, "data:"))} == set()
        said = await asyncio.to_thread(browser.complaints)
        # The page of the test before may have lost its monitor so late that it is heard here.
        assert [one for one in said if one.startswith(address) or not one.startswith("http://127.0.0.1:")] == []


async def test_what_an_application_receives_is_shown(mosquitto: Mosquitto, browser: Browser) -> None:
    browser.show(1280, 900, "light")
    async with watched(mosquitto, browser) as stream:
        await shown(browser, text("left"), "2.00 hours")
        await shown(browser, text("age"), "no chunk yet")
        for index in (0, 1, 4):
            await stream.chunk(index)
        await shown(browser, "document.querySelectorAll('#large .border').length", 3)
        await shown(browser, "document.querySelectorAll('#features button').length", 2)
        await shown(browser, "document.querySelector('#features .value').textContent", "4.3 ± 0.5")
        assert browser.run(f"return {text('chosen')}") == "rate_fixations: private value, unit 1/s, error ± 0.5"
        assert browser.run("return document.querySelectorAll('#large .band').length") == 1
        await stream.say("private", b"\xc1")
        await shown(browser, text("refused"), "1 could not be read")
        await shown(browser, text("missing"), "not_msgpack: 1. 2 chunks missing, 0 dropped here")
        await stream.status("degraded", "ledger")
        await shown(browser, text("state"), "the ledger cannot be used: nothing is released")
        await shown(browser, text("links"), "broker: connected. ledger: fails")
        await stream.status("online", "ready")
        await shown(browser, text("state"), "online: private chunks come")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("asked features: rate_fixations\nbaseline: the first 2 chunks", "change since the first minute"),
        ("baseline: the first 2 chunks", "change since the first minute, plus a public mean"),
        ("no baseline: nothing", "private value"),
    ],
)
async def test_the_page_tells_changes_from_levels(
    mosquitto: Mosquitto, browser: Browser, words: str, kind: str
) -> None:
    async with watched(mosquitto, browser) as stream:
        meta = replace(described_as(stream.names, stream.units), guarantee=f"claim: 1.5\n{words}")
        await stream.say("meta", encode_meta(meta))
        await stream.chunk(0)
        await shown(browser, text("chosen"), f"rate_fixations: {kind}, unit 1/s, error ± 0.5")


async def test_a_page_that_opens_later_has_the_chunks_before(mosquitto: Mosquitto, browser: Browser) -> None:
    async with watched(mosquitto, browser) as stream:
        await stream.chunk(0)
        await shown(browser, "document.querySelectorAll('#large .border').length", 1)
        await asyncio.to_thread(browser.run, "location.reload()")
        await shown(browser, "document.querySelectorAll('#large .border').length", 1)


async def test_the_keyboard_is_enough(mosquitto: Mosquitto, browser: Browser) -> None:
    async with watched(mosquitto, browser) as stream:
        await stream.chunk(0)
        await shown(browser, "document.querySelectorAll('#features button').length", 2)
        for _ in range(3):  # the stream, the search, the features
            await asyncio.to_thread(browser.type, TAB)
        await shown(browser, "document.activeElement.title", "rate_fixations")
        await asyncio.to_thread(browser.type, RIGHT + ENTER)
        await shown(browser, text("chosen"), "blink_rate: private value, unit none, error ± 0.5")
        assert browser.run("return document.activeElement.matches(':focus-visible')")


async def test_gaze_is_shown_on_a_field(mosquitto: Mosquitto, browser: Browser) -> None:
    async with watched(mosquitto, browser, stream="gaze", names=("gaze_x", "gaze_y"), units=("deg", "deg")) as stream:
        await stream.chunk(3)
        await shown(browser, text("fieldnote"), "3.3° right, 3.3° up. The shade is the error to expect")
        assert not browser.run("return document.getElementById('fieldbox').hidden")
        assert float(browser.run("return document.querySelector('#field .now').getAttribute('cy')")) == pytest.approx(
            -3.3
        )


@pytest.mark.parametrize(("size", "scheme"), [((1280, 900), "light"), ((1280, 900), "dark"), ((360, 740), "dark")])
async def test_every_screen(
    mosquitto: Mosquitto, browser: Browser, size: tuple[int, int], scheme: str, tmp_path: Path
) -> None:
    """Nothing is wider than the screen, and text stands out from its ground by 4.5 to 1 (WCAG 2.2, 1.4.3)."""
    browser.show(*size, scheme, motion="reduce")
    async with watched(mosquitto, browser) as stream:
        await stream.chunk(0)
        await shown(browser, "document.querySelectorAll('#large .border').length", 1)
        assert browser.run("return document.documentElement.scrollWidth") <= size[0]
        pairs = browser.run(
            "const of = (s, p) => getComputedStyle(document.querySelector(s)).getPropertyValue(p);"
            "return [['article h2', 'article'], ['.big', 'article'], ['#note', 'body'], ['#page', 'header']]"
            ".map(([text, ground]) => [of(text, 'color'), of(ground, 'background-color')])"
        )
        assert min(contrast(*pair) for pair in pairs) >= 4.5
        ground = luminance(pairs[1][1])
        assert (ground < 0.1) == (scheme == "dark")
        moving = browser.run(
            "return [...document.querySelectorAll('*')].map(e => getComputedStyle(e).transitionDuration)"
        )
        assert set(moving) == {"0s"}
        assert await asyncio.to_thread(browser.barriers) == []
        browser.picture(tmp_path / "page.png")
        assert (tmp_path / "page.png").stat().st_size > 5_000


async def test_control_a_request_to_elsewhere_is_stopped_and_seen(mosquitto: Mosquitto, browser: Browser) -> None:
    """By the browser, for its policy; and the tests above would see it."""
    async with monitoring(BrokerSettings(mosquitto.url)) as address:
        await asyncio.to_thread(browser.open, address)
        await shown(browser, text("page"), "live")
        browser.complaints()
        browser.run("fetch('http://127.0.0.1:1/').catch(() => { window.stopped = true })")
        await shown(browser, "window.stopped", True)
        assert any("Content Security Policy" in said for said in browser.complaints())


async def test_the_headline_is_the_worst_that_is_known(mosquitto: Mosquitto, browser: Browser) -> None:
    """Of this device; a sidecar that is away, then the monitor itself."""
    async with (
        speaking_to(mosquitto.url, device="hmd-9") as other,
        watched(mosquitto, browser) as stream,
    ):
        choose = "const it = document.getElementById('stream'); it.value = 'hmd-1/features';"
        await asyncio.to_thread(browser.run, f"{choose} it.dispatchEvent(new Event('change'))")
        await other.status("degraded", "ledger")
        await stream.sidecar("online", "ready")
        await stream.status("exhausted", "window")
        await shown(browser, text("state"), "paused: the window's ceiling is reached")
        await stream.sidecar("offline", "lost")
        await shown(browser, text("state"), "the sidecar is away: nothing is released")
        await stream.sidecar("online", "ready")
        await stream.status("online", "ready")
        await shown(browser, text("state"), WAITING)
    await shown(browser, text("state"), "the monitor is away: what is shown is old")


async def test_what_a_stranger_says_ends_no_page(mosquitto: Mosquitto, browser: Browser) -> None:
    """Nothing is complained of in the browser either: `watched` looks."""
    async with watched(mosquitto, browser) as stream:
        for leaf, payload in random.Random(23).sample(STRANGE, 300):
            await stream.say(leaf, payload)
        await stream.describe()
        await stream.chunk(5, session=2**62)
        await shown(browser, text("state"), "online: private chunks come")
        await shown(browser, "document.querySelectorAll('#features button').length", 2)
