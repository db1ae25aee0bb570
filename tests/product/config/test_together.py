"""All mistakes of a configuration are said together, a line each, with what was found and what was expected."""

from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError, OperatorError
from eyestream.rim import config
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.plan import load
from eyestream.rim.plan.summary import summary
from eyestream_lab.files.inspection import profile_text

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = (ROOT / "config" / "sidecar.toml").read_text()

TEN = [
    ("schema = 1", "schema = -1", "[[stream]] 'features' schema: expected a whole number, 0 to 4294967295, found -1"),
    ("rate_hz = 2.0", 'rate_hz = "2"', "[[stream]] 'features' rate_hz: expected a number above 0, found \"2\""),
    ("grace_s = 1.0", "grace = 1.0", "[[stream]] 'features' grace: unknown key; did you mean grace_s?"),
    ('"on_row"', '"on_raw"', 'found "on_raw"; did you mean on_row?'),
    ("epsilon = 4.8", "epsilom = 4.8", "[stream.privacy] 'features' epsilom: unknown key; did you mean epsilon?"),
    ("[budget]", "[bugdet]", "[bugdet]: unknown key; did you mean budget?"),
    ('url = "mqtt', 'urls = "mqtt', "[private] urls: unknown key; did you mean url?"),
    ('ledger = "ledger"', "ledger = 7", "[sidecar] ledger: expected a path, found 7"),
    ('id = "hmd-4f1c07a9d2"', 'id = "a b"', "[[device]] 'a b' id: expected 1 to 64 of"),
    ("[[device]]", "[limits]\nraw_messages = 0\n[[device]]", "[limits] raw_messages: expected a whole number, 1 to"),
]


def written(folder: Path, *pairs: tuple[str, str]) -> Path:
    text = EXAMPLE
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = folder / "sidecar.toml"
    path.write_text(text)
    return path


def lines_of(path: Path) -> list[str]:
    with pytest.raises(OperatorError) as caught:
        load(path)
    return str(caught.value).splitlines()


def test_ten_mistakes_are_ten_lines(tmp_path: Path) -> None:
    path = written(tmp_path, *((old, new) for old, new, _ in TEN))
    lines = lines_of(path)
    assert len(lines) == 10
    assert all(line.startswith(f"{path}: ") for line in lines)
    for *_, said in TEN:
        assert sum(said in line for line in lines) == 1, said
    with pytest.raises(ConfigError, match="epsilom"):
        config.load(path)


def test_mistakes_in_tables_and_in_what_they_name_are_said_together(tmp_path: Path) -> None:
    """Also where another table has one: a stream that can be read is looked at as a whole."""
    second = '[[stream]]\nname = "two"\n[stream.privacy]\ncalibration = "everyday-klt-46"\nepsilon = 1\n[budget]'
    path = written(
        tmp_path,
        ("rate_hz = 2.0", "rate_hz = 20.0"),
        ("idle_s = 60.0", "idle_s = 20.0"),
        ("window_s = 30.0", "window_s = 3.0"),
        ('"rate_fixations", "rate_saccades"', '"rate_saccades", "rate_fixations"'),
        ("[budget]", second),
        ("[[device]]", "[limits]\nraw_message = 3\n[[device]]"),
    )
    lines = lines_of(path)
    for said in (
        "[limits] raw_message: unknown key; did you mean raw_messages?",
        "stream 'features': feature 0 is 'rate_saccades' in the stream and 'rate_fixations' in the calibration",
        "stream 'features': the stream has 20 rows a second, the calibration 2",
        "stream 'two': everyday-klt-46: no such file",
        "did you mean everyday-klt-64?",
    ):
        assert any(said in line for line in lines), said
    assert len(lines) == 4


def test_mistakes_that_only_what_is_named_shows_are_said_with_those_of_tables(tmp_path: Path) -> None:
    """A stream with a mistake has its calibration looked up all the same, and each address is read with the tables."""
    path = written(
        tmp_path,
        ("schema = 1", "schema = -1"),
        ('"on_row"', '"on_raw"'),
        ("epsilon = 4.8", "epsilom = 4.8"),
        ("everyday-klt-anchored-64", "everyday-klt-ancored-64"),
        ('url = "mqtt://', 'url = "http://'),
        ('id = "hmd-4f1c07a9d2"', 'id = "a b"'),
        ("[[device]]", '[raw]\nurl = "mqtt://localhost:99999"\n[limits]\nraw_messages = 0\n[[device]]'),
    )
    lines = lines_of(path)
    for said in (
        "[private] url: http://localhost:1883: expected mqtt://host[:port], mqtts://host[:port] or unix:///path",
        "[raw] url: mqtt://localhost:99999: expected a port between 1 and 65535",
        "[stream.privacy] 'features' calibration: everyday-klt-ancored-64: no such file, and none of the shipped",
        "did you mean everyday-klt-anchored-64?",
    ):
        assert any(said in line for line in lines), said
    assert len(lines) == 8


