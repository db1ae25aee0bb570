"""All that leaves a sidecar of asked features depends on raw rows through the released words alone."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.asked.mechanism import _Core
from eyestream.core.noise import Law
from eyestream.rim.config import PrivacySettings
from eyestream.rim.files import calibrations
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.operator_log import OperatorLog
from tests.product.service.test_operator_log import Life, Rows, people
from tests.rigs.sidecar import NO_BROKER, opened, settings_for

NAME, FEATURES = "everyday-asked-64", ["blink_rate", "mean_mean_diameter"]


class Replaced:
    """Noise that replaces every word, by the same ones in each life."""

    def __init__(self) -> None:
        self.rng, self.draws = np.random.default_rng(3), 0

    def draw(self, law: Law) -> NDArray[np.int64]:
        self.draws += 1
        return np.array([1, *self.rng.integers(0, 2, law.shape[0] - 1)])


async def outside(folder: Path, rows: Rows) -> tuple[int, dict[str, bytes], list[bytes]]:
    """How often noise was drawn, what stands retained, and the chunks without the random number of their session."""
    folder.mkdir()  # noqa: ASYNC240
    privacy, noise = PrivacySettings(calibration=NAME, epsilon=4.8, features=FEATURES), Replaced()
    settings = settings_for(NO_BROKER, folder, calibration=NAME, privacy=privacy)
    mechanism = build(calibrations.load(NAME), 4.8, noise=noise, features=FEATURES)
    with opened(settings, mechanism=mechanism) as sidecar:
        life = Life(sidecar, OperatorLog(resolved(settings), sidecar.pipeline, sidecar.left), [])
        await life.wait(await life.send(rows), 62.0)
        chunks = [re.sub(rb"session\xcf.{8}", b"", one.payload, flags=re.DOTALL) for one in sidecar.outbox._waiting]
        return noise.draws, life.told_outside, chunks


async def test_whatever_the_rows_are_the_same_words_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, other = people(200.0, 2)
    plain = await outside(tmp_path / "plain", rows)
    (meta,) = [payload for topic, payload in plain[1].items() if topic.endswith("/meta")]
    assert [name for name in calibrations.load(NAME).names if name.encode() in meta.replace(b"var_mean_", b"")] == [
        "mean_mean_diameter",
        "blink_rate",
    ]
    assert plain[0] == len(plain[2]) == 6  # the last one without a row
    lost = np.where(np.arange(len(rows))[:, None] < 128, np.nan, rows)  # the baseline
    for number, hostile in enumerate((other, lost, *(np.full_like(rows, value) for value in (np.nan, -np.inf, 1e308)))):
        assert await outside(tmp_path / f"{number}", hostile) == plain

    right = _Core.changes

    def leaking(self: _Core, clipped: Any, expected: Any) -> Any:
        self.chains.start[0] *= 1 + 1e-3 * np.tanh(np.nan_to_num(clipped).mean())
        return right(self, clipped, expected)

    monkeypatch.setattr(_Core, "changes", leaking)
    assert await outside(tmp_path / "planted", other) != await outside(tmp_path / "planted too", rows)
