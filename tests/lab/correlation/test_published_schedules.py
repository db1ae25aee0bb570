"""epsilon' where one chunk in so many is released: of those, and of the ones between them."""

import math

import numpy as np
import pytest

from eyestream.claims.correlation.published import session_claim
from eyestream.claims.correlation.scores import forward_bound
from tests.lab.correlation.test_published import CLASS, declared, words_attack


@pytest.mark.parametrize(("most", "first"), [(0.3, 0.74), (0.3, 0.55), (0.54, 0.74)])
def test_a_withheld_chunk_is_nearer_to_one_that_is_released_and_the_bound_allows_it(most: float, first: float) -> None:
    epsilon, distance, chunks = 4.8, 6.0, 20
    bound, further = (
        forward_bound(most, epsilon, chunks, distance, first),
        forward_bound(most, epsilon, chunks, distance),
    )
    assert further < bound <= chunks * epsilon
    attained = max(
        words_attack(most, epsilon, high * first ** np.minimum(1, np.arange(chunks)) * most ** np.arange(chunks), first)
        for high in (1.0, 2.0, 3.0)
    )
    assert bound / 3 < attained <= bound
    assert 0.9 * further < forward_bound(most, epsilon, chunks, distance, most) < 1.2 * further


def test_where_released_chunks_know_nothing_of_each_other_the_nearest_still_knows_of_a_withheld_one() -> None:
    """a is so small that it is no number any more: of the chunks on a side one alone is near."""
    epsilon, distance = 4.8, 6.0
    assert forward_bound(0.0, epsilon, 20, distance) == forward_bound(0.0, epsilon, 20, distance, 0.0) == 0.0
    assert forward_bound(0.0, epsilon, 0, distance, 0.74) == 0.0
    attained = words_attack(0.0, epsilon, np.array([0.74 * 3.0, 0.0, 0.0]), 0.74)
    bound = forward_bound(0.0, epsilon, 20, distance, 0.74)
    assert 0 < attained <= bound == epsilon
    assert forward_bound(1e-300, epsilon, 20, distance, 0.74) <= bound


def test_every_chunk_of_a_schedule_is_claimed_those_between_too() -> None:
    """Sums over the released chunks at every place of the secret; what lies between two may be told more of."""
    step = -math.log(0.9) * 60.0
    for name, factor in (("cfpa", 1.0), ("lpa", 2.0)):
        mechanism = declared(name)
        for every in (1, 2, 5):
            claim = session_claim(mechanism, CLASS, step, chunks=12, touched=1, every=every)
            assert claim.second == (claim.chunk if every == 1 else None)
            coupled = [
                4.8 * sum(1.0 if at == secret else min(1.0, factor * 0.9 ** abs(at - secret)) for at in released)
                for released in [range(0, 12 * every, every)]
                for secret in range(12 * every)
            ]
            assert max(coupled) * (1 - 1e-6) <= claim.chunk
            assert claim.chunk <= 1.35 * max(coupled), "blocks of places, and both ends of a session, make it larger"
            assert claim.plain == pytest.approx(12 * 4.8)


@pytest.mark.parametrize("name", ["cfpa", "lpa"])
def test_files_of_one_session_tell_no_more_than_is_claimed(name: str) -> None:
    """A session that is cut at any rows, and read one file after the other: the coupled losses, row by row."""
    mechanism, rng, factor, n = declared(name), np.random.default_rng(1), {"cfpa": 1.0, "lpa": 2.0}[name], 8
    step, beyond_uncut = -math.log(0.9) * 60.0, 0
    for _ in range(200):
        every, lengths = int(rng.choice([1, 1, 3])), rng.integers(1, 60, size=rng.integers(1, 6)).tolist()
        begins = np.cumsum([0, *lengths])[:-1]
        released = [b + k for b, m in zip(begins, lengths, strict=True) for k in range(0, m, n * every)]
        secrets = [b + k for b, m in zip(begins, lengths, strict=True) for k in range(0, m, n)]
        away = np.abs(np.array(secrets)[:, None] - np.array(released)) / n
        told = 4.8 * np.where(away == 0, 1.0, np.minimum(1.0, factor * 0.9**away)).sum(axis=1).max()
        cuts = min(sum(m % (n * every) > 0 for m in lengths), len(lengths) - 1)
        claims = [
            session_claim(mechanism, CLASS, step, chunks=len(released), touched=1, every=every, cuts=c)
            for c in (cuts, 0)
        ]
        assert told <= claims[0].chunk * (1 + 1e-9)
        assert claims[0].second is None or cuts == 0
        beyond_uncut += told > claims[1].chunk * (1 + 1e-9)
    assert beyond_uncut > 20, "without the cuts too little would be claimed"


def test_a_cut_costs_klt_no_more_than_its_epsilon() -> None:
    whole = session_claim(declared("klt"), CLASS, 32.0, chunks=40, touched=None)
    cut = session_claim(declared("klt"), CLASS, 32.0, chunks=40, touched=None, cuts=3)
    assert cut.chunk == pytest.approx(min(whole.plain, whole.chunk + 3 * 4.8))
