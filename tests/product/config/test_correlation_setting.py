"""A class of processes in the configuration: what is said of a session, and the target."""

import json
import re
from pathlib import Path

import pytest

from eyestream.claims.correlation.published import session_claim
from eyestream.cli.main import main
from eyestream.core.mechanisms import build
from eyestream.errors import ConfigError
from eyestream.rim import config
from eyestream.rim.files import calibrations
from eyestream.rim.files.processes import load_process
from eyestream.rim.plan import resolved

pytestmark = pytest.mark.xdist_group("correlation-setting")


def written(folder: Path, **changes: str) -> Path:
    """What `eyestream init` writes for one score and a class, with some lines of [stream.privacy] changed."""
    main(["init", str(folder)])
    path = folder / "sidecar.toml"
    text = path.read_text()
    one = {"calibration": 'calibration = "everyday-klt-one-64"', "correlation": 'correlation = "everyday"'}
    for key, value in (one | changes).items():
        text, count = re.subn(rf"(?m)^(# )?{key} = .*$", value, text, count=1)
        assert count == 1, key
    path.write_text(text)
    return path


def test_a_new_configuration_says_what_a_session_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "a", calibration='calibration = "everyday-cfpa-64"')
    capsys.readouterr()
    main(["guarantee", "--config", str(path), "--json"])
    claim = json.loads(capsys.readouterr().out)["features"]["correlation"]
    assert claim["class"] == "everyday"
    assert claim["outside_the_class"] == {"epsilon": pytest.approx(1152.0), "of": "plain sum over the chunks"}
    assert claim["epsilon_prime"]["chunk"] == pytest.approx(4.8 * (1 + claim["a_max"]) / (1 - claim["a_max"]), rel=0.01)
    assert claim["epsilon_prime"]["second_of_gaze"] == pytest.approx(claim["epsilon_prime"]["chunk"] + 4.8)
    settings = config.load(path)
    words = next(iter(resolved(settings).metas.values())).guarantee
    assert "the class 'everyday'" in words
    assert "Outside this class only the plain sum holds" in words
    assert f"e^{claim['epsilon_prime']['chunk']:.4g}" in words


@pytest.mark.parametrize("name", ["klt", "cfpa", "dcfpa"])
def test_each_mechanism_has_a_configuration_of_its_own(name: str, tmp_path: Path) -> None:
    main(["init", str(tmp_path / "a"), "--mechanism", name])
    settings = config.load(tmp_path / "a" / "sidecar.toml")
    stream = resolved(settings).streams["features"]
    made = stream.mechanism
    assert (made.name, made.n, made.epsilon) == (name, 64, pytest.approx(4.8))
    assert made.options == ({} if name == "klt" else {"clip": True, "smooth": True})
    claimed = stream.guarantee.correlated
    assert (claimed is None) is (made.calibration.anchor is not None) is (name == "klt")


def test_an_endless_session_is_bounded_in_no_time(tmp_path: Path) -> None:
    """Ceilings of a million and epsilons near nothing: many chunks, and still an answer."""
    for name in ("klt-one", "cfpa"):
        mechanism = build(calibrations.load(f"everyday-{name}-64"), 1e-3)
        claim = session_claim(mechanism, load_process("everyday"), 32.0, chunks=10**9, touched=2)
        assert 1e-3 < claim.chunk <= claim.plain


def test_without_a_class_only_the_sum_is_claimed(tmp_path: Path) -> None:
    settings = config.load(written(tmp_path / "a", correlation=""))
    made = resolved(settings).streams["features"].guarantee
    assert made.claim()["correlation"] is None
    assert "the sum over the chunks of a session is the only bound" in dict(made.sentences())["correlation"]


def test_epsilon_is_lowered_until_epsilon_prime_stays_below_its_target(tmp_path: Path) -> None:
    changes = {"calibration": 'calibration = "everyday-cfpa-64"', "epsilon_prime": "epsilon_prime = 20.0"}
    settings = config.load(written(tmp_path / "a", **changes))
    stream = resolved(settings).streams["features"]
    made = stream.guarantee
    assert made.correlated is not None
    assert 0.98 * 20 < made.correlated.chunk <= 20
    assert stream.mechanism.epsilon < 2.1
    roomy = config.load(written(tmp_path / "b", **(changes | {"epsilon_prime": "epsilon_prime = 200.0"})))
    assert resolved(roomy).mechanisms["features"].epsilon == pytest.approx(4.8)


def test_what_cannot_be_claimed_is_refused(tmp_path: Path) -> None:
    for name, changes, message in (
        ("a", {"correlation": "", "epsilon_prime": "epsilon_prime = 20.0"}, "name one with `correlation`"),
        ("b", {"correlation": 'correlation = "nights"'}, "'nights': not one of everyday"),
        (
            "c",
            {"calibration": 'calibration = "everyday-klt-anchored-64"'},
            "leave it out for a calibration with a base",
        ),
    ):
        settings = config.load(written(tmp_path / name, **changes))
        with pytest.raises(ConfigError, match=message):
            _ = resolved(settings).streams["features"].guarantee


def test_a_class_file_is_found_beside_the_configuration(tmp_path: Path) -> None:
    path = written(tmp_path / "a", correlation='correlation = "./mine.toml"')
    (tmp_path / "a" / "mine.toml").write_text(
        'name = "mine"\ntime_constant_s = 10\nscore_time_constant_s = 10\nrange_sd = 2\nabout = "Made up"\n'
    )
    settings = config.load(path)
    made = resolved(settings).streams["features"].guarantee
    assert made.correlated is not None
    assert made.correlated.name == "mine"