def test_check_names_what_guarantee_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device = '[[device]]\nid = "hmd-4f1c07a9d2"\n[[device]]'
    path = written(tmp_path, ("day_epsilon = 2304.0", "day_epsilon = 2"), ("[[device]]", device))
    said = []
    for command in ("guarantee", "check"):
        with pytest.raises(SystemExit):
            main([command, "--config", str(path)])
        said.append(capsys.readouterr().err.replace(f"eyestream {command}: ", ""))
    assert said[0] == said[1]
    assert "found 'hmd-4f1c07a9d2' again" in said[0]
    assert "[budget] day_epsilon: expected at least" in said[0]


def test_every_ceiling_that_is_too_low_is_said(tmp_path: Path) -> None:
    """Beside a stream that cannot be built, too, of whose ceilings nobody knows whether they are."""
    low = ("window_epsilon = 9.6", "window_epsilon = 1"), ("day_epsilon = 2304.0", "day_epsilon = 2")
    said = ["[budget] window_epsilon", "[budget] day_epsilon"]
    assert [line.split(": ")[1] for line in lines_of(written(tmp_path, *low))] == said
    second = '[[stream]]\nname = "two"\n[stream.privacy]\ncalibration = "everyday-klt-46"\nepsilon = 1\n'
    path = written(tmp_path, *low, ("[budget]", second + "[stream.budget]\nday_epsilon = 0.5\n[budget]"))
    assert [line.split(": ")[1] for line in lines_of(path)] == ["stream 'two'", *said]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("everyday-klt-anchored-64", "everyday-klt-ancored-64", "did you mean everyday-klt-anchored-64?"),
        ("epsilon = 4.8", "epsilon = -4.8", "epsilon: expected a number above 0, found -4.8"),
        ("epsilon = 4.8", "epsilon = 1e-13", "epsilon"),
        ("rate_hz = 2.0", "rate_hz = 20.0", "stream 'features': the stream has 20 rows a second, the calibration 2"),
        ('"rate_fixations", "rate_saccades"', '"rate_saccades", "rate_fixations"', "stream 'features': feature 0 is"),
        (', "wb4_var"', "", "features, the calibration 52"),
        ("window_s = 30.0", "window_s = 3.0", "stream 'features': [[stream]] window_s: a row of these features"),
        ("idle_s = 60.0", "idle_s = 6.0", "stream 'features': [[stream]] idle_s = 6: expected at least 30"),
        ("session_epsilon = 1152.0", "session_epsilon = 1.0", "[budget] session_epsilon: expected at least the"),
        ("# mechanism = ", "mechanism = ", "stream 'features': [stream.privacy] mechanism: there is no"),
        ("# correlation = ", "correlation = ", "[stream.privacy] correlation: leave it out for a calibration with"),
        ("# k = 1", "k = 1", "stream 'features': klt has no option k; it takes "),
        ("# k = 1", 'options.focus = "x"', 'klt: option focus: expected a list of names, found "x"'),
        ("# k = 1", "features = []\noptions.features = []", "features: it stands in [stream.privacy] already; take"),
    ],
)
def test_a_mistake_in_what_a_stream_names_has_file_and_stream(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = written(tmp_path, (old, new))
    with pytest.raises(OperatorError) as caught:
        _ = load(path).metas
    assert said in str(caught.value)


SOURCES = [
    ('kind = "neo"', "[[source]] kind: 'neo' is none of core, lsl, mqtt, neon, recording"),
    ('kind = "neon"\nprofile = "neo"', "profile 'neo': not one of"),
    ('kind = "neon"\n[source.options]\nhots = "x"', "[source.options] hots: unknown key; did you mean host?"),
    ('kind = "mqtt"', "rate_hz: missing"),
    ('kind = "neon"\ndevice = "hmd"', "[[source]] device, stream: expected a device of the file"),
    ('kind = "mqtt"\nrate_hz = 200.0\nprofile = "./mine.toml"', "onset: unknown key"),
]


@pytest.mark.parametrize(("lines", "said"), SOURCES)
def test_a_mistake_in_a_source_is_one_line(tmp_path: Path, lines: str, said: str) -> None:
    text = profile_text(load_profile("mqtt")).replace("onset_deg_per_s", "onset", 1)
    (tmp_path / "mine.toml").write_text(text)
    path = written(tmp_path, ("[[device]]", f"[source]\n{lines}\n[[device]]"))
    with pytest.raises(OperatorError) as caught:
        load(path).sources()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    for word in ("Object", "$", "`", "got str"):
        assert word not in str(caught.value).replace(str(path), "")


def test_a_login_is_read_the_same_way(tmp_path: Path) -> None:
    (login := tmp_path / "tracker.toml").write_text('usernam = "a"\npassword_file = 3\n')
    with pytest.raises(ConfigError) as caught:
        config.load_login(login)
    assert str(caught.value).splitlines() == [
        f"{login}: usernam: unknown key; did you mean username?",
        f"{login}: password_file: expected a path, found 3",
    ]


def test_the_command_line_says_all_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, ("schema = 1", "schema = -1"), ("[budget]", "[bugdet]"))
    with pytest.raises(SystemExit) as ended:
        main(["guarantee", "--config", str(path)])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "schema: expected a whole number" in said
    assert "[bugdet]: unknown key" in said
    assert len(said.splitlines()) == 2


