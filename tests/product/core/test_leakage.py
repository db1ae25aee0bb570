"""Maximal leakage against exhaustive guessing: every rule on small channels, exact probabilities."""

import itertools
import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from eyestream.core.additive.leakage import ball_gain, laplace_gain
from eyestream.core.leakage import composed_gain, leakage, response_gain
from eyestream.core.noise.response import ResponseLaw

Channel = list[list[Fraction]]  # channel[x][y] = P(y | x)
ROUNDING = Fraction(1, 10**35)


def response(threshold: int, bits: int) -> Channel:
    rho, words = Fraction(threshold, 2**128), 2**bits
    return [[(1 - rho) * (x == y) + rho / words for y in range(words)] for x in range(words)]


def closed_form(channel: Channel) -> Fraction:
    return sum((max(column) for column in zip(*channel, strict=True)), start=Fraction(0))


def random_law(source: random.Random, size: int) -> list[Fraction]:
    weights = [source.choice((0, 1, 1, 2, 7, 40)) for _ in range(size - 1)]
    weights.append(1)
    source.shuffle(weights)
    return [Fraction(w, sum(weights)) for w in weights]


def best_by_every_rule(joint: list[list[Fraction]]) -> Fraction:
    """Chance of the best of all rules that name a u for every y; joint[u][y]."""
    outputs = range(len(joint[0]))
    return max(
        sum((joint[rule[y]][y] for y in outputs), Fraction())
        for rule in itertools.product(range(len(joint)), repeat=len(outputs))
    )


def raised(joint: list[list[Fraction]]) -> Fraction:
    """By what factor seeing y raises the chance to guess u."""
    with_y = sum((max(column) for column in zip(*joint, strict=True)), start=Fraction(0))
    return with_y / max(sum(row) for row in joint)


def joint_of(prior: list[Fraction], guess: list[list[Fraction]], channel: Channel) -> list[list[Fraction]]:
    """P(u, y) for P(x), P(u | x) = guess[x][u] and the channel."""
    xs, us, ys = range(len(prior)), range(len(guess[0])), range(len(channel[0]))
    return [[sum((prior[x] * guess[x][u] * channel[x][y] for x in xs), start=Fraction(0)) for y in ys] for u in us]


def identity(size: int) -> list[list[Fraction]]:
    return [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]


THRESHOLDS = [0, 1, 2**126, 2**127 + 12345, 2**128 - 1, 2**128]


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("bits", [0, 1, 2, 3])
def test_the_gain_of_a_response_is_reached_by_guessing_the_word(threshold: int, bits: int) -> None:
    channel, words = response(threshold, bits), 2**bits
    uniform = [Fraction(1, words)] * words
    gain = response_gain(threshold, 2**bits)
    assert raised(joint_of(uniform, identity(words), channel)) == gain == closed_form(channel)


def test_the_best_rule_is_the_likeliest_guess() -> None:
    source = random.Random(1)
    for _ in range(30):
        joint = joint_of(random_law(source, 3), [random_law(source, 3) for _ in range(3)], response(2**126, 2)[:3])
        assert best_by_every_rule(joint) == sum(max(column) for column in zip(*joint, strict=True))


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_no_guess_about_anything_gains_more(threshold: int) -> None:
    """Random priors, every function of the word and random functions: 4 words, up to 4 values."""
    source, channel, gain = random.Random(2), response(threshold, 2), response_gain(threshold, 4)
    named = [
        v for v in itertools.product(range(4), repeat=4) if all(v[i] <= max(v[:i], default=-1) + 1 for i in range(4))
    ]
    assert len(named) == 15  # all ways to tell words apart or not; what the values are called does not matter
    functions = [[identity(4)[u] for u in values] for values in named]
    for _ in range(10):
        prior = random_law(source, 4)
        for function in functions:
            assert raised(joint_of(prior, function, channel)) <= gain
        for _ in range(10):
            assert raised(joint_of(prior, [random_law(source, 3) for _ in range(4)], channel)) <= gain


def test_an_encoder_that_misses_words_gains_less() -> None:
    channel = response(2**126, 2)[:3]
    assert closed_form(channel) < response_gain(2**126, 4)


def two_chunks(prior, law_1, law_2, code) -> list[list[Fraction]]:
    """P((x1, x2), (y1, y2)): the word of the second chunk depends on what the first released."""
    pairs = list(itertools.product(range(2), repeat=2))
    return [[prior[2 * a + b] * law_1[a][y] * law_2[code[y][b]][z] for y, z in pairs] for a, b in pairs]


