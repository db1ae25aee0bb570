"""The text of a new configuration: the commented one that ships, with what somebody has chosen in it."""

import json
import re
import secrets
import tomllib
from dataclasses import dataclass

from eyestream.core.mechanisms.registry import DEFAULT, beginnings, build
from eyestream.core.purposes import PURPOSES, Choice, Wish
from eyestream.errors import ConfigError
from eyestream.ops.asked_sets import ASKED_CALIBRATION, asked_features
from eyestream.rim import config
from eyestream.rim.files import DATA, calibrations
from eyestream.streams import StreamSpec

_REACH_S = 31.5
"""Seconds of gaze that a row of the 52 features depends on: its window of 30 s, and 1.47 s, the memory of the corpus'
front end (smi-glasses). For another tracker `eyestream check` and `guarantee` know it."""

_NO_CLASS = "# without `correlation`: a class of processes says nothing of a session's baseline\n"


def default_epsilon() -> float:
    """Epsilon of a chunk in the commented configuration."""
    tables = tomllib.loads((DATA / "sidecar.toml").read_text(encoding="utf-8"))
    return float(tables["stream"][0]["privacy"]["epsilon"])


def fresh_configuration() -> str:
    """The commented configuration, with a random pseudonym for its device and a name of its own for its sidecar."""
    text = (DATA / "sidecar.toml").read_text(encoding="utf-8")
    for pattern, new in (
        (r'^id = "hmd-[0-9a-f]+"$', f'id = "hmd-{secrets.token_hex(5)}"'),
        (r'^name = "sidecar"$', f'name = "sidecar-{secrets.token_hex(4)}"'),
    ):
        text, count = re.subn(pattern, new, text, count=1, flags=re.MULTILINE)
        assert count == 1, pattern
    return text


def _without_baseline(text: str) -> str:
    """The fresh configuration without what it says of a baseline, for a calibration that takes none."""
    for pattern in (r"^# This one withholds .*\n(# .*\n)+", r", as this one$"):
        text = re.sub(pattern, "", text, count=1, flags=re.MULTILINE)
    return text


def reach_of_features(rate_hz: float) -> StreamSpec:
    """A stream of rows of the 52 features, to count what they enter; its names do not matter."""
    return StreamSpec("features", 1, ("a",), ("1",), rate_hz, _REACH_S)


