"""The source of noise: fresh, never handed out twice, never shared by two processes."""

import os
from collections.abc import Callable

import numpy as np
import pytest

from eyestream.core.mechanism import require_real_noise
from eyestream.core.mechanisms import build
from eyestream.core.noise import Law, Noise, SecureNoise, SystemBits, is_certified
from eyestream.core.noise.laws import LaplaceLaw
from eyestream.errors import ConfigError
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise
from tests.rigs.calibrations import few_features
from tests.rigs.copies import in_a_copy, native_fork


def a_law(rows: int = 4) -> LaplaceLaw:
    """A law whose draw takes few words (1 row), or some hundreds (4)."""
    return LaplaceLaw(np.full(rows, 2.0**-20), 4, largest=2**20)


@pytest.mark.parametrize("counts", [(10, 11, 12, 13, 14, 15), (10, 14), (1000, 10, 1000, 1004), (1, 2, 3, 4, 5)])
def test_every_word_is_fresh_whatever_the_counts(counts: tuple[int, ...]) -> None:
    """Also when a call asks for a few words more than the last one, no word is left over from memory."""
    bits = SystemBits()
    drawn: dict[int, list[bytes]] = {}
    for _ in range(3):
        for count in counts:
            words = bits.words(count)
            assert words.shape == (count,)
            assert words.dtype == np.uint32
            for position, word in enumerate(words.tolist()):
                drawn.setdefault(position, []).append(word)
    for position, seen in drawn.items():  # 32 random bits: two equal ones in at most 18 are a matter of 1e-8
        assert len(set(seen)) == len(seen), f"word {position} repeats"


def test_words_are_uniform() -> None:
    words = SystemBits().words(2**16)
    for shift in (0, 8, 16, 24):
        counts = np.bincount((words >> shift) & 0xFF, minlength=256)
        assert ((counts - 256) ** 2 / 256).sum() < 255 + 6 * np.sqrt(2 * 255)


def test_a_long_draw_repeats_nothing() -> None:
    """One of more bytes than Linux gives at once, which is 2^25 - 1."""
    words = SystemBits().words(2**23 + 8)
    assert words.shape == (2**23 + 8,)
    assert not np.array_equal(words[:8], words[2**23 :])


@pytest.mark.parametrize("count", [8, 2000])
def test_two_sources_differ(count: int) -> None:
    assert not np.array_equal(SystemBits().words(count), SystemBits().words(count))


def test_two_secure_noises_differ() -> None:
    law = a_law()
    assert not np.array_equal(SecureNoise().draw(law), SecureNoise().draw(law))


@pytest.mark.parametrize("fork", [os.fork, native_fork])
@pytest.mark.parametrize("rows", [1, 4])
def test_a_copy_of_the_process_draws_other_noise(fork: Callable[[], int], rows: int) -> None:
    """Whatever is in memory when it is copied, and although nothing tells the copy that it is one."""
    law, noise = a_law(rows), SecureNoise()
    noise.draw(law)
    copies = [in_a_copy(lambda: noise.draw(law).tobytes(), fork) for _ in range(2)]
    mine = noise.draw(law).tobytes()
    assert len(mine) == len(copies[0]) == len(copies[1]) > 0
    assert len({mine, *copies}) == 3


@pytest.mark.parametrize("fork", [os.fork, native_fork])
def test_the_copy_check_sees_a_source_that_keeps_its_stream(fork: Callable[[], int]) -> None:
    """Negative control: a seeded generator is copied with the process, and the check above would notice."""
    law, noise = a_law(), SeededNoise(0)
    copy = in_a_copy(lambda: noise.draw(law).tobytes(), fork)
    assert copy == noise.draw(law).tobytes()


def test_only_the_secure_source_is_certified() -> None:
    assert is_certified(SecureNoise())
    assert not is_certified(SeededNoise(0))
    assert not is_certified(ZeroNoise())


class Claims(SeededNoise):
    """A seeded generator that says of itself what it is not."""

    certified = True
    bits = SystemBits()


class Derives(SecureNoise):
    """Takes the name of ours, and draws in its own way."""

    def draw(self, law: Law) -> np.ndarray:
        return SeededNoise(0).draw(law)


def seeded_inside() -> SecureNoise:
    noise = SecureNoise()
    noise.bits = SeededNoise(0)  # type: ignore[assignment]
    return noise


@pytest.mark.parametrize("noise", [Claims(0), Derives(), seeded_inside(), Draws(SeededNoise(0))])
def test_no_seeded_source_is_taken_for_a_secure_one(noise: Noise) -> None:
    mechanism = build(few_features(), 4.8, noise=noise)
    assert mechanism.guarantee.startswith("none: ")
    with pytest.raises(ConfigError, match="its noise comes from a test source or a seed"):
        require_real_noise([mechanism])
