"""What is trusted: the log of a fleet, by where it keeps raw rows and how one reaches it; what a second place ends."""

from pathlib import Path

import msgspec
import pytest

from eyestream.claims.facts import NOT_PROTECTED, TRUSTED
from eyestream.claims.guarantee import Guarantee
from eyestream.rim.config import Settings
from eyestream.rim.config.tables import FleetSettings
from eyestream.rim.plan import resolved
from tests.rigs.sidecar import NO_BROKER, settings_for


def fleet(tmp_path: Path, server: str) -> Guarantee:
    made = FleetSettings((server,), 4, tmp_path, raw_age_s=120.0)
    return guarantee(msgspec.structs.replace(settings_for(NO_BROKER, tmp_path), fleet=made))


def guarantee(settings: Settings) -> Guarantee:
    return resolved(settings).streams["features"].guarantee


@pytest.mark.parametrize(("server", "said"), [("tls://n:4222", "speak TLS"), ("nats://n:4222", "do not speak TLS")])
def test_a_fleet_says_that_its_log_is_trusted_and_what_of_it(tmp_path: Path, server: str, said: str) -> None:
    made = fleet(tmp_path, server)
    words = dict(made.sentences())
    assert "NATS, is inside the trusted part" in words["log"]
    assert "in the memory of its servers for 120 s, and on no disk" in words["log"]
    assert f"The links to it {said}" in words["log"]
    assert "the log" in words["attacker"]
    assert made.claim()["log"] == words["log"]
    assert "the noise is added in a worker of the fleet" in made.text()
    assert "the log" in made.claim()["trusted"]  # type: ignore[operator]


def test_one_sidecar_trusts_no_log(tmp_path: Path) -> None:
    made = guarantee(settings_for(NO_BROKER, tmp_path))
    assert "log" not in dict(made.sentences())
    assert (made.claim()["log"], made.standing.trusted, made.standing.not_protected) == (None, TRUSTED, NOT_PROTECTED)


def test_with_a_second_place_only_both_together_can_be_rolled_back(tmp_path: Path) -> None:
    settings = settings_for(NO_BROKER, tmp_path)
    sidecar = msgspec.structs.replace(settings.sidecar, second_place=tmp_path / "place")
    alone, guarded = guarantee(settings), guarantee(msgspec.structs.replace(settings, sidecar=sidecar))
    rolled_back = "an older copy of the ledger put back"
    assert rolled_back in alone.text()
    for made in (guarded, fleet(tmp_path, "tls://n")):
        assert rolled_back not in made.text()
        assert "of its second place put back together" in made.text()
        assert len(made.standing.not_protected) == len(NOT_PROTECTED)