def test_an_epsilon_that_takes_years_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the budget for every mechanism; of the noise for one that adds it. A usable epsilon says nothing."""
    assert load(written(tmp_path)).streams["features"].warnings == ()
    tiny = load(written(tmp_path, ("epsilon = 4.8", "epsilon = 0.0001"))).streams["features"].warnings
    assert [line.partition(" lasts ")[0].rpartition(" ")[2] for line in tiny] == ["session", "day"]
    cfpa = ("everyday-klt-anchored-64", "everyday-cfpa-64")
    assert load(written(tmp_path, cfpa)).streams["features"].warnings == ()
    path = written(tmp_path, cfpa, ("epsilon = 4.8", "epsilon = 0.001"))
    assert "of chunks must be averaged" in load(path).streams["features"].warnings[-1]
    capsys.readouterr()
    main(["guarantee", "--config", str(path)])
    assert capsys.readouterr().err.count("eyestream guarantee: warning: features: epsilon 0.001 of a chunk") == 3


def test_an_epsilon_that_hardly_protects_is_a_warning(tmp_path: Path) -> None:
    """From where its bound on the odds says next to nothing; it may be what somebody wants, so it is not refused."""
    window = ("window_epsilon = 9.6", "window_epsilon = 96.0")
    for epsilon, said in (("10.0", 0), ("10.1", 1), ("48.0", 1)):
        path = written(tmp_path, ("epsilon = 4.8", f"epsilon = {epsilon}"), window)
        warnings = load(path).streams["features"].warnings
        assert [line.startswith(f"epsilon {float(epsilon):g} of a chunk hardly protects") for line in warnings] == [
            True
        ] * said
    assert "factor of e^48. At epsilon 10 the factor is e^10 = 22,026 already" in warnings[0]


def test_a_source_that_names_its_stream_and_its_streams_is_refused(tmp_path: Path) -> None:
    both = '[[source]]\nkind = "mqtt"\nrate_hz = 200.0\nstream = "features"\nstreams = ["features"]\n[[device]]'
    assert lines_of(written(tmp_path, ("[[device]]", both))) == [
        f"{tmp_path}/sidecar.toml: [[source]]: expected stream or streams, found both"
    ]
    one = both.replace('stream = "features"\n', "")
    assert load(written(tmp_path, ("[[device]]", one))).settings.source[0].served == ("features",)


def asking(folder: Path, features: str, source: str = "") -> Path:
    calibration = 'calibration = "everyday-klt-anchored-64"'
    pair = calibration, f'calibration = "everyday-asked-64"\nfeatures = {features}'
    path = written(folder, pair)
    path.write_text(path.read_text() + source)
    return path


def test_asked_features_are_what_meta_has(tmp_path: Path) -> None:
    (stream,) = load(asking(tmp_path, '["blink_rate", "mean_mean_diameter"]')).streams.values()
    assert stream.mechanism.schema.names == ("blink_rate", "mean_mean_diameter")
    claim = stream.guarantee.claim()
    assert claim["features"] == ["blink_rate", "mean_mean_diameter"]
    assert claim["baseline_chunks"] == 2
    assert stream.guarantee.text().count("No other feature is released") == 1
    assert dict(summary(stream))["levels"].startswith("not released")
    assert "study" not in dict(summary(stream))["signal"]


@pytest.mark.parametrize(
    ("features", "source", "said"),
    [
        ('["blink_rat"]', "", "not 'blink_rat'; did you mean blink_rate?"),
        ("[]", "", "none is given"),
        ("[1]", "", "features[0]: expected a text, found 1"),
        (
            '["mean_mean_diameter"]',
            '[source]\nkind = "mqtt"\nprofile = "gazebasevr"\n',
            "features: mean_mean_diameter cannot be measured: profile gazebasevr has no pupils",
        ),
    ],
)
def test_features_that_cannot_be_asked_for_are_one_line(features: str, source: str, said: str, tmp_path: Path) -> None:
    (line,) = lines_of(asking(tmp_path, features, source))
    assert said in line
