"""Counterexamples of docs/errata.md, part A: composition, Fourier and difference mechanisms (Bozkir et al.).

Every test shows two things on one instance: what the printed form would have to satisfy, and does not; and that the
corrected form satisfies it.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.lab.errata.exact import dft4, distance_1, energy, inverse4, kept_reals, log_odds, worst_odds

EPSILON = Fraction(1)


def test_a1_noise_on_real_parts_leaves_the_imaginary_parts_readable() -> None:
    up, down = (0, 1, 0, -1), (0, -1, 0, 1)
    assert [f[0] for f in dft4(up)] == [f[0] for f in dft4(down)]
    noises = [Fraction(z, 7) for z in range(-50, 51)]

    def printed(chunk):
        return {(real + z, imaginary) for z in noises for real, imaginary in [dft4(chunk)[1]]}

    assert printed(up).isdisjoint(printed(down))  # one look decides: no epsilon is large enough

    scale = 8 / EPSILON  # sqrt(n) sqrt(k) Delta_2 / epsilon = 2 sqrt(2) sqrt(8) / epsilon
    outputs = itertools.product((-9, -2, 0, 3, 9), repeat=3)
    assert max(log_odds(o, kept_reals(up, 2), kept_reals(down, 2), scale) for o in outputs) <= EPSILON


def test_a1_noise_on_magnitudes_leaves_the_phases_readable() -> None:
    early, late = (1, 0, 0, 0), (0, 1, 0, 0)
    noises = [Fraction(z, 7) for z in range(-50, 51) if z != -7]  # magnitude 0 has no phase: an event of probability 0

    def printed(chunk):
        real, imaginary = dft4(chunk)[1]
        assert real * real + imaginary * imaginary == 1  # magnitude 1, so that the coefficient is its own phase
        return {((1 + z) * real, (1 + z) * imaginary) for z in noises}

    assert printed(early).isdisjoint(printed(late))

    scale = 4 / EPSILON  # 2 sqrt(2) sqrt(2) / epsilon
    outputs = itertools.product((-9, -1, 0, 1, 9), repeat=3)
    assert max(log_odds(o, kept_reals(early, 2), kept_reals(late, 2), scale) for o in outputs) <= EPSILON


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a1_the_scale_is_right_for_the_real_form_and_tight(k: int) -> None:
    slack = []
    for change in itertools.product(range(-3, 4), repeat=4):
        moved = distance_1(kept_reals(change, k), [0] * len(kept_reals(change, k)))
        slack.append(4 * k * energy(change) - moved * moved)  # n k Delta_2^2 - L1^2
    assert min(slack) == 0
    attained = {1: (1, 1, 1, 1), 2: (1, 0, 0, 1), 3: (3, -1, 1, 1)}[k]
    moved = distance_1(kept_reals(attained, k), [0] * len(kept_reals(attained, k)))
    assert moved**2 == 4 * k * energy(attained)
    assert moved**2 > 4 * (k - Fraction(1, 100)) * energy(attained)  # a scale that is 0.5 % smaller is too small


@pytest.mark.parametrize(("n", "k"), [(8, 5), (32, 1), (32, 9), (32, 17), (33, 17)])
def test_a1_every_sign_pattern_attains_the_scale(n: int, k: int) -> None:
    angles = 2 * np.pi * np.outer(np.arange(k), np.arange(n)) / n
    rows = np.concatenate([np.cos(angles), np.sin(angles)])
    rows = rows[(rows**2).sum(axis=1) > 1e-9]  # the sines of 0 and of the Nyquist frequency
    signs = np.random.default_rng(1).choice((-1.0, 1.0), (20, len(rows)))
    largest_l1 = np.linalg.norm(signs @ rows, axis=1)  # over chunks of norm 1, with coefficients of these signs
    np.testing.assert_allclose(largest_l1, math.sqrt(n * k), rtol=1e-12)


@pytest.mark.parametrize("k", [1, 5, 16])
def test_a1_complex_signals_need_twice_as_many_reals(k: int) -> None:
    n = 16
    rows = np.exp(-2j * np.pi * np.outer(np.arange(k), np.arange(n)) / n)
    change = (1 + 1j) * rows.conj().sum(axis=0)  # every kept coefficient has equal real and imaginary parts
    spectrum = rows @ change
    moved = np.abs(spectrum.real).sum() + np.abs(spectrum.imag).sum()
    assert moved == pytest.approx(math.sqrt(n * 2 * k) * np.linalg.norm(change))
    assert moved > 1.4 * math.sqrt(n * k) * np.linalg.norm(change)


def test_a2_the_scale_without_root_n_spends_root_n_times_epsilon() -> None:
    root_n, k = 4, 1
    n = root_n**2
    assert k <= root_n  # the preprint's condition
    zero, ones = [0] * n, [1] * n
    delta_2 = root_n  # norm of the difference
    first = [[sum(zero)], [sum(ones)]]  # F_0 of both
    output = first[1]
    assert log_odds(output, first[1], first[0], delta_2 / EPSILON) == root_n * EPSILON
    assert log_odds(output, first[1], first[0], root_n * delta_2 / EPSILON) == EPSILON


@pytest.mark.parametrize("k", range(1, 10))
def test_a2_so_it_does_for_every_k(k: int) -> None:
    n, epsilon = 16, 1.0
    angles = 2 * np.pi * np.outer(np.arange(k), np.arange(n)) / n
    rows = np.concatenate([np.cos(angles), np.sin(angles)])
    change = np.where((rows**2).sum(axis=1) > 1e-9, 1.0, 0.0) @ rows  # the reals of this chunk attain A1
    moved, delta_2 = np.abs(rows @ change).sum(), np.linalg.norm(change)
    assert moved / (math.sqrt(k) * delta_2 / epsilon) == pytest.approx(math.sqrt(n) * epsilon)
    assert moved / (math.sqrt(n * k) * delta_2 / epsilon) == pytest.approx(epsilon)


def test_a2_root_n_is_not_missing_for_the_orthonormal_transform() -> None:
    ones = [1, 1, 1, 1]
    orthonormal = [Fraction(v, 2) for v in kept_reals(ones, 1)]  # divided by sqrt(n)
    assert log_odds(orthonormal, orthonormal, [0], 2 / EPSILON) == EPSILON  # scale sqrt(k) Delta_2 / epsilon


def test_a3_noise_on_the_mirrored_half_needs_a_larger_scale() -> None:
    n, k = 4, 4
    chunk = (2, -1, 0, 1)
    spectrum = [part for pair in dft4(chunk) for part in pair]
    moved = distance_1(spectrum, [0] * 8)
    assert moved**2 > n * k * energy(chunk)  # printed: L1 <= sqrt(n k) Delta_2
    assert moved**2 == n * (3 * k - n - 2) * energy(chunk)  # corrected, and attained
    for change in itertools.product(range(-2, 3), repeat=4):
        every = [part for pair in dft4(change) for part in pair]
        assert distance_1(every, [0] * 8) ** 2 <= n * (3 * k - n - 2) * energy(change)
    half = distance_1(kept_reals(chunk, 3), [0] * 4)
    assert half**2 <= n * 3 * energy(chunk)  # one-sided with n/2 + 1 coefficients: nothing is lost, the scale is right
    assert math.isclose(math.sqrt(Fraction(3 * 32 - 32 - 2, 32)), 1.392, abs_tol=5e-4)  # the factor at k = n = 32


@pytest.mark.parametrize("k", [17, 18, 25, 32])
def test_a3_the_larger_scale_is_right_for_every_k_and_attained(k: int) -> None:
    n = 32
    angles = 2 * np.pi * np.outer(np.arange(k), np.arange(n)) / n
    rows = np.concatenate([np.cos(angles), np.sin(angles)])
    worst = math.sqrt(n * (3 * k - n - 2))
    alike = np.ones(2 * k)
    alike[k + n // 2 :] = -1.0  # the imaginary part of a mirrored coefficient has the other sign
    assert np.linalg.norm(alike @ rows) == pytest.approx(worst)
    signs = np.random.default_rng(3).choice((-1.0, 1.0), (500, 2 * k))
    assert np.linalg.norm(signs @ rows, axis=1).max() <= worst * (1 + 1e-12)
    assert (worst > math.sqrt(n * k) * (1 + 1e-12)) == (k > n // 2 + 1)


def test_a4_padding_one_side_of_the_spectrum_halves_every_oscillation() -> None:
    chunk = (3, 1, -1, 1)  # 1 + 2 cos
    kept = [*dft4(chunk)[:2], (0, 0), (0, 0)]  # k = 2 coefficients, zeros behind them
    printed = [real for real, _ in inverse4(kept)]
    assert printed == [2, 1, 0, 1]  # 1 + cos: without any noise, half of the oscillation is gone
    spectrum = dft4(chunk)
    mirrored = [spectrum[0], spectrum[1], (0, 0), (spectrum[1][0], -spectrum[1][1])]
    assert inverse4(mirrored) == [(v, 0) for v in chunk]


def differences(x):
    return [x[0], *(b - a for a, b in itertools.pairwise(x))]


def test_a5_a_sum_of_two_differences_is_no_inverse() -> None:
    chunk = [5, 5, 7, 7, 4]
    steps = differences(chunk)
    printed = [steps[0], *(a + b for a, b in itertools.pairwise(steps))]
    assert printed == [5, 5, 2, 2, -3]
    assert printed[2:] == [chunk[t] - chunk[t - 2] for t in range(2, 5)]  # what it computes: x_t - x_(t-2)
    assert list(itertools.accumulate(steps)) == chunk
    for every in itertools.product((-1, 0, 2), repeat=4):
        assert list(itertools.accumulate(differences(every))) == list(every)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_a6_differences_need_their_own_sensitivity_and_no_independence(n: int) -> None:
    reach = 1  # values of two chunks differ by at most R = 1
    moved = [energy(differences(change)) for change in itertools.product((-reach, 0, reach), repeat=n)]
    assert max(moved) == (4 * n - 3) * reach**2
    assert max(moved) > n * reach**2  # the sensitivity of the chunk itself would be too small
    zigzag = [(-1) ** t for t in range(n)]  # every step is fixed by the one before: as dependent as can be
    assert energy(differences(zigzag)) == 4 * n - 3


def test_a6_dependent_differences_released_together_cost_epsilon() -> None:
    zero, zigzag = [0] * 4, [1, -1, 1, -1]
    steps = differences(zigzag)
    assert steps == [1, -2, 2, -2]
    square = 4 * 3 * energy(steps)  # n k Delta_2^2
    moved = distance_1(kept_reals(steps, 3), kept_reals(zero, 3))
    assert moved**2 <= square
    half_steps = 4 * 3 * energy(zigzag)
    assert moved**2 > half_steps  # with the sensitivity of the chunk in place of that of its differences


def test_a7_a_scale_read_from_the_data_tells_the_data() -> None:
    published = Fraction(0)  # the participant who is released, the same in both data sets

    def scale(values):
        return (max(values) - min(values)) / EPSILON

    near, far = [Fraction(0), Fraction(1)], [Fraction(0), Fraction(3)]  # the other participant is replaced
    for distance in (10, 100, 1000):
        output = published + distance
        # log densities are -log(2 scale) - |output| / scale; log 3 < 2
        at_least = Fraction(distance) / scale(near) - Fraction(distance) / scale(far) - 2
        assert at_least > (distance / 2 - 2) * EPSILON  # printed: the odds grow with the output, without end
        declared = [log_odds([output], [published], [other], 3 / EPSILON) for other in (-3, 0, 3)]
        assert max(declared) <= EPSILON  # declared range [0, 3], known before the data


def test_a7_the_next_person_may_lie_outside_the_corpus() -> None:
    corpus = [Fraction(2), Fraction(3)]
    newcomer, anyone = Fraction(12), Fraction(2)
    scale = (max(corpus) - min(corpus)) / EPSILON
    assert log_odds([newcomer], [newcomer], [anyone], scale) == 10 * EPSILON
    rising = [(Fraction(0), Fraction(5))] * 2  # two people, two chunks of one value: alike at each index
    same_index = max(
        abs(a - b) for one, other in itertools.combinations(rising, 2) for a, b in zip(one, other, strict=True)
    )
    assert same_index == 0  # and yet the first chunk and the second differ by 5: no noise at all
    low, high = min(corpus), max(corpus)
    projected = min(max(newcomer, low), high)
    assert log_odds([newcomer], [projected], [anyone], scale) <= EPSILON


def expected_error(chunk, k, delta_square, epsilon):
    """Expected squared error of FPA on four samples: what is cut plus the noise, by Parseval."""
    mean = Fraction(sum(chunk), 4)
    sharp = Fraction(sum(v * (-1) ** t for t, v in enumerate(chunk)), 4)
    cut = {1: energy([v - mean for v in chunk]), 2: 4 * sharp**2, 3: Fraction(0)}[k]
    noise = {1: 2, 2: 20, 3: 36}[k]  # 2k(4k - 3), and (n + 2)(2n - 2) with the Nyquist term
    return cut + noise * delta_square / epsilon**2


def test_a8_a_k_read_from_the_data_tells_the_data() -> None:
    flat, sharp = (50, 50, 50, 50), (100, 0, 100, 0)  # the same mean, so the same denominator of the NMSE
    delta_square, epsilon = 4 * 100**2, 20

    def chosen(chunk):
        return min((1, 2, 3), key=lambda k: expected_error(chunk, k, delta_square, epsilon))

    assert (chosen(flat), chosen(sharp)) == (1, 3)
    # k = 1 releases four equal values with probability one, k = 3 with probability zero: one look decides.
    rng = np.random.default_rng(2)

    def released(chunk, k):
        scale = math.sqrt(4 * k * delta_square) / epsilon
        reals = np.array(kept_reals(chunk, k)) + rng.laplace(0, scale, (1, 3, 4)[k - 1])
        spectrum = np.zeros(3, dtype=complex)
        spectrum[0] = reals[0]
        if k > 1:
            spectrum[1] = reals[1] + 1j * reals[2]
        if k > 2:
            spectrum[2] = reals[3]
        return np.fft.irfft(spectrum, 4)

    for _ in range(200):
        assert np.ptp(released(flat, chosen(flat))) == pytest.approx(0)
        assert np.ptp(released(sharp, chosen(sharp))) > 1e-6
    for k in (1, 2, 3):  # a public k: the loss is that of the scale
        moved = distance_1(kept_reals(flat, k), kept_reals(sharp, k))
        assert moved**2 <= 4 * k * delta_square


HONEST = Fraction(3, 4)  # a coin that tells the truth with 3/4: e^epsilon = 3


def answers(chunks, truth=HONEST):
    """Law of the joint release of binary chunks, each through the same response."""
    law = {}
    for output in itertools.product((0, 1), repeat=len(chunks)):
        law[output] = math.prod(truth if o == c else 1 - truth for o, c in zip(output, chunks, strict=True))
    return law


@pytest.mark.parametrize("chunks", [1, 2, 6])
def test_a9_one_person_gives_all_the_chunks(chunks: int) -> None:
    calm, nervous = [0] * chunks, [1] * chunks
    person = worst_odds(answers(calm), answers(nervous))
    assert person == 3**chunks  # the sum of the epsilons, attained
    assert (person <= 3) == (chunks == 1)  # "the largest of the epsilons" holds for one chunk only
    one_changed = [1, *calm[1:]]
    assert worst_odds(answers(calm), answers(one_changed)) == 3  # and for the unit "one chunk"


def test_a9_correlated_chunks_tell_one_another() -> None:
    """Even the odds of *one* chunk move by more than e^epsilon, when the next chunk repeats it."""
    prior, length = Fraction(1, 2), 4
    always_zero = tuple([0] * length)
    zero, one = answers([0] * length)[always_zero], answers([1] * length)[always_zero]
    posterior = prior * zero / (prior * zero + prior * one)
    assert posterior / (1 - posterior) == 3**length
    rests = list(itertools.product((0, 1), repeat=length - 1))
    likelihood = [sum(answers([bit, *rest])[always_zero] for rest in rests) / len(rests) for bit in (0, 1)]
    assert likelihood[0] / likelihood[1] == 3  # independent chunks: e^epsilon


@pytest.mark.parametrize(("n", "touched"), [(32, 3), (64, 2), (128, 2)])
def test_a10_a_blink_enters_more_than_one_chunk(n: int, touched: int) -> None:
    rows = 60  # windows of 30 s, a row each half second
    chunks = [len({row // n for row in range(start, start + rows)}) for start in range(n)]
    assert max(chunks) == touched == math.ceil((rows - 1) / n) + 1
    assert worst_odds(answers([0] * touched), answers([1] * touched)) == 3**touched > 3


def nmse(x, released):
    n = len(x)
    return Fraction(energy([a - b for a, b in zip(x, released, strict=True)]), n) / (
        Fraction(sum(x), n) * Fraction(sum(released), n)
    )


def test_a11_nmse_may_be_negative_infinite_or_blind_to_growing_errors() -> None:
    x = [1, 3]
    shifted = {c: [v + c for v in x] for c in (1, -4, 10, 1000)}
    assert nmse(x, shifted[-4]) < 0
    with pytest.raises(ZeroDivisionError):
        nmse(x, [v - 2 for v in x])  # an error of two at every sample, and no number for it
    squares = energy([1000, 1000]) / energy([10, 10])
    assert squares == 10_000
    assert nmse(x, shifted[1000]) / nmse(x, shifted[10]) < 120  # a bias grows into its own denominator
    centigrade, kelvin = [1, 3], [274, 276]
    assert nmse(centigrade, [2, 4]) != nmse(kelvin, [275, 277])  # and the origin of the unit decides

    def over_variance(x, released):
        mean = Fraction(sum(x), len(x))
        return Fraction(energy([a - b for a, b in zip(x, released, strict=True)])) / energy([v - mean for v in x])

    assert over_variance(x, shifted[1000]) / over_variance(x, shifted[10]) == squares
    assert over_variance(centigrade, [2, 4]) == over_variance(kelvin, [275, 277]) > 0


def test_a12_halves_of_one_release_share_its_noise() -> None:
    signal = (1, 3, 2, 2)  # of both people

    def release(noise):
        real, imaginary = dft4(signal)[0]
        return [value for value, _ in inverse4([(real + noise, imaginary), (0, 0), (0, 0), (0, 0)])]

    def named(known, piece):
        """The person whose first half is nearest; of equal ones both, by halves."""
        apart = [abs(sum(own[:2]) - sum(piece)) for own in known]
        return [Fraction(d == min(apart), apart.count(min(apart))) for d in apart]

    noises = [Fraction(z, 3) for z in range(-6, 7)]
    pairs = [(a, b) for a in noises for b in noises if a != b]
    for a, b in pairs:
        known = [release(a), release(b)]
        assert [named(known, own[2:])[person] for person, own in enumerate(known)] == [1, 1]
    right = [
        named([release(a), release(b)], release(c)[2:])[person] for a, b in pairs for c in noises for person in (0, 1)
    ]
    assert sum(right, Fraction(0)) / len(right) == Fraction(1, 2)  # anew, whatever the noises are
