"""What is trusted of one sidecar, and what a second place ends."""

from pathlib import Path

import msgspec

from eyestream.claims.facts import NOT_PROTECTED, TRUSTED
from eyestream.claims.guarantee import Guarantee
from eyestream.rim.config import Settings
from eyestream.rim.plan import resolved
from tests.rigs.sidecar import NO_BROKER, settings_for


def guarantee(settings: Settings) -> Guarantee:
    return resolved(settings).streams["features"].guarantee


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
    assert rolled_back not in guarded.text()
    assert "of its second place put back together" in guarded.text()
    assert len(guarded.standing.not_protected) == len(NOT_PROTECTED)
