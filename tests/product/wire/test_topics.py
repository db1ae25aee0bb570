"""Addresses: what may be named, and what is recognised."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyestream.errors import ConfigError, PayloadError
from eyestream.wire import topics
from eyestream.wire.topics import Topic, is_name, parse_topic

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True)
WRONG = ["", "+", "#", "a/b", "a+", "$SYS", "a b", "a\n", "a\0", "-a", "_a", "é", "٣", "a" * 65, "a.b"]


def test_addresses_are_those_of_the_design() -> None:
    assert topics.raw_topic("d1") == "eyestream/v1/d1/features/raw"
    assert topics.private_topic("d1") == "eyestream/v1/d1/features/private"
    assert topics.meta_topic("d1") == "eyestream/v1/d1/features/meta"
    assert topics.status_topic("d1", "pupil") == "eyestream/v1/d1/pupil/status"
    assert topics.budget_topic("d1") == "eyestream/v1/d1/features/budget"
    assert topics.sidecar_status_topic("s1") == "eyestream/v1/s1/sidecar/status"


@given(names, names.filter(lambda name: name != "sidecar"))
def test_what_is_built_is_parsed(device: str, stream: str) -> None:
    built = {
        "raw": topics.raw_topic(device, stream),
        "private": topics.private_topic(device, stream),
        "meta": topics.meta_topic(device, stream),
        "status": topics.status_topic(device, stream),
        "budget": topics.budget_topic(device, stream),
        "odometer": topics.odometer_topic(device, stream),
    }
    assert {leaf: parse_topic(topic) for leaf, topic in built.items()} == {
        leaf: Topic(device, stream, leaf) for leaf in built
    }
    assert parse_topic(topics.sidecar_status_topic(device)) == Topic(device, "sidecar", "status")


@pytest.mark.parametrize("name", WRONG)
def test_names_that_could_mean_more_are_refused(name: str) -> None:
    assert not is_name(name)
    for build in (
        topics.raw_topic,
        topics.private_topic,
        topics.meta_topic,
        topics.status_topic,
        topics.odometer_topic,
    ):
        with pytest.raises(ConfigError):
            build(name)
        with pytest.raises(ConfigError):
            build("d1", name)
    with pytest.raises(ConfigError):
        topics.sidecar_status_topic(name)
    with pytest.raises(PayloadError, match="topic"):
        parse_topic(f"eyestream/v1/{name}/features/raw")
    with pytest.raises(PayloadError, match="topic"):
        parse_topic(f"eyestream/v1/d1/{name}/raw")


def test_the_stream_of_sidecars_is_taken() -> None:
    with pytest.raises(ConfigError):
        topics.raw_topic("d1", "sidecar")
    with pytest.raises(PayloadError, match="topic"):
        parse_topic("eyestream/v1/d1/sidecar/raw")


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "/",
        "eyestream/v1/d1/features",
        "eyestream/v1/d1/features/raw/",
        "eyestream/v1/d1/features/raw/x",
        "/eyestream/v1/d1/features/raw",
        "eyestream/v2/d1/features/raw",
        "eyestream/d1/features/raw/v1",
        "Eyestream/v1/d1/features/raw",
        "eyestream/v1/d1/features/RAW",
        "eyestream/v1/d1/features/secret",
        "eyestream/v1/d1/features/raw\n",
    ],
)
def test_other_addresses_are_not_ours(topic: str) -> None:
    with pytest.raises(PayloadError, match="topic"):
        parse_topic(topic)


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for topic in (text, "eyestream/v1/" + text):
        parsed = None
        with contextlib.suppress(PayloadError):
            parsed = parse_topic(topic)
        if parsed is not None:
            assert "/".join(["eyestream/v1", parsed.device, parsed.stream, parsed.leaf]) == topic
