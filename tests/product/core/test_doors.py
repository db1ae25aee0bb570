"""A mechanism that does not declare what it must is refused by one line, before anything is booked or published."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from eyestream.claims.guarantee import guarantee_of_recording
from eyestream.core.calibration import Calibration
from eyestream.core.charge import Ceilings
from eyestream.core.kinds import DifferentialPrivacy, NoClaim
from eyestream.core.mechanisms import build
from eyestream.core.release_type import Category, GazeSlot, OutputSchema, Rows
from eyestream.errors import CalibrationError, ConfigError, OperatorError
from eyestream.rim.config import PrivacySettings
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.streams import StreamKey
from eyestream_lab.corpora.claims import KAnonymity, PlausibleDeniability
from eyestream_lab.recordings.privatize import Booking, privatize
from tests.product.core.undeclared import Corpora
from tests.rigs.sidecar import NO_BROKER, settings_for
from tests.rigs.small_corpus import calibrated

HERE = "tests.product.core.undeclared"
CORPUS = ("baseline", "groups")


def of(name: str) -> Calibration:
    return replace(calibrations.load("everyday-cfpa-32"), mechanism=name)


def file_of(name: str, folder: Path) -> Path:
    """A calibration file for a mechanism that is not known when it is written."""
    calibrations.save(of(name), folder / "mine.npz")
    return folder / "mine.npz"


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ("NO_CLAIM", "mechanism no-claim has no claim: its attribute `protection` must be a Protection"),
        ("NO_WORD", "mechanism no-word has no claim: expected a `Claim` of `eyestream.core.kinds`"),
        (
            "OTHER_DOMAIN",
            "mechanism other-domain has a wrong domain: expected an InputDomain such as Rows(), not 'rows'",
        ),
        ("OTHER_SCHEMA", r"mechanism other-schema has a wrong schema: (2, 1) of gaze x, gaze y is declared, and (52, "),
        ("OTHER_STEP", "mechanism other-step has a wrong schema: a step of 1 s is declared, and rows are 0.5 s apart"),
        ("WHOLE_CORPUS", "a corpus is released whole: no calibration of chunks is for it"),
        ("NO_CLASS", "no mechanism: <class 'tests.product.core.undeclared.NotAMechanism'> is no subclass of "),
        ("BASELINE", "mechanism baseline cannot be released live: its claim is 'none', which no budget of epsilon"),
        ("GROUPS", "mechanism groups cannot be released live: its claim is 'k-anonymity', which no budget of epsilon"),
    ],
)
def test_one_line_before_anything_is_booked(named: str, complaint: str, tmp_path: Path) -> None:
    settings = settings_for(NO_BROKER, tmp_path)
    name = named.lower().replace("_", "-").replace("no-class", "not-a-mechanism")
    privacy = PrivacySettings(str(file_of(name, tmp_path)), 4.8, mechanism=f"{HERE}:{named}")
    settings = msgspec.structs.replace(settings, stream=(msgspec.structs.replace(settings.stream[0], privacy=privacy),))
    before = settings.sidecar.ledger.read_bytes()
    with pytest.raises(OperatorError) as refused, assemble(resolved(settings), lambda: 20_000):
        raise AssertionError("it was let in")
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)
    assert settings.sidecar.ledger.read_bytes() == before


def test_control_the_same_mechanism_with_nothing_wrong_is_let_in(tmp_path: Path) -> None:
    with assemble(resolved(settings_for(NO_BROKER, tmp_path)), lambda: 20_000) as made:
        assert made.plan.mechanisms["features"].guarantee.startswith("4.8-differential privacy (pure)")


def recording() -> Recording:
    rows = np.random.default_rng(1).random((64, 52))
    return Recording(np.arange(64) / 2.0, rows, of("cfpa").names, "p")


@pytest.mark.parametrize(
    ("named", "promise"),
    [
        ("BASELINE", {"kind": "none", "reason": "no guarantee is known"}),
        (
            "GROUPS",
            {
                "kind": "k-anonymity",
                "k": 4,
                "among": "the 20 people of the corpus",
                "knowledge": "which recordings the corpus has",
            },
        ),
    ],
)
def test_the_offline_door_takes_other_claims_and_says_so_first(named: str, promise: dict[str, object]) -> None:
    entry = mechanism_elsewhere(f"{HERE}:{named}", "--mechanism")
    mechanism = build(of(entry.name), 4.8)
    [released] = privatize([recording()], mechanism.calibration, mechanism)
    told = json.loads(json.dumps(released.claim()))
    assert told["epsilon"] is told["delta"] is None
    assert told["epsilon_of_chunks"] == []
    assert told["claim"]["promise"] == promise
    assert told["claim"]["loss"] is None
    assert told["claim"]["statement"].startswith(("none: ", "not differential privacy: "))
    assert "evaluation" not in told["claim"]


def test_a_ledger_of_epsilon_books_no_other_claim(tmp_path: Path) -> None:
    mechanism_elsewhere(f"{HERE}:BASELINE", "--mechanism")
    mechanism = build(of("baseline"), 4.8)
    create_ledger(tmp_path / "ledger", created=0)
    before = (tmp_path / "ledger").read_bytes()
    with Ledger(tmp_path / "ledger", ceilings=Ceilings()) as ledger:
        booking = Booking(ledger, StreamKey("p", "features"), 20_000)
        with pytest.raises(ConfigError, match="its claim is 'none', which no budget of epsilon counts"):
            next(privatize([recording()], mechanism.calibration, mechanism, booking))
    assert (tmp_path / "ledger").read_bytes() == before


@pytest.mark.parametrize(
    ("claim", "beginning", "words"),
    [
        (NoClaim(), "none: no guarantee is known", ()),
        (
            KAnonymity(4, "the 20 people of the corpus", "all but one of the recordings"),
            "not differential privacy: k-anonymity with k = 4 among the 20 people of the corpus, against",
            ("who knows all but one of the recordings", "at least 4 of them"),
        ),
        (
            PlausibleDeniability(6, 1.5, "the 20 people of the corpus"),
            "not differential privacy: plausible deniability with k = 6 and gamma = 1.5 among the 20 people",
            ("At least 6 of them", "a factor of at most 1.5"),
        ),
    ],
)
def test_every_renderer_says_first_what_is_no_differential_privacy(
    claim: NoClaim | KAnonymity | PlausibleDeniability, beginning: str, words: tuple[str, ...]
) -> None:
    mechanism = build(calibrated("cfpa"), 4.8)
    made = replace(guarantee_of_recording(mechanism, mechanism.calibration), promise=claim)
    assert made.sentences()[0][0] == "claim"
    assert made.text().startswith(f"claim: {beginning}")
    assert all(word in made.text() for word in words)
    assert "epsilon" not in made.text()
    assert made.claim()["promise"] == claim.facts()
    assert not {"loss", "evaluation", "scopes"} & {key for key, value in made.claim().items() if value is not None}


def test_a_claim_that_says_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="needs k of at least 2"):
        KAnonymity(1, "", "")
    for k, gamma in ((1, 2.0), (4, 1.0), (4, float("nan"))):
        with pytest.raises(ValueError, match="needs k of at least 2 and gamma above 1"):
            PlausibleDeniability(k, gamma, "")


def test_each_domain_knows_its_chunks() -> None:
    lengths = {
        Rows(): (2, 32),
        Rows(powers_of_two=False): (1, 2, 3, 32),
        Category(): (1,),
        GazeSlot(): (1,),
        Corpora(): (),
    }
    for domain, taken in lengths.items():
        assert tuple(n for n in (0, 1, 2, 3, 32) if domain.takes(n)) == taken
        for n in (1, 3, 32):
            shaped = replace(of("cfpa"), n=32)
            object.__setattr__(shaped, "n", n)
            if domain != Category() and n in taken:
                domain.check(shaped)
            else:
                with pytest.raises(CalibrationError):
                    domain.check(shaped)


@pytest.mark.parametrize(
    ("names", "units", "shape", "step_s"),
    [
        (("a",), ("1", "1"), (1, 1), 1.0),
        (("a",), ("1",), (2, 1), 1.0),
        ((), (), (0, 1), 1.0),
        (("a",), ("1",), (1, 0), 1.0),
        (("a",), ("1",), (1, 1), 0.0),
        (("a",), ("1",), (1, 1), np.inf),
    ],
)
def test_a_schema_that_does_not_fit_together_is_refused(
    names: tuple[str, ...], units: tuple[str, ...], shape: tuple[int, int], step_s: float
) -> None:
    with pytest.raises(ValueError, match=r"names and|a step of"):
        OutputSchema(names, units, shape, step_s)


def test_what_the_product_claims_is_differential_privacy() -> None:
    claim = build(calibrated("cfpa"), 4.8).claim
    assert isinstance(claim, DifferentialPrivacy)
    assert claim.facts()["variant"] == "pure"
