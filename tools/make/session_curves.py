"""What a session tells, on the corpus: every mechanism at the papers' epsilons, and whether DCFPA is less vulnerable.

python -m tools.make.session_curves GAZE_DIR [--out docs/correlations-corpus.md]

People at even positions of the sorted names give the public chunks (k-means of whole chunks of the 48 features, clamped
and standardised by the shipped klt calibration) and the chain: how often one follows another, pooled. Its margins are
two standard errors over resampled people. The other people's pooled rows are looked at once: how many entries lie
inside. epsilon' of the middle one of 41 chunks, from the output laws of the shipped mechanisms (`eyestream_lab.
correlation.emissions`); what outputs that can occur attain on the chain itself; and the plain sum.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import JointTables
from eyestream.core.mechanisms import build
from eyestream.rim.files import calibrations
from eyestream_lab.correlation.chains import MarkovClass
from eyestream_lab.correlation.emissions import emission_of
from eyestream_lab.correlation.profile import profile
from eyestream_lab.study.population import Population
from tests.rigs.chain_attack import strongest
from tools.make import everyday

Array = NDArray[np.float64]
ROWS, STATES, LENGTH = 32, 4, 41
EPSILONS = (0.48, 2.4, 4.8, 24.0, 48.0)
MECHANISMS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("lpa", "lpa", {}),
    ("cfpa", "cfpa", {}),
    ("dcfpa", "dcfpa", {}),
    ("cfpa, k = 4", "cfpa", {"k": 4}),
    ("dcfpa, k = 4", "dcfpa", {"k": 4}),
    ("klt", "klt", {}),
    ("klt-one", "klt-one", {}),
)
TARGET = Path(__file__).resolve().parents[2] / "docs/correlations-corpus.md"


def chunks_of(population: Population, people: Sequence[int]) -> list[Array]:
    """For each person (T, F, n)."""
    rows = (population.recording(person) for person in people)
    return [r[: len(r) // ROWS * ROWS].reshape(-1, ROWS, r.shape[1]).transpose(0, 2, 1) for r in rows]


def standardised(chunks: Array) -> Array:
    """(T, A n)."""
    calibration = calibrations.load(f"everyday-klt-{ROWS}")
    assert isinstance(calibration.tables, JointTables)
    active = ~calibration.constant
    clamped = np.clip(chunks, calibration.lo[:, None], calibration.hi[:, None])[:, active]
    mean, sd = (figure[active][:, None] for figure in (calibration.tables.mean, calibration.tables.sd))
    return np.asarray(((clamped - mean) / sd).reshape(len(chunks), -1), dtype=np.float64)


def nearest(points: Array, centres: Array) -> NDArray[np.intp]:
    found: NDArray[np.intp] = ((points[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    return found


def public_chunks(people: list[Array]) -> tuple[Array, Array]:
    """(S, F, n) mean chunks of the clusters, and (S, A n) their centres; the best of 20 starts."""
    every = np.concatenate(people)
    points, best, least = standardised(every), np.zeros(len(every), dtype=np.intp), np.inf
    for seed in range(20):
        rng = np.random.default_rng(seed)
        centres = points[rng.choice(len(points), STATES, replace=False)]
        for _ in range(50):
            own = nearest(points, centres)
            centres = np.array(
                [points[own == s].mean(axis=0) if (own == s).any() else centres[s] for s in range(STATES)]
            )
        spread = ((points - centres[own]) ** 2).sum()
        if spread < least:
            best, least = own, spread
    return (
        np.array([every[best == s].mean(axis=0) for s in range(STATES)]),
        np.array([points[best == s].mean(axis=0) for s in range(STATES)]),
    )


def counts_of(people: list[Array], centres: Array) -> Array:
    """(P, S, S) how often one state follows another."""
    counts = np.zeros((len(people), STATES, STATES))
    for person, chunks in enumerate(people):
        states = nearest(standardised(chunks), centres)
        np.add.at(counts[person], (states[:-1], states[1:]), 1)
    return counts


def rows_of(counts: Array) -> Array:
    """Rows of probabilities; one count is spread over each row, so that nothing is impossible."""
    spread = counts + 1 / STATES
    return np.asarray(spread / spread.sum(axis=-1, keepdims=True), dtype=np.float64)


def cell(value: float) -> str:
    return f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("gaze", type=Path)
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    population = Population.of(everyday.corpus(options.gaze))
    learned, others = (chunks_of(population, people) for people in (population.calibrating, population.released))
    public, centres = public_chunks(learned)
    counts = counts_of(learned, centres)
    rows = rows_of(counts.sum(axis=0))
    rng = np.random.default_rng(2026)
    drawn = rng.multinomial(len(counts), np.ones(len(counts)) / len(counts), size=1000)
    margin = 2 * rows_of(np.einsum("rp,pxy->rxy", drawn, counts)).std(axis=0)
    one = MarkovClass.exact(rows)
    margins = MarkovClass.within(np.maximum(rows - margin, 1e-6), np.minimum(rows + margin, 1.0))
    theirs = rows_of(counts_of(others, centres).sum(axis=0))
    inside = int((np.abs(theirs - rows) <= margin).sum())
    lines = [
        HEAD.format(
            people=len(learned),
            transitions=int(counts.sum()),
            stay=", ".join(f"{value:.2f}" for value in np.diag(rows)),
            theirs=", ".join(f"{value:.2f}" for value in np.diag(theirs)),
            margin=f"{margin.max():.2f}",
            inside=inside,
            all=STATES**2,
            length=LENGTH,
        )
    ]
    for title, name, given in MECHANISMS:
        for epsilon in EPSILONS:
            mechanism = build(calibrations.load(f"everyday-{name}-{ROWS}"), epsilon, **given)
            emission = emission_of(mechanism, public)
            own = emission.loss
            told = float(profile(one, [emission] * LENGTH).total[LENGTH // 2])
            wide = float(profile(margins, [emission] * LENGTH).total[LENGTH // 2])
            reached = strongest(one, [emission] * LENGTH, LENGTH // 2).log_odds
            figures = (epsilon, own, told, reached, wide, LENGTH * epsilon, told / own)
            lines.append(f"| {title} | " + " | ".join(map(cell, figures)) + " |")
            print(lines[-1], flush=True)
    kept = options.out.read_text(encoding="utf-8").partition(END)[2] if options.out.exists() else "\n"
    options.out.write_text("\n".join([*lines, "", END]) + kept, encoding="utf-8")


HEAD = """# What a session tells, on the corpus

