"""The source of noise: fresh, never handed out twice, never shared by two processes."""

import os
from collections.abc import Callable

import numpy as np
import pytest
from noise import SeededNoise, ZeroNoise

from eyestream.privacy.bits import AesBits
from eyestream.privacy.laws import LaplaceLaw
from eyestream.privacy.noise import SecureNoise


def a_law() -> LaplaceLaw:
    return LaplaceLaw(np.full(4, 2.0**-20), 8, largest=2**20)


def in_a_child(draw: Callable[[], bytes]) -> bytes:
    """What `draw` gives in a forked child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, draw())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return data


@pytest.mark.parametrize("counts", [(10, 11, 12, 13, 14, 15), (10, 14), (1000, 10, 1000, 1004), (1, 2, 3, 4, 5)])
def test_every_word_is_fresh_whatever_the_counts(counts: tuple[int, ...]) -> None:
    """Also when a call asks for a few words more than the last one, no word is left over from memory."""
    bits = AesBits()
    drawn: dict[int, list[bytes]] = {}
    for _ in range(3):
        for count in counts:
            words = bits.words(count)
            assert words.shape == (count,)
            assert words.dtype == np.uint32
            for position, word in enumerate(words.tolist()):
                drawn.setdefault(position, []).append(word)
    for position, words in drawn.items():  # 32 random bits: two equal ones in at most 18 are a matter of 1e-8
        assert len(set(words)) == len(words), f"word {position} repeats"


def test_words_are_uniform() -> None:
    words = AesBits().words(2**16)
    for shift in (0, 8, 16, 24):
        counts = np.bincount((words >> shift) & 0xFF, minlength=256)
        assert ((counts - 256) ** 2 / 256).sum() < 255 + 6 * np.sqrt(2 * 255)


def test_two_sources_differ_and_renewing_breaks_the_stream() -> None:
    assert AesBits().words(8).tolist() != AesBits().words(8).tolist()
    bits = AesBits()
    era = bits.era
    bits.renew()
    assert bits.era == era + 1


def test_two_secure_noises_differ() -> None:
    law = a_law()
    assert not np.array_equal(SecureNoise().draw(law), SecureNoise().draw(law))


def test_what_was_drawn_ahead_is_handed_out_once() -> None:
    law, noise = a_law(), SecureNoise()
    noise.ahead(law)
    ready = noise._pool[law].copy()
    noise.ahead(law)  # a second request draws nothing
    np.testing.assert_array_equal(noise._pool[law], ready)
    np.testing.assert_array_equal(noise.draw(law), ready)
    assert not noise._pool
    assert not np.array_equal(noise.draw(law), ready)


def test_laws_do_not_share_what_was_drawn_ahead() -> None:
    first, second, noise = a_law(), a_law(), SecureNoise()
    noise.ahead(first)
    ready = noise._pool[first].copy()
    assert not np.array_equal(noise.draw(second), ready)
    np.testing.assert_array_equal(noise.draw(first), ready)


def test_renewing_forgets_what_was_drawn_ahead() -> None:
    law, noise = a_law(), SecureNoise()
    noise.ahead(law)
    ready = noise._pool[law].copy()
    noise.renew()
    assert not np.array_equal(noise.draw(law), ready)
    noise.ahead(law)
    ready = noise._pool[law].copy()
    noise.renew()
    noise.ahead(law)
    assert not np.array_equal(noise._pool[law], ready)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_forked_child_draws_other_noise(ahead: bool) -> None:
    law, noise = a_law(), SecureNoise()
    noise.draw(law)
    if ahead:
        noise.ahead(law)
    children = [in_a_child(lambda: noise.draw(law).tobytes()) for _ in range(2)]
    mine = noise.draw(law).tobytes()
    assert len(mine) == len(children[0]) == len(children[1]) > 0
    assert len({mine, *children}) == 3


def test_the_fork_check_sees_a_source_that_does_not_renew() -> None:
    """Negative control: a seeded generator is copied by a fork, and the check above would notice."""
    law, noise = a_law(), SeededNoise(0)
    child = in_a_child(lambda: noise.draw(law).tobytes())
    assert child == noise.draw(law).tobytes()


def test_only_the_secure_source_is_certified() -> None:
    assert SecureNoise().certified
    assert not SeededNoise(0).certified
    assert not ZeroNoise().certified