def test_chunks_multiply_for_any_correlation_and_any_adaptive_code() -> None:
    first, second = 2**126, 3 * 2**125
    law_1, law_2 = response(first, 1), response(second, 1)
    gain = composed_gain([response_gain(first, 2), response_gain(second, 2)])
    source, seen = random.Random(3), []
    for code in itertools.product(itertools.product(range(2), repeat=2), repeat=2):
        for prior in [[Fraction(1, 4)] * 4, *(random_law(source, 4) for _ in range(20))]:
            seen.append(raised(two_chunks(prior, law_1, law_2, code)))
    assert max(seen) == gain  # never above, and reached by independent uniform words
    assert gain > max(response_gain(first, 2), response_gain(second, 2))


def test_a_guess_about_one_chunk_may_gain_more_than_that_chunk_does() -> None:
    """A repeated chunk: the session's product bounds the guess, one chunk's gain does not."""
    threshold = 2**127
    law, one = response(threshold, 1), response_gain(threshold, 2)
    repeats = [Fraction(1, 2), Fraction(0), Fraction(0), Fraction(1, 2)]
    joint = two_chunks(repeats, law, law, [(0, 1)] * 2)
    about_the_first = [[a + b for a, b in zip(joint[2 * x], joint[2 * x + 1], strict=True)] for x in range(2)]
    third = [[row[i] * law[x][y] for i in range(4) for y in range(2)] for x, row in enumerate(about_the_first)]
    assert one < raised(third) <= composed_gain([one] * 3)


def test_a_single_release_may_raise_a_chance_by_more_than_the_gain() -> None:
    channel, gain = response(2**127, 1), response_gain(2**127, 2)
    prior = [Fraction(9, 10), Fraction(1, 10)]
    posterior = prior[1] * channel[1][1] / sum(prior[x] * channel[x][1] for x in range(2))
    assert posterior / prior[1] > gain
    assert posterior / prior[1] <= channel[1][1] / channel[0][1]  # e^epsilon


@pytest.mark.parametrize(
    ("epsilon", "bits", "about"), [(4.8, 2, 3.90), (4.8, 3, 7.56), (48.0, 40, 2.0**40), (0.48, 1, 1.235)]
)
def test_the_response_of_the_mechanism(epsilon: float, bits: int, about: float) -> None:
    law = ResponseLaw([2 ** min(6, bits - start) for start in range(0, bits, 6)], epsilon)
    gain = response_gain(law._threshold, 2**bits)
    assert float(gain) == pytest.approx(about, rel=2e-3)
    assert 1 < gain < 2**bits
    assert leakage(gain) < epsilon
    assert float(gain) == pytest.approx(2**bits / (1 + (2**bits - 1) * math.exp(-epsilon)), rel=1e-12)


def power(rate: float) -> Fraction:
    """e^-rate to 90 digits."""
    with localcontext() as context:
        context.prec = 90
        return Fraction((-Decimal(rate)).exp())


def short(p: Fraction) -> Fraction:
    """Within 2^-201, with a denominator that keeps exact sums fast."""
    return Fraction(round(p * 2**200), 2**200)


def laplace(rate: float, inputs, digits: int, clamp: int) -> Channel:
    """P(clamped a + z | a) for z = G or -(G + 1), G geometric below 2^digits, for every a of `inputs`."""
    q, reach = power(rate), 2**digits
    head, masses = (1 - q) / (2 * (1 - short(q) ** reach)), []
    for _ in range(reach):
        masses.append(head := short(head))
        head *= q
    rows = []
    for a in inputs:
        row = [Fraction(0)] * (2 * clamp + 1)
        for g, mass in enumerate(masses):
            for z in (g, -(g + 1)):
                row[max(-clamp, min(clamp, a + z)) + clamp] += mass
        assert abs(float(sum(row)) - 1) < ROUNDING
        rows.append(row)
    return rows


@pytest.mark.parametrize("rate", [1e-3, 0.3, 2.0])
@pytest.mark.parametrize("largest", [0, 1, 4])
@pytest.mark.parametrize("beyond", [0, 1, 2, 9, 40])
def test_the_gain_of_discrete_laplace_noise(rate: float, largest: int, beyond: int) -> None:
    channel = laplace(rate, range(-largest, largest + 1), digits=5, clamp=largest + beyond)
    gain = laplace_gain(rate, largest, 5, deviation=0)
    assert 0 <= gain - closed_form(channel) < ROUNDING


def test_a_narrow_clamp_gains_less() -> None:
    gain = laplace_gain(0.3, 4, 5, deviation=0)
    assert closed_form(laplace(0.3, range(-4, 5), digits=5, clamp=2)) < gain - Fraction(1, 100)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda q, a, t: 1 + 2 * a * (1 - q),  # as if the noise had no sign
        lambda q, a, t: 1 + a * (1 - q) / (1 + q),  # centred at 0 instead of -1/2
        lambda q, a, t: 1 + a * (1 - q),  # noise without end
        lambda q, a, t: q ** (-2 * a),  # e^epsilon
    ],
)
def test_wrong_closed_forms_are_seen(wrong) -> None:
    found = closed_form(laplace(0.05, range(-4, 5), digits=5, clamp=8))
    assert abs(wrong(power(0.05), 4, 32) - found) > Fraction(1, 1000)