Made by `tools/make/session_curves.py` from 30 people's everyday gaze (Hoppe et al. 2018), chunks of 32 rows (16 s), 48
features. [CHAINS.md](../lab/eyestream_lab/correlation/CHAINS.md) has the quantity and the proofs.

The class: chunks are one of four public ones, the means of four clusters of the chunks of {people} people, and follow a
Markov chain ({transitions} transitions, pooled). They stay with probability {stay}. Margins: two standard errors over
people, at most {margin} an entry. On the other people, looked at once, they stay with {theirs}, and {inside} of {all}
entries lie inside the margins. **Outside this class only the plain sum holds**; real chunks are not four values.

epsilon' of the middle one of {length} chunks. *Own*: loss of the chunk's own release for these four chunks. *Chain*:
bound for the pooled chain. *Attained*: what outputs that can occur reach against it (for `klt`, words whose cells are
boxes). *Margins*: bound for every chain within them. The laws are those of the shipped mechanisms, k chosen by the
calibration where none is given; shrinking, smoothing and clipping change none of these figures.

| mechanism | epsilon | own | chain | attained | margins | plain sum | chain / own |
|---|---|---|---|---|---|---|---|"""
END = "<!-- end of what tools/make/session_curves.py writes -->"


if __name__ == "__main__":
    main()
