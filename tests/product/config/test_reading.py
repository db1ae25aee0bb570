"""The configuration is read strictly: every mistake is one line with file, table, key, what was found and expected."""

import re
from pathlib import Path

import pytest

from eyestream.core.purposes import PURPOSES
from eyestream.errors import ConfigError
from eyestream.rim import config

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = (ROOT / "config" / "sidecar.toml").read_text()


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sidecar.toml"
    path.write_text(text)
    return path


def test_the_example_is_a_configuration_of_one_broker() -> None:
    settings = config.load(ROOT / "config" / "sidecar.toml")
    (stream,) = settings.stream
    assert len(stream.names) == 52
    assert settings.streams_of(settings.device[0]) == (stream,)
    assert settings.raw_broker is settings.private
    assert settings.sidecar.ledger == ROOT / "config" / "ledger"


def test_example_and_template_are_one_file() -> None:
    """The first is a link to the second, which a copy of the checkout may not keep."""
    assert (ROOT / "config" / "sidecar.toml").read_bytes() == (
        ROOT / "eyestream" / "data" / "sidecar.toml"
    ).read_bytes()


def test_the_ceilings_of_the_example_are_those_of_a_file_that_names_none() -> None:
    """Both come from one place, `eyestream.core.purposes`; what is for the purpose of the default has them too."""
    written, default = config.load(ROOT / "config" / "sidecar.toml").budget, config.BudgetSettings()
    assert (written.session_epsilon, written.day_epsilon) == (default.session_epsilon, default.day_epsilon)
    wish = PURPOSES["unrecognised"]
    hours = [wish.hours_a_session, wish.hours_a_day]
    assert [60 * wish.epsilon_per_minute * hour for hour in hours if hour] == [
        default.session_epsilon,
        default.day_epsilon,
    ]


@pytest.mark.parametrize("text", ["[stream]\nschema = 1\n[privacy]\nepsilon = 4.8\n", "[stream]\n"])
def test_the_tables_of_0_1_0_are_refused_with_what_to_write(tmp_path: Path, text: str) -> None:
    said = "write [[stream]] in the place of [stream], and [stream.privacy], after it, in the place of [privacy]"
    with pytest.raises(ConfigError, match=re.escape(said)):
        config.load(write(tmp_path, text))


def test_the_key_of_a_client_that_was_chosen_once_is_unknown(tmp_path: Path) -> None:
    text = EXAMPLE.replace("[private]", '[private]\nclient = "own"', 1)
    with pytest.raises(ConfigError, match=r"\[private\] client: unknown key"):
        config.load(write(tmp_path, text))


def test_several_streams(tmp_path: Path) -> None:
    """Each with a mechanism of its own; a device may send some of them."""
    second = """
[[stream]]
name = "coarse"
schema = 2
rate_hz = 2.0
window_s = 30.0
memory_s = 1.5
grace_s = 1.0
idle_s = 60.0
release = "on_clock"
names = ["a", "b"]
[stream.privacy]
calibration = "./mine.npz"
epsilon = 1.0
smooth = true
[stream.budget]
day_epsilon = 10.0
"""
    text = EXAMPLE + second + '\n[[device]]\nid = "two"\nstreams = ["coarse"]\n'
    settings = config.load(write(tmp_path, text))
    assert [stream.name for stream in settings.stream] == ["features", "coarse"]
    assert settings.stream[1].privacy.given == {"smooth": True}
    assert settings.stream[1].privacy.calibration == str(tmp_path / "mine.npz")
    assert [[s.name for s in settings.streams_of(d)] for d in settings.device] == [["features", "coarse"], ["coarse"]]


def test_every_commented_key_is_known(tmp_path: Path) -> None:
    text = re.sub(r"^# (\[[\w.]+\]|\w+ = )", r"\1", EXAMPLE, flags=re.MULTILINE)
    settings = config.load(write(tmp_path, text))
    assert settings.raw is not None
    assert settings.private.key_file == tmp_path / "sidecar.key"
    assert (settings.source[0].kind, settings.source[0].device) == ("neon", settings.device[0].id)
    given = {
        "k": 1,
        "shrink": False,
        "clip": False,
        "smooth": False,
        "focus": ["blink_rate"],
        "features": ["blink_rate"],
    }
    assert settings.stream[0].privacy.given == given


