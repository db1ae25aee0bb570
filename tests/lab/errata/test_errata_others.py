"""Counterexamples of docs/errata.md, part B: the mechanisms and attacks that other papers print.

As in part A, every test shows on one instance what the printed form breaks and the corrected one keeps.
"""

import itertools
import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import pytest

from tests.lab.errata.exact import worst_odds


def log_density_printed(r: Decimal, rate: Decimal, longest: int) -> Decimal:
    """Log density at r of +- ln(y) / (rate longest), y exponential of that rate; either sign has half of the mass."""
    u = r * rate * longest
    branches = (u - rate * u.exp()).exp() + (-u - rate * (-u).exp()).exp()
    return (rate * rate * longest / 2).ln() + branches.ln()


@pytest.mark.parametrize(("epsilon", "at", "worst"), [(1, "19.163", "6.760"), (20, "0.47875", "17.575")])
def test_b1_the_log_of_an_exponential_is_no_laplace_noise(epsilon: int, at: str, worst: str) -> None:
    longest, delta = 600, 1
    with localcontext() as context:
        context.prec = 60
        rate = Decimal(epsilon) / (2 * longest * delta)
        once = log_density_printed(Decimal(at), rate, longest) - log_density_printed(Decimal(at) + delta, rate, longest)
        assert abs(once - Decimal(worst)) < Decimal("0.001")
        assert longest * once > 500 * epsilon  # a person's values, each shifted by its range
        repaired = Decimal(delta) * rate  # the worst of a Laplace density of scale 1 / rate, per value
        assert abs(longest * repaired - Decimal(epsilon) / 2) < Decimal("1e-50")


def test_b1_the_printed_density_is_the_density_of_the_printed_noise() -> None:
    """Its integral over an interval is the probability that the closed form of the exponential law gives."""
    rate, longest = Decimal(1) / 1200, 600
    low, high, steps = Decimal(12), Decimal(16), 400
    width = (high - low) / steps
    points = [low + width * (Decimal(i) + Decimal("0.5")) for i in range(steps)]
    integral = sum(log_density_printed(r, rate, longest).exp() for r in points) * width

    def below(u):  # P(ln y <= u)
        return 1 - (-rate * u.exp()).exp()

    unit = rate * longest
    exact = (below(high * unit) - below(low * unit) + below(-low * unit) - below(-high * unit)) / 2
    assert abs(integral / exact - 1) < Decimal("1e-5")


def budgets(published, window: int) -> list[Fraction]:
    """Epsilon of every sample of a stream with epsilon 1 and h = 2, half of what the last `window` samples leave."""
    spent: list[Fraction] = []
    for publishes in published:
        left = Fraction(1, 2) - sum(spent[max(0, len(spent) - window + 1) :], start=Fraction(0))
        spent.append(left / 2 if publishes else Fraction(0))
    return spent


def test_b2_a_sum_over_the_stream_never_gives_budget_back() -> None:
    window = 8
    published = ([True] * 4 + [False] * 12) * 6
    printed = budgets(published, window=len(published))
    corrected = budgets(published, window)
    assert printed[-16] == Fraction(1, 2) ** 22  # the 21st publication
    assert corrected[-16] == corrected[0] == Fraction(1, 4)
    windows = [sum(corrected[i : i + window]) for i in range(len(corrected))]
    assert max(windows) < Fraction(1, 2)  # and no window exceeds its half of epsilon


def test_b3_the_test_needs_noise_of_r_over_its_epsilon() -> None:
    reach, h, tests, epsilon = 10, 2, 10, Fraction(1)
    epsilon_test = epsilon / (h * tests)
    threshold = 1
    near, far = threshold, threshold + reach  # distances of neighbouring samples to the last output

    def log_repeat(distance, scale):
        """Log of 2 P(distance <= threshold + noise), for distances of at least the threshold."""
        return -Fraction(distance - threshold) / scale

    def all_repeat(scale):
        return tests * (log_repeat(near, scale) - log_repeat(far, scale))

    assert all_repeat(1 / epsilon_test) == reach * epsilon / h == 5 * epsilon  # the tests alone
    assert all_repeat(reach / epsilon_test) == epsilon / h


def samples_tested(times, skip, *, since_published: bool) -> list[int]:
    """Samples at which a stream is tested that is published once and then only repeats."""
    found, last = [], None
    for i, t in enumerate(times):
        if last is None or t - last >= skip:
            found.append(i)
            if last is None or not since_published:
                last = t
    return found


def busiest(tests, window: int) -> int:
    return max(sum(start <= i < start + window for i in tests) for start in range(4 * window))


