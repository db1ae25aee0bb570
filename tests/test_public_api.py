"""What `import eyestream` offers, and what it does not load before it is asked for."""

import subprocess
import sys

import numpy as np
import pytest

import eyestream
from eyestream import errors


def test_every_public_name_is_there() -> None:
    for name in eyestream.__all__:
        assert getattr(eyestream, name) is not None
        assert name in dir(eyestream)
    assert len(set(eyestream.__all__)) == len(eyestream.__all__)
    assert set(eyestream.__all__) == set(eyestream._HOME)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        eyestream.Nothing  # noqa: B018


def test_three_lines_without_mqtt() -> None:
    calibration = eyestream.load_calibration("everyday-cfpa-32")
    mechanism = eyestream.CFPA(calibration, epsilon=4.8)
    chunk = np.repeat(calibration.fill[:, None], 32, axis=1)
    released = mechanism.release(chunk)
    assert released.shape == (52, 32)
    assert np.isfinite(released).all()
    assert mechanism.guarantee.startswith("4.8-differential privacy")
    assert not np.array_equal(released, mechanism.release(chunk))


def test_whole_recordings() -> None:
    mechanism = eyestream.LPA(eyestream.load_calibration("everyday-lpa-32"), epsilon=4.8)
    assert eyestream.release_rows(mechanism, np.zeros((40, 52))).shape == (40, 52)


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    modules = loaded_by("import eyestream")
    assert not modules & {"numpy", "pyfftw", "aiomqtt", "cryptography", "msgspec"}
    modules = loaded_by("import eyestream; eyestream.CFPA")
    assert "numpy" in modules
    assert not modules & {"aiomqtt", "paho", "amqtt", "rich", "cryptography", "pyfftw"}


@pytest.mark.parametrize("name", ["klt", "cfpa", "lpa"])
def test_a_mechanism_loads_no_cipher_and_no_fft(name: str) -> None:
    modules = loaded_by(
        f"import eyestream; from eyestream.core.mechanisms import build; "
        f"build(eyestream.load_calibration('everyday-{name}-64'), 9.6)"
    )
    assert not modules & {"cryptography", "pyfftw"}


def test_errors_have_one_base() -> None:
    for name in ("ConfigError", "RecordingError", "CalibrationError", "PayloadError", "LinkError"):
        assert issubclass(getattr(errors, name), eyestream.EyestreamError)