def test_one_source_takes_the_one_device_and_the_one_stream(tmp_path: Path) -> None:
    (source,) = config.load(write(tmp_path, EXAMPLE + '[source]\nkind = "mqtt"\nprofile = "./mine.toml"\n')).source
    assert (source.device, source.stream) == ("hmd-4f1c07a9d2", "features")
    assert source.profile == str(tmp_path / "mine.toml")
    two = EXAMPLE + '[[device]]\nid = "hmd-2"\n'
    with pytest.raises(ConfigError, match=r"\[\[source\]\] \(number 1\) device: missing|\[source\].* device: missing"):
        config.load(write(tmp_path, two + '[source]\nkind = "mqtt"\n'))
    several = '[[source]]\nkind = "mqtt"\ndevice = "hmd-2"\n'
    assert config.load(write(tmp_path, two + several)).source[0].stream == "features"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    text = EXAMPLE.replace('"everyday-klt-anchored-64"', '"./mine.npz"')
    settings = config.load(write(tmp_path, text))
    assert settings.stream[0].privacy.calibration == str(tmp_path / "mine.npz")
    assert settings.sidecar.ledger == tmp_path / "ledger"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 1\nschemas = 1", "[[stream]] 'features' schemas: unknown key"),
        ("[budget]", "[bugdet]", "[bugdet]: unknown key; did you mean budget?"),
        (
            "epsilon = 4.8",
            'epsilon = "4.8"',
            "[stream.privacy] 'features' epsilon: expected a number above 0, found \"4.8\"",
        ),
        ("epsilon = 4.8", "epsilon = nan", "[stream.privacy] 'features' epsilon: expected a finite number"),
        ("epsilon = 4.8", "epsilon = inf", "[stream.privacy] 'features' epsilon: expected a finite number"),
        ("# k = 1", "options.sigma = nan", "options] 'features' sigma: expected a finite number, found nan"),
        ("epsilon = 4.8", "epsilon = 0.0", "epsilon: expected a number above 0, found 0.0"),
        ("epsilon = 4.8", "epsilon = true", "epsilon: expected a number above 0, found true"),
        ("epsilon = 4.8", "", "[stream.privacy] 'features' epsilon: missing; expected a number above 0"),
        (
            "window_chunks = 2",
            "window_chunks = 2.5",
            "[budget] window_chunks: expected a whole number, 1 to 1000000, found 2.5",
        ),
        (
            'release = "on_row"',
            'release = "sometimes"',
            "release: expected 'on_clock' or 'on_row', found \"sometimes\"",
        ),
        ('id = "hmd-4f1c07a9d2"', 'id = "a/#"', "[[device]] 'a/#' id: expected 1 to 64 of"),
        ('id = "hmd-4f1c07a9d2"', 'id = "hmd\\n"', "[[device]] (number 1) id: expected 1 to 64 of"),
        (
            'id = "hmd-4f1c07a9d2"',
            'id = "$share/g/hmd"',
            "id: $share/g/hmd: a shared subscription gives each of several",
        ),
        ('id = "hmd-4f1c07a9d2"', 'id = "sidecar"', "[sidecar] name: expected another name"),
        ('id = "hmd-4f1c07a9d2"', 'id = "a"\n[[device]]\nid = "a"', "[[device]] id: expected every device once"),
        ('"rate_fixations", "rate_saccades"', '"rate_fixations", "rate_fixations"', "expected every feature once"),
        (
            '"rate_fixations", ',
            "7, ",
            "[[stream]] 'features' names[0]: expected a text without control characters, found 7",
        ),
        ('ledger = "ledger"', "ledger = 1", "[sidecar] ledger: expected a path"),
        ('ledger = "ledger"', 'ledger = "a\\nb"', "[sidecar] ledger: expected a path"),
        ('"mqtt://localhost:1883"', '"mqtt://a\\nb"', "[private] url: expected a text without control characters"),
        (
            '"rate_fixations"',
            '"a\\u0000"',
            "'features' names[0]: expected a text without control characters",
        ),
        ('name = "features"', 'name = "sidecar"', "[[stream]] name: 'sidecar' is taken"),
        ('name = "features"', 'name = "a b"', "[[stream]] 'a b' name: expected 1 to 64 of"),
        (
            "[stream.privacy]",
            "[stream.privacies]",
            "[[stream]] 'features' privacies: unknown key; did you mean privacy?",
        ),
        ("[budget]", "[stream.budget]\nday_epsilon = 0\n[budget]", "[stream.budget] 'features' day_epsilon: expected"),
        (
            "day_epsilon = 2304.0",
            "day_epsilon = 2304.0\nday_delta = 2",
            "[budget] day_delta: expected a number, 0 to 1, found 2",
        ),
        ("[[device]]", '[[device]]\nstreams = ["gaze"]', "streams: expected names of features, found 'gaze'"),
        ("[[device]]", "[[device]]\nstreams = []", "streams: expected names of features, found none"),
        (
            "[[device]]",
            '[[source]]\nkind = "x"\ndevice = "other"\n[[device]]',
            "[[source]] device, stream: expected a device",
        ),
        ("# password_file", "password_file", "[private] username: missing beside password_file"),
        ("# cert_file", "cert_file", "[private]: expected cert_file and key_file together"),
        ("[sidecar]", "[sidecar.x]", "[sidecar.x]: unknown key"),
        ("[sidecar]", "[sidecar", "not TOML"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in EXAMPLE
    path = write(tmp_path, EXAMPLE.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert said in line
    assert "\n" not in line


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot read the configuration: No such file"):
        config.load(tmp_path / "nowhere.toml")
    (tmp_path / "latin").write_bytes(b'name = "\xe9"')
    with pytest.raises(ConfigError, match="not a text file in UTF-8"):
        config.load(tmp_path / "latin")