def test_b4_skips_are_counted_from_the_last_test_and_in_samples() -> None:
    window, skip = 50, 5
    budgeted = math.ceil(window / skip)
    counter = range(5 * window)
    assert busiest(samples_tested(counter, skip, since_published=True), window) == window > budgeted
    assert busiest(samples_tested(counter, skip, since_published=False), window) == budgeted
    slow_ms = [50 * i for i in counter]  # a tracker that delivers, or claims to deliver, 20 samples a second
    assert busiest(samples_tested(slow_ms, 50, since_published=False), window) == window > budgeted


def interval(p: Fraction, gamma: Fraction) -> int | None:
    """The integer i with gamma^(-i-1) < p <= gamma^(-i); None for p = 0."""
    found = [i for i in range(-60, 200) if p and gamma ** (-i - 1) < p <= gamma**-i]
    assert len(found) <= 1
    return found[0] if found else None


def passes(probabilities, seed: int, k: int, gamma: Fraction) -> bool:
    """Privacy test: at least k records would have made this output with about the seed's probability."""
    own = interval(probabilities[seed], gamma)
    return own is not None and sum(interval(p, gamma) == own for p in probabilities) >= k


def marginal(records, bucket) -> Fraction:
    return Fraction(sum(record == bucket for record in records), len(records))


def test_b5_a_generator_without_seed_passes_every_test() -> None:
    gamma = Fraction(2)
    people = [3] * 9 + [29]  # one feature in 30 buckets; one person is alone in the last
    for k, bucket in itertools.product(range(1, 11), (3, 29)):
        by_seed = [marginal(people, bucket)] * len(people)  # the seed does not enter
        assert passes(by_seed, seed=0, k=k, gamma=gamma)
    ordinary = [3] * 10
    laws = [{b: marginal(records, b) for b in range(30)} for records in (people, ordinary)]
    assert worst_odds(*laws) is None  # yet an output in bucket 29 proves that the person is there

    def noisy_counts(records):
        """Law of the two counts with two-sided geometric noise of e^epsilon = 3, held to 0 .. 10."""
        q, n = Fraction(1, 3), len(records)

        def clamped(count, out):
            if 0 < out < n:
                return (1 - q) / (1 + q) * q ** abs(out - count)
            return q ** abs(out - count) / (1 + q)

        pair = [[clamped(records.count(b), out) for out in range(n + 1)] for b in (3, 29)]
        assert [sum(law) for law in pair] == [1, 1]
        return {(i, j): pair[0][i] * pair[1][j] for i, j in itertools.product(range(n + 1), repeat=2)}

    assert worst_odds(noisy_counts(people), noisy_counts(ordinary)) == 3**2  # two counts change by one


def test_b5_a_generator_with_seed_can_fail_the_test() -> None:
    """The test itself is sound: with a seed it stops what only one record could have made."""
    by_seed = [Fraction(1, 100)] * 9 + [Fraction(9, 10)]
    assert not passes(by_seed, seed=9, k=2, gamma=Fraction(2))
    assert passes(by_seed, seed=0, k=9, gamma=Fraction(2))


def test_b6_with_gamma_one_every_interval_is_empty() -> None:
    probabilities = [Fraction(1, i) for i in range(1, 40)]
    assert all(interval(p, Fraction(1)) is None for p in probabilities)
    assert not passes([Fraction(1, 2)] * 5, seed=0, k=1, gamma=Fraction(1))  # equal in all, and still refused
    for gamma in (Fraction(101, 100), Fraction(3)):
        assert interval(Fraction(1, 7), gamma) is not None
        assert passes([Fraction(1, 2)] * 5, seed=0, k=5, gamma=gamma)


def box(deviations: float, half_width: float = 0.01, sd: float = 0.4) -> float:
    """Chance that a normal value falls within `half_width` of a point that many standard deviations from its mean."""
    edges = [(deviations * sd + side) / (sd * math.sqrt(2)) for side in (-half_width, half_width)]
    return (math.erf(edges[1]) - math.erf(edges[0])) / 2


def test_b7_products_of_probabilities_reach_zero_and_zero_equals_zero() -> None:
    own, other = box(1) ** 2, box(2) ** 2  # one sample, two axes; the other person's fixation is elsewhere
    samples = 85  # 0.85 s at 100 Hz
    assert math.prod([own] * samples) == math.prod([other] * samples) == 0.0  # in double precision: "equal"
    exact = Fraction(own) ** samples, Fraction(other) ** samples
    assert exact[0] > 10**100 * exact[1] > 0
    logs = [samples * math.log(p) for p in (own, other)]
    assert math.floor(-logs[0] / math.log(3)) != math.floor(-logs[1] / math.log(3))
    assert logs[0] - logs[1] == pytest.approx(samples * 3, rel=1e-3)  # (2^2 - 1^2) / 2 on either axis


