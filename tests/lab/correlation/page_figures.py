"""The figures of docs/correlations-figures.md and CHAINS.md, computed again. Run as a program it prints the tables."""

from collections.abc import Iterable

from eyestream.claims.correlation.published import session_claim
from eyestream.core.mechanisms import build
from eyestream.rim.files import calibrations
from eyestream.rim.files.processes import load_process
from eyestream_lab.correlation.chains import MarkovClass
from eyestream_lab.correlation.emissions import laplace
from eyestream_lab.correlation.profile import profile
from tests.lab.correlation.small_worlds import cao, chunk_emission, exact_total, own_words, pairs_of_rows, stay_or_move
from tests.lab.correlation.windows import Windows, exact_second, touched_loss
from tests.rigs.chain_attack import strongest

Row = tuple[float | str, ...]

EVEN = {stay: MarkovClass.exact(stay_or_move(stay)) for stay in (0.5, 0.8, 0.95)}


def five_chunks() -> Iterable[Row]:
    """Stay, epsilon; Cao et al., randomised response, CFPA, DCFPA, DCFPA rescaled, plain sum."""
    for stay, epsilon in ((0.5, 1), (0.8, 1), (0.8, 4), (0.95, 1), (0.95, 4)):
        pairs, chunks = pairs_of_rows(stay)
        yield (
            stay,
            epsilon,
            2 * cao(stay_or_move(stay), epsilon, 2) - epsilon,
            exact_total(EVEN[stay], own_words(epsilon), 5, 2),
            exact_total(pairs, chunk_emission(chunks, epsilon, differences=False), 5, 2),
            exact_total(pairs, chunk_emission(chunks, epsilon, differences=True), 5, 2),
            exact_total(pairs, chunk_emission(chunks, epsilon, differences=True, own=True), 5, 2),
            5 * epsilon,
        )


def margins() -> Iterable[Row]:
    """Margin; epsilon' bound of five chunks, third; attained by the chain in the middle and by the slowest member."""
    for margin in (0.0, 0.01, 0.02, 0.05):
        centre = stay_or_move(0.8)
        members = MarkovClass.within(centre - margin, centre + margin) if margin else EVEN[0.8]
        slowest = MarkovClass.exact(stay_or_move(0.8 + margin))
        bound = float(profile(members, [own_words(1.0)] * 5).total[2])
        yield margin, bound, strongest(slowest, [own_words(1.0)] * 5, 2).log_odds


def seconds_of_gaze() -> Iterable[Row]:
    """Stay, window, hop, epsilon; own losses of touched chunks, exact, bound; a second in the middle."""
    for stay, seconds, hop, epsilon, chunks in ((0.8, 2, 1, 1, 5), (0.6, 2, 1, 3, 5), (0.9, 3, 2, 1, 4)):
        windows = Windows(MarkovClass.exact(stay_or_move(stay, 2)), seconds, hop)
        emission = laplace(windows.contents.mean(axis=1), 1 / epsilon)
        session = [emission] * chunks
        found, second = profile(windows.chain(), session), (seconds + (chunks - 1) * hop) // 2
        touched = windows.touched(second, chunks)
        yield (
            stay,
            seconds,
            hop,
            epsilon,
            sum(session[c].loss for c in touched),
            exact_second(windows, emission, chunks, second),
            touched_loss(found, session, touched),
        )


def an_hour() -> Iterable[Row]:
    """What the shipped class says of an hour of the shipped calibrations."""
    process = load_process("everyday")
    for name in ("lpa", "cfpa", "dcfpa", "klt", "klt-one"):
        for n in (32, 64, 128):
            made = [build(calibrations.load(f"everyday-{name}-{n}"), epsilon) for epsilon in (0.48, 4.8, 48.0)]
            claims = [session_claim(m, process, n / 2, chunks=7200 // n, touched=2) for m in made]
            yield name, n, f"{claims[0].most:.3f}", *(f"{c.chunk:.3g} of {c.plain:.4g}" for c in claims)


TABLES = {
    "an hour": an_hour,
    "second": seconds_of_gaze,
    "five chunks": five_chunks,
    "margins": margins,
}


def cell(value: float | str) -> str:
    """As it stands on the page."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.2g}"


if __name__ == "__main__":
    for title, rows in TABLES.items():
        print(f"\n<!-- {title} -->")
        for row in rows():
            print("| " + " | ".join(map(cell, row)) + " |", flush=True)
