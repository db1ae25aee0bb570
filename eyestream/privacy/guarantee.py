"""The guarantee in words, with every figure kept apart: chunk, gaze event, window, session, hour, day, and what is not.

A gaze event (a blink, a saccade) that is short against a row enters every row whose feature window of W seconds holds
it: m = ceil(W rate) consecutive rows. In the worst place m >= 2 consecutive rows lie in (m - 2) // n + 2 chunks of n
rows.
"""

import math
from dataclasses import dataclass

from eyestream.privacy.mechanism import Mechanism

__all__ = ["Deployment", "chunks_of_event", "describe", "text"]


def chunks_of_event(window_s: float, rate_hz: float, n: int) -> int:
    """Most chunks of `n` rows that one short gaze event can enter through feature windows of `window_s` seconds."""
    rows = max(1, math.ceil(window_s * rate_hz))
    return (rows - 2) // n + 2 if rows >= 2 else 1


@dataclass(frozen=True)
class Deployment:
    """What stands around a mechanism.

    Attributes
    ----------
    rate_hz : rows a second, nominal.
    window_s : length of the feature window of one row.
    window_chunks, window_epsilon : no so many consecutive chunks cost more than this.
    session_epsilon, day_epsilon : ceilings of a session and of a day in UTC.
    """

    rate_hz: float
    window_s: float
    window_chunks: int
    window_epsilon: float
    session_epsilon: float
    day_epsilon: float


def describe(mechanism: Mechanism, deployment: Deployment) -> list[tuple[str, str]]:
    """The guarantee as (topic, sentence) pairs, in the order in which they should be read."""
    epsilon, n = mechanism.epsilon, mechanism.n
    seconds = n / deployment.rate_hz
    in_window = min(int(deployment.window_epsilon / epsilon * (1 + 1e-12)), deployment.window_chunks)
    events = chunks_of_event(deployment.window_s, deployment.rate_hz, n)
    if events <= deployment.window_chunks:
        events = min(events, in_window)
    hourly = epsilon * 3600 / seconds * in_window / deployment.window_chunks
    return [
        ("claim", mechanism.guarantee),
        (
            "unit",
            f"one chunk: {n} consecutive rows ({seconds:g} s) of one device, all {mechanism.features} features "
            "together. Two chunks are neighbours when they differ in any way inside the declared domain (replace-one), "
            "missing values included. Local model: the noise is added before anything leaves the device's sidecar",
        ),
        ("chunk", f"epsilon {epsilon:g}, delta {mechanism.delta:g}"),
        (
            "gaze event",
            f"epsilon {events * epsilon:g}: one blink or saccade enters every row within {deployment.window_s:g} s of "
            f"it, hence up to {events} chunks",
        ),
        (
            "window",
            f"epsilon {in_window * epsilon:g} in any {deployment.window_chunks} consecutive chunks "
            f"(ceiling {deployment.window_epsilon:g})",
        ),
        ("session", f"the sum over its chunks, at most epsilon {deployment.session_epsilon:g}"),
        ("hour", f"about epsilon {hourly:g} at {deployment.rate_hz:g} rows a second"),
        (
            "day",
            f"about epsilon {min(24 * hourly, deployment.day_epsilon):g} (ceiling {deployment.day_epsilon:g}, a day in "
            "UTC by the host's clock)",
        ),
        (
            "person",
            "the sum over everything ever released from that person, by all devices, sidecars and replays. At common "
            "settings that sum is large: what stands against re-identification then is measured, not proved",
        ),
        (
            "noise",
            "integers on a grid relative to the noise, drawn from AES-256-CTR keyed by the operating system; the "
            "sampler's deviation from the ideal law is charged inside epsilon; no floating-point argument in the proof",
        ),
        (
            "attacker",
            "may know this code, its configuration and calibration, every release, and anything else; unlimited "
            "computing power. Trusted: the tracker, this process, its ledger file, and the way from tracker to sidecar",
        ),
        (
            "not protected",
            "that a device is in use, when, for how long, and its pseudonym; features declared constant say nothing; "
            "what several chunks tell together beyond the sums above",
        ),
        (
            "not claimed",
            "that epsilon of a chunk holds for a whole recording 'by parallel composition over chunks', as published "
            "for CFPA and DCFPA: one person contributes all chunks, so their losses add up",
        ),
    ]


def text(mechanism: Mechanism, deployment: Deployment) -> str:
    """`describe` as lines of text."""
    return "\n".join(f"{topic}: {sentence}" for topic, sentence in describe(mechanism, deployment))
