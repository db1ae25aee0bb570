"""What test_lsl.py runs in a network namespace of its own: `python -m tests.product.sources.lsl_life FOLDER`."""

import asyncio
import sys
import threading
from pathlib import Path

import numpy as np

from eyestream.ops.find_sources import find_sources
from eyestream.rim.config import BrokerSettings, SourceEntry
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources import registry
from eyestream.rim.sources.gaze import Place
from eyestream.rim.sources.lsl import PORTION_S, LslOptions, LslSource, outlet_of, pylsl_module
from eyestream_lab.testing.clocks import until
from eyestream_lab.testing.gaze_lives import hard_life
from eyestream_lab.testing.gaze_sources import hearing
from tests.product.sources.eye_runs import DEVICE, SPEED, See, both
from tests.rigs.lsl import FakeOutlet, outlet_info

PLACE = Place("hmd-1", BrokerSettings("mqtt://localhost"))
PROFILE = load_profile("lsl").at_rate(200.0)


async def refused(said: str, **options: object) -> None:
    """Nothing comes, and why is said."""
    async with hearing(LslSource(LslOptions(**options), PROFILE, PLACE)) as heard:  # type: ignore[arg-type]
        await until(lambda: bool(heard.away), 20)
        assert said in heard.away[0], heard.away
        assert heard.samples == 0


async def stands_silent() -> None:
    """An outlet that sends nothing stands, from the beginning and later; one that is killed does not."""
    outlet = FakeOutlet("quiet")
    await outlet.start()
    await outlet.see(False)
    try:
        async with hearing(LslSource(LslOptions("quiet"), PROFILE, PLACE)) as heard:
            await until(lambda: heard.stands > 0, 20)
            before, away = heard.samples, len(heard.away)
            await asyncio.sleep(4.5)
            await outlet.see(True)
            await until(lambda: heard.samples > before)
            assert len(heard.away) == away
            await outlet.stop()
            await until(lambda: len(heard.away) > away, 20)
    finally:
        await outlet.stop()


class _ThereAtOnce(FakeOutlet):
    """An outlet that has begun when it is started."""

    async def start(self) -> None:
        await super().start()
        while not await asyncio.to_thread(pylsl_module().resolve_byprop, "name", self.name, timeout=1.0):
            pass


async def reads_the_same(folder: Path) -> None:
    """All that an application reads is the same whether or not the eye is seen."""
    registry.HOST_SPEED = SPEED

    def make(name: str, url: str) -> tuple[FakeOutlet, See, SourceEntry]:
        outlet = _ThereAtOnce(name, 200.0, speed=SPEED)
        return outlet, outlet.see, SourceEntry("lsl", DEVICE, rate_hz=200.0, options={"name": name})

    seen, losing = await both(make, folder)
    assert losing == seen, [pair for pair in zip(losing, seen, strict=False) if pair[0] != pair[1]][:1]


async def main() -> None:
    heard = await hard_life(LslSource(LslOptions("gaze"), PROFILE, PLACE), FakeOutlet(), PORTION_S)
    assert heard.away
    pupil = heard.column("pupil")
    np.testing.assert_array_equal(pupil[:10], np.tile([3.0, 3.5], (10, 1)))
    print("a hard life")
    pylsl = pylsl_module()
    outlets = [
        pylsl.StreamOutlet(outlet_info(pylsl, "unknown unit", 200.0, unit="furlongs")),
        pylsl.StreamOutlet(outlet_info(pylsl, "pixels", 200.0, unit="pixels", kind="metatype")),
        pylsl.StreamOutlet(outlet_info(pylsl, "slow", 60.0)),
        pylsl.StreamOutlet(pylsl.StreamInfo("texts", "Gaze", 2, 200.0, pylsl.cf_string, "t")),
        pylsl.StreamOutlet(outlet_info(pylsl, "twin", 200.0)),
    ]
    twin = outlet_info(pylsl, "twin", 200.0)
    outlets.append(pylsl.StreamOutlet(pylsl.StreamInfo("twin", "Gaze", 5, 200.0, pylsl.cf_double64, "another")))
    assert outlet_of(twin).channels[0].kind == "ScreenX"
    listed = {one.name: one for one in (await find_sources((), 1.0))[0] if one.name != "twin"}
    assert listed["slow"].source == {"kind": "lsl", "profile": "lsl", "options": {"name": "slow"}, "rate_hz": 60.0}
    assert listed["slow"].channels[0] == "x [degrees]"
    assert "furlongs" in listed["unknown unit"].refused
    assert "texts" in listed["texts"].refused
    silent = asyncio.create_task(stands_silent())  # it waits, mostly, as do all that are refused
    await asyncio.gather(
        refused("has unit 'furlongs', where the profile has deg", name="unknown unit"),
        refused("has unit 'pixels', where the profile has deg", name="pixels"),
        refused("it has 60 samples a second, the profile 200", name="slow"),
        refused("are texts, not numbers", name="texts"),
        refused("2 have this name", name="twin"),
        refused("0 channels of type ScreenX", name="twin", source_id="another"),
        refused("there is none on this network", name="nobody"),
    )
    print("refusals")
    async with hearing(LslSource(LslOptions("twin", "another", gaze=(0, 1), pupil=(3,)), PROFILE, PLACE)) as explicit:
        pushing = threading.Event()

        def push() -> None:
            while not pushing.wait(0.005):
                outlets[-1].push_sample([1.0, 2.0, 3.0, 4.0, 5.0])

        thread = threading.Thread(target=push)
        thread.start()
        try:
            await until(lambda: explicit.samples > 20, 20)
        finally:
            pushing.set()
            thread.join()
    assert explicit.column("pupil")[0, 0] == 4.0
    print("an explicit mapping")
    await silent
    print("a silent outlet stands")
    await reads_the_same(Path(sys.argv[1]))
    print("what an application reads")


if __name__ == "__main__":
    asyncio.run(main())