def test_a_guess_about_a_noisy_integer_reaches_the_gain() -> None:
    """An end of the range of two: the prior on both ends alone gains as much as two inputs can."""
    source = random.Random(4)
    channel = laplace(0.3, range(-2, 3), digits=5, clamp=7)
    gain = laplace_gain(0.3, 2, 5, deviation=0)
    assert gain - raised(joint_of([Fraction(1, 5)] * 5, identity(5), channel)) < ROUNDING
    for _ in range(60):
        assert raised(joint_of(random_law(source, 5), [random_law(source, 4) for _ in range(5)], channel)) <= gain


def product_channel(rate: float, points, digits: int, clamp: int) -> Channel:
    values = range(-clamp, clamp + 1)
    line = dict(zip(values, laplace(rate, values, digits, clamp), strict=True))
    return [[math.prod(cells) for cells in itertools.product(*(line[a] for a in point))] for point in points]


@pytest.mark.parametrize(
    ("rate", "weights", "square"), [(0.05, (1, 2), 9), (0.5, (1, 2), 9), (3.0, (1, 2), 9), (0.1, (1, 2, 2), 4)]
)
def test_no_ball_gains_more_than_its_bound(rate: float, weights: tuple[int, ...], square: int) -> None:
    reach = range(-3, 4)
    points = [
        p
        for p in itertools.product(reach, repeat=len(weights))
        if sum(w * a * a for w, a in zip(weights, p, strict=True)) <= square
    ]
    largest = [max(p[i] for p in points) for i in range(len(weights))]
    radius = max(sum(map(abs, p)) for p in points)
    found = closed_form(product_channel(rate, points, digits=6, clamp=3))
    bound = ball_gain(rate, largest, radius, 6, deviation=0)
    assert found <= bound + ROUNDING
    box = composed_gain(laplace_gain(rate, a, 6, deviation=0) for a in largest)
    assert bound <= box
    if rate * radius > 1:
        assert bound == box
    assert bound > 1 + (found - 1) / 2  # within a factor of two of the truth, beyond 1


def test_the_centre_is_the_better_bound_for_many_coordinates_at_small_rates() -> None:
    rate, largest, radius = 1e-6, [1000] * 33, 4100
    bound = ball_gain(rate, largest, radius, 34, deviation=0)
    box = composed_gain(laplace_gain(rate, a, 34, deviation=0) for a in largest)
    assert bound < box
    assert leakage(bound) == pytest.approx(rate * radius, rel=1e-9)
    assert leakage(bound) >= rate * radius


def test_deviation_and_rounding_only_add() -> None:
    exact = laplace_gain(0.3, 4, 5, deviation=0)
    loose = laplace_gain(0.3, 4, 5, deviation=2.0**-20)
    assert loose / exact >= Fraction(math.exp(2.0**-20)) - ROUNDING
    assert loose / exact < 1 + 2 * Fraction(1, 2**20)
    assert 0 < laplace_gain(2.0**-60, 1, 60, deviation=0) - 1 < Fraction(1, 2**59)
    assert laplace_gain(1e9, 5, 5, deviation=0) == pytest.approx(6)
    assert laplace_gain(1e-80, 10**80, 300, deviation=0) == pytest.approx(2)


def test_leakage_keeps_small_and_huge_gains_apart() -> None:
    assert leakage(Fraction(1)) == 0
    assert leakage(1 + Fraction(1, 10**30)) == pytest.approx(1e-30, rel=1e-9, abs=0)
    assert leakage(Fraction(3) ** 5000) == pytest.approx(5000 * math.log(3))
    assert leakage(composed_gain([])) == 0


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: response_gain(-1, 4), "threshold"),
        (lambda: response_gain(2**128 + 1, 4), "threshold"),
        (lambda: response_gain(0, 0), "words"),
        (lambda: laplace_gain(0.0, 1, 5, deviation=0), "rate"),
        (lambda: laplace_gain(math.nan, 1, 5, deviation=0), "rate"),
        (lambda: laplace_gain(0.1, -1, 5, deviation=0), "largest"),
        (lambda: laplace_gain(0.1, 1, -1, deviation=0), "digits"),
        (lambda: laplace_gain(0.1, 1, 5, deviation=-1e-9), "deviation"),
        (lambda: laplace_gain(0.1, 1, 5, deviation=math.nan), "deviation"),
        (lambda: ball_gain(0.1, [1], -1, 5, deviation=0), "taxicab_radius"),
        (lambda: leakage(Fraction(9, 10)), "gain"),
    ],
)
def test_arguments_out_of_range_are_named(call, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        call()