@dataclass(frozen=True)
class ChosenTables:
    """The values of a configuration that follow from a choice among what was measured.

    Attributes
    ----------
    calibration : name of a shipped one.
    epsilon : of a chunk.
    n : rows of a chunk.
    touched : chunks that a second of gaze enters, at most.
    session_epsilon, day_epsilon : ceilings, for as many hours as were wished for.
    withheld_s : seconds of each session that its baseline takes; 0 where there is none.
    """

    calibration: str
    epsilon: float
    n: int
    touched: int
    session_epsilon: float
    day_epsilon: float
    withheld_s: float

    @classmethod
    def of(cls, wish: Wish, choice: Choice) -> "ChosenTables":
        """The values that `choice` comes to for the hours of `wish`."""
        anchor = calibrations.load(choice.calibration).anchor
        hour = choice.epsilon * 60 * choice.rate_hz / choice.n * 60
        return cls(
            calibration=choice.calibration,
            epsilon=choice.epsilon,
            n=choice.n,
            touched=reach_of_features(choice.rate_hz).chunks_touched(choice.n, 1.0),
            session_epsilon=hour * (wish.hours_a_session or wish.hours_a_day),
            day_epsilon=hour * wish.hours_a_day,
            withheld_s=0.0 if anchor is None else anchor.chunks * choice.n / choice.rate_hz,
        )

    def text(self) -> str:
        """The tables of a configuration that have these values."""
        return (
            "[stream.privacy]\n"
            f'calibration = "{self.calibration}"\n'
            f"epsilon = {self.epsilon:g}\n"
            f"{_NO_CLASS if self.withheld_s else ''}\n"
            "[budget]\n"
            f"window_chunks = {self.touched}\n"
            f"window_epsilon = {self.touched * self.epsilon:g}\n"
            f"session_epsilon = {self.session_epsilon:g}\n"
            f"day_epsilon = {self.day_epsilon:g}\n"
        )

    def into(self, text: str) -> str:
        """The configuration `text` of one stream with these values; its comments stay where they are true of them.

        Raises
        ------
        ConfigError
            One of the values has no place in `text`.
        """
        for line in self.text().splitlines():
            key, found, value = line.partition(" = ")
            if found and not line.startswith("#"):
                text, count = re.subn(rf"(?m)^{key} = \S+", f"{key} = {value}", text, count=1)
                if not count:
                    raise ConfigError(f"the configuration to change has no {key}")
        touched = f"touches up to {self.touched} chunks of {self.n} rows"
        text = re.sub(r"touches up to \d+ chunks of \d+ rows", touched, text, count=1)
        if self.withheld_s:
            return re.sub(r"(?m)^(correlation = )", r"# \1", text, count=1)
        return re.sub(r"(?m)^# (correlation = )", r"\1", _without_baseline(text), count=1)

    def for_purpose(self, text: str, purpose: str) -> str:
        """The text of `into`, with the purpose and its price in the place of calibration and epsilon."""
        text = self.into(text)
        named = f'purpose = "{purpose}"'
        priced = f"epsilon_per_minute = {PURPOSES[purpose].epsilon_per_minute:g}"
        lines = (
            f"{named:<40} # what it is for; `eyestream guarantee` says which calibration that is\n"
            f"{priced:<40} # a minute of rows without a pause, on average; no newer version raises it\n"
            f"#{'':<39} # many short sessions cost more: session_epsilon and day_epsilon bound that\n"
        )
        old = r"(?m)^calibration = .*\n^epsilon = .*\n(# In the place of .*\n(# .*\n)*?# .* bound that\.\n)?"
        text, count = re.subn(old, lines, text, count=1)
        assert count == 1
        return text


def at_broker(broker: str | None) -> str:
    """The configuration to begin with, at a broker that somebody chose; raises ConfigError where it is none."""
    text = fresh_configuration()
    if broker is None:
        return text
    try:
        _ = config.BrokerSettings(broker).place
    except ConfigError as error:
        raise ConfigError(f"--broker {error}") from None
    return re.sub(r"(?m)^url = \S+", lambda _: f"url = {json.dumps(broker)}", text, count=1)


def of_mechanism(mechanism: str, fresh: str) -> str:
    """The configuration `fresh` with the calibration of a mechanism that somebody chose."""
    usual, chosen = beginnings()[DEFAULT], beginnings()[mechanism]
    if chosen.stream:
        of_features = re.compile(r"^\[\[stream\]\]\n.*?^day_epsilon = .*?\n", re.MULTILINE | re.DOTALL)
        text = of_features.sub(lambda _: chosen.stream, fresh, count=1)
        return text.replace('"features"]', f'"{tomllib.loads(chosen.stream)["stream"][0]["name"]}"]')
    text = fresh.replace(f'"{usual.calibration}"', f'"{chosen.calibration}"', 1)
    for option in chosen.switched_on:
        text = text.replace(f"# {option} = false", f"{option} = true", 1)
    if chosen.session_bound:
        text = _without_baseline(text).replace("# correlation = ", "correlation = ", 1)
    return text


def of_features(features: str, fresh: str) -> str:
    """The configuration `fresh` that releases the features NAME[,NAME...] and no other; raises ConfigError.

    Epsilon, ceilings and baseline are those of the default: its chunks are as long.
    """
    calibration = calibrations.load(ASKED_CALIBRATION)
    names = asked_features(features, calibration.names)
    build(calibration, default_epsilon(), features=names)
    text = fresh.replace(f'"{beginnings()[DEFAULT].calibration}"', f'"{ASKED_CALIBRATION}"', 1)
    text, count = re.subn(r"(?m)^# features = \[.*?\]", f"features = {json.dumps(names)}", text, count=1)
    assert count == 1
    return text
