"""Trackers that send while a deployment is checked: whether they are served, and whether their gaze is plausible."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from eyestream.errors import ConfigError, LinkError, OperatorError
from eyestream.ops.findings import Finding, bad, good
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.sidecar.unserved import LISTEN_S, crosses_a_broker, heard_streams, served_streams, unserved_words

if TYPE_CHECKING:
    from eyestream.rim.plan import Plan
    from eyestream.rim.sources.source import Feeder

_LOOK_S = 9.0
"""For the first judgement of gaze that comes."""


async def tracker_findings(plan: "Plan | None") -> list[Finding]:
    """Listen to what trackers send now; of gaze that does not come, that is found.

    Parameters
    ----------
    plan
        The configuration, resolved; None where it cannot be.
    """
    if plan is None:
        return []
    findings = []
    if crosses_a_broker(plan.settings):
        with contextlib.suppress(LinkError, ConfigError):  # the findings about the broker say so
            heard = await heard_streams(Endpoint.of(plan.settings.raw_broker), LISTEN_S)
            served = served_streams(plan)
            remedy = "Correct the tracker's device or stream, or add it to the configuration"
            findings += [bad(f"{key} is served", why, remedy) for key, why in unserved_words(heard, served).items()]
            findings += [good(f"{key} is served, and its tracker sends") for key in sorted(served & set(heard))]
    if any(source.kind != "recording" and ":" not in source.kind for source in plan.settings.source):
        findings += await _gaze_findings(plan)
    return findings


async def _gaze_findings(plan: "Plan") -> list[Finding]:
    from eyestream.gaze.doubt import GAZE_DOUBTS  # noqa: PLC0415  for who has gaze
    from eyestream.rim.sources.source import Feeder  # noqa: PLC0415

    live = {
        (source.device, name) for source in plan.settings.source if source.kind != "recording" for name in source.served
    }
    try:
        made = plan.sources()
    except OperatorError as error:
        return [bad("the sources can be made", str(error), "Correct [[source]]")]
    feeders = {key: one for key, one in made.items() if isinstance(one, Feeder) and tuple(key) in live}
    links = {id(feeder.link): (key, feeder) for key, feeder in feeders.items()}
    await asyncio.gather(*(_listen(feeder) for _, feeder in links.values()))
    findings = []
    for key, feeder in links.values():
        what = f"gaze of {key.device} is plausible"
        if feeder.doubt is not None:
            findings.append(bad(what, GAZE_DOUBTS[feeder.doubt].rstrip("."), "Then check again"))
        elif feeder.heard:
            findings.append(good(what))
        elif not feeder.refused:
            findings.append(good(f"no gaze of {key.device} comes now, so nothing was checked in it"))
        if feeder.refused:
            remedy = "The sidecar's log names the reason: eyestream run"
            findings.append(bad(f"gaze of {key.device} can be read", f"{feeder.refused} messages were refused", remedy))
    return findings


async def _listen(feeder: "Feeder") -> None:
    """Let a feeder hear its tracker; where nothing comes, not for long."""
    rows = asyncio.create_task(feeder.rows(lambda made: None))
    link = asyncio.create_task(_linked(feeder))
    try:
        await asyncio.sleep(LISTEN_S)
        if feeder.heard:
            await asyncio.sleep(_LOOK_S - LISTEN_S)
    finally:
        for task in (rows, link):
            task.cancel()
        await asyncio.gather(rows, link, return_exceptions=True)


async def _linked(feeder: "Feeder") -> None:
    with contextlib.suppress(LinkError):  # away: nothing is heard
        await feeder.run(feeder.take)