def test_b8_drawing_until_the_test_passes_need_not_end() -> None:
    people = [{"a": Fraction(1, 2), "b": Fraction(1, 2)}, {"c": Fraction(1)}]
    chance = sum(
        p for y, p in people[0].items() if passes([law.get(y, Fraction(0)) for law in people], 0, 2, Fraction(3))
    )
    assert chance == 0  # k = 2: no draw is ever good, the printed loop has no other way out

    def capped(law, crowd, cap):
        for y in itertools.islice(itertools.cycle(law), cap):
            if passes([other.get(y, Fraction(0)) for other in crowd], 0, 2, Fraction(3)):
                return y
        return None  # suppressed

    assert capped(people[0], people, cap=32) is None
    alike = [people[0], {"b": Fraction(2, 5), "c": Fraction(3, 5)}]
    assert capped(people[0], alike, cap=32) == "b"


def test_b9_a_sum_of_probabilities_is_no_probability() -> None:
    steady, changing = [Fraction(1, 2)] * 30, [Fraction(1), Fraction(0)] * 15
    assert sum([Fraction(1)] * 30) > 1
    assert sum(steady) == sum(changing)  # the printed score sees no difference
    assert math.prod(steady) > 0
    assert math.prod(changing) == 0  # one of the two cannot have made this saccade


def divergence(mean: float, sd: float) -> float:
    """KL(N(mean, sd^2) || N(0, 1))."""
    return (mean * mean + sd * sd - 1) / 2 - math.log(sd)


def test_b10_the_loss_of_the_autoencoder_adds_the_divergence() -> None:
    reconstruction = 0.3  # of a decoder that does not look at z: the encoder's law is free
    laws = [(0.0, 1.0), (1.0, 1.0), (10.0, 0.1), (1000.0, 0.001)]
    printed = [reconstruction - divergence(*law) for law in laws]
    added = [reconstruction + divergence(*law) for law in laws]
    assert printed == sorted(printed, reverse=True)
    assert printed[-1] < -400_000  # no minimum
    assert min(added) == added[0] == reconstruction


def test_b11_a_radial_basis_is_scaled_by_the_square_of_its_width() -> None:
    distance, width = Fraction(3), Fraction(2)

    def printed(d, s):
        return d * d / (2 * s)

    def corrected(d, s):
        return d * d / (2 * s * s)

    minutes = 60  # of arc instead of degrees: the same eyes
    assert printed(minutes * distance, minutes * width) == minutes * printed(distance, width)
    assert corrected(minutes * distance, minutes * width) == corrected(distance, width)


PARTITIONS = [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]
RAW = [(1, 1), (2, 2), (4, 4), (8, 8)]  # a value for each of two stimuli; all sums of two people differ


def candidates(person: int, partition, stimulus: int) -> set[int]:
    """Whom an attacker with the raw values can name from one released mean, not knowing the partition."""
    group = next(g for g in partition if person in g)
    mean = Fraction(sum(RAW[p][stimulus] for p in group), 2)
    return {
        p for p, q in itertools.permutations(range(4), 2) if Fraction(RAW[p][stimulus] + RAW[q][stimulus], 2) == mean
    }


def identified(first, second) -> Fraction:
    """Mean chance of a right guess from the releases of both stimuli, joined by a pseudonym."""
    left = [candidates(p, first, 0) & candidates(p, second, 1) for p in range(4)]
    assert all(p in left[p] for p in range(4))
    return sum((Fraction(1, len(c)) for c in left), start=Fraction(0)) / 4


def test_b12_one_kth_holds_for_one_partition() -> None:
    fresh = [identified(a, b) for a, b in itertools.product(PARTITIONS, repeat=2)]
    assert sum(fresh) / len(fresh) == Fraction(5, 6) > Fraction(1, 2)
    assert all(identified(same, same) == Fraction(1, 2) for same in PARTITIONS)


def test_every_entry_names_its_tests_and_every_test_has_an_entry() -> None:
    here = Path(__file__).resolve()
    page = (here.parents[3] / "docs" / "errata.md").read_text(encoding="utf-8")
    sections = re.split(r"^### ", page, flags=re.M)[1:]
    named: set[str] = set()
    for section in sections:
        label = section.split(".", 1)[0].lower()
        tests = re.findall(r"`(test_\w+)`", section)
        assert tests, f"{label} names no test"
        assert all(name.startswith(f"test_{label}_") for name in tests), label
        named |= set(tests)
    written = set()
    for file in here.parent.glob("test_errata*.py"):
        written |= set(re.findall(r"^def (test_[ab]\d+_\w+)", file.read_text(encoding="utf-8"), flags=re.M))
    assert named == written
