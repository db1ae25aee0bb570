"""Asked features against all features, at equal epsilon a minute: what comes through, and who is recognised.

For each set of features: `asked`; CFPA of the same features alone, smoothed and clipped; and of all features at once
`klt-anchored` and CFPA. Nobody who is released has calibrated: people are divided at random, and each part is released
with calibrations of the others. Where the recordings are none of the shipped calibration's, as those of another
tracker, the shipped one is adapted with the others'; else they are made anew.

Utility is of whole recordings, live: correlation of chunk means, and share of the variance of rows, both pooled over
people, each recording's own mean subtracted. Identity is the area under the ROC curve of "same person or not" of the
strongest attacker of `eyestream_lab.study.people.few`. Sessions are recordings where a person has several, else parts
of one with 30 s left out between them, each released by itself, with a baseline of its own, and all as long as the
shortest. The control exchanges the people: the strongest of so many attackers is above one half there too.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.asked.chain import GRID
from eyestream.core.mechanisms.entry import referred
from eyestream.core.mechanisms.registry import entry_of, names
from eyestream.ops.asked_sets import FEATURE_SETS
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.files.books import with_shipped_books
from eyestream_lab.parts import FILTERED, calibrate, part_of
from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.limit import one_shot
from eyestream_lab.study.people.inference import trial
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.population import Population
from eyestream_lab.study.report import pipes
from eyestream_lab.study.sources import World
from eyestream_lab.study.splits import WINDOW_S
from eyestream_lab.study.ways import Few, of_chunks, study_part

Array = NDArray[np.float64]
Streams = list[list[str]]
"""Features of each stream that is released at once; they share epsilon."""

VERSION = 2
N, WITHHELD, LEAST = 64, 2, 3
"""Rows of a chunk; chunks of a baseline; chunks that a session has behind it, at least."""
MOST_MINUTE = 36.0
GALLERIES = (1, 2, 5)
"""Known sessions of each person."""

SETS = {
    "saccades": ("rate_saccades",),
    "blinks": ("blink_rate",),
    "fixations": ("mean_fixation_duration",),
    "amplitude": ("mean_saccade_amplitude",),
    "pupil": ("mean_mean_diameter",),
    **FEATURE_SETS,
}
CHANGED = (("saccades", "fixations"), ("blinks", "saccades"), ("fixations", "amplitude"))
"""Another feature in the next session."""
TWO = ("comfort", "load", "attention")
"""Two applications: one word of both features, or a stream for each."""
ASKED = PART = next(name for name in names() if "features" in entry_of(name).options.__struct_fields__)
NOISY = of_chunks()
CODER = next(name for name in names() if study_part(name).limit is not None)
LATER = f"{ASKED}, a chunk later"
ALL = {f"{CODER}, all features": (CODER, {"anchored": True}), f"{NOISY}, all features": (NOISY, {})}


def cells(plan: Plan, world: World) -> list[Cell]:
    """A cell for each way, set, epsilon a minute and division of the people; the least epsilon alone has every way."""
    population = world.population
    values = (rows[seen] for rows, seen in zip(population.rows.T, population.present.T, strict=True))
    moving = {name for name, own in zip(population.names, values, strict=True) if len(np.unique(own)) > 1}
    there = {label: list(own) for label, own in SETS.items() if set(own) <= moving}
    every = list(dict.fromkeys(name for own in there.values() for name in own))
    plain: list[tuple[str, str, list[Streams]]] = [(ASKED, label, [[own]]) for label, own in there.items()]
    beside = [(f"{NOISY}, the same features", label, sessions) for _, label, sessions in plain]
    once = [(LATER, label, sessions) for _, label, sessions in plain]
    once += [(f"{ASKED}, a stream each", two, [[[name] for name in there[two]]]) for two in TWO if two in there]
    for one, other in CHANGED:
        if one in there and other in there:
            both = [[there[one]], [there[other]]]
            once += [(f"{ASKED}, then another", f"{one}, then {other}", both)]
            once += [(f"{ASKED}, by turns", f"{one} and {other} known, {one} again", [*both, both[0]])]
    *often, seldom = [(way, "all", [[every]]) for way in ALL]
    work = []
    for minute in (minute for minute in plan.minutes if minute <= MOST_MINUTE or minute == min(plan.minutes)):
        rare = [seldom, *once] if minute == min(plan.minutes) else [seldom]
        for group, splits in ((plain + beside + often, plan.splits), (rare, plan.frontier_splits)):
            for split in range(splits):
                base = {"version": VERSION, "minute": minute, "split": split}
                work += [Cell(PART, base | {"way": way, "set": label, "sessions": own}) for way, label, own in group]
    return work


def measure(world: World, *, way: str, sessions: list[Streams], minute: float, split: int, **_: Any) -> list[Record]:
    """Sums of everybody's utility, and trials of all attackers with people as they are and exchanged."""
    population, people = world.population, {}
    scored: dict[int, list[Any]] = {}
    first = sessions[0]
    for others, own in _divided(population, split):
        epsilon = minute * N / (60 * population.rate_hz) / len(first)
        made = [[_built(world, others, way, stream, epsilon) for stream in streams] for streams in sessions]
        if len(sessions) == 1:
            bounds = np.percentile(np.concatenate([population.recording(i) for i in others]), [0.5, 99.5], axis=0)
            for person in dict.fromkeys(population.people[i] for i in own):
                rows = [population.as_recorded(i) for i in own if population.people[i] == person]
                found = [
                    [_sums(m, population.names, s, r, bounds) for m, s in zip(made[0], first, strict=True)]
                    for r in rows
                ]
                people[person] = np.sum([np.concatenate(one) for one in found], axis=0).tolist()
        if way in (f"{NOISY}, all features", LATER):  # a map of the same words
            continue
        for known in GALLERIES if len(sessions) == 1 else (len(sessions) - 1,):
            seen = _gallery(population, own, made * (known + 1) if len(sessions) == 1 else made, split)
            if seen is not None:
                scored.setdefault(known, []).append(seen)
    asked = [name for streams in first for name in streams]
    records: list[Record] = [{"known": 0, "names": asked, "people": people}] if people else []
    for known, galleries in scored.items():
        attacks = [_attacked(galleries, split, exchanged=exchanged) for exchanged in (False, True)]
        chunks = min(one[2] for one in galleries)
        size = float(np.mean([len(one[0]) for one in galleries]))
        records.append({"known": known, "chunks": chunks, "gallery": size, "trials": attacks[0], "control": attacks[1]})
    return records


def _attacked(galleries: Sequence[Any], split: int, *, exchanged: bool) -> dict[str, Any]:
    rng = np.random.default_rng((split, 1))
    places = [rng.permutation(len(names)) if exchanged else np.arange(len(names)) for names, _, _ in galleries]
    attackers = set.intersection(*(set(scores) for _, scores, _ in galleries))
    return {
        name: asdict(
            trial(
                [(names, scores[name][place]) for (names, scores, _), place in zip(galleries, places, strict=True)],
                split,
                1,
            )
        )
        for name in sorted(attackers)
    }


def _divided(population: Population, split: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Recordings of the others, and of the released people: thirds, or halves of fewer than 18 people."""
    people = sorted(set(population.people))
    place = np.random.default_rng((split, 5)).permutation(len(people)) % (3 if len(people) >= 18 else 2)
    part = dict(zip(people, place.tolist(), strict=True))
    parts = np.array([part[name] for name in population.people])
    return [
        (tuple(np.flatnonzero(parts != one).tolist()), tuple(np.flatnonzero(parts == one).tolist()))
        for one in range(parts.max() + 1)
    ]


def _built(world: World, others: tuple[int, ...], way: str, names: list[str], epsilon: float) -> Mechanism:
    population = world.population
    if way in ALL:
        mechanism, recipe = ALL[way]
        names = []
    elif way.startswith(NOISY):
        mechanism, recipe = NOISY, {}
    else:
        made = _calibration(population, others, ASKED, (), ())
        return world.build(made, epsilon, features=names, later=way == LATER or None)
    made = _calibration(population, others, mechanism, tuple(recipe.items()), tuple(names))
    options: dict[str, Any] = FILTERED if mechanism == NOISY else {}
    return world.build(made, epsilon, **options)


@cache
def _calibration(
    population: Population,
    others: tuple[int, ...],
    mechanism: str,
    recipe: tuple[tuple[str, Any], ...],
    names: tuple[str, ...],
) -> Calibration:
    """Calibrate on these features of these recordings, all if none is named; kept in this process."""
    chosen = [population.names.index(name) for name in names or population.names]
    rows = [
        Recording(
            np.arange(len(own)) / population.rate_hz,
            own,
            tuple(population.names[i] for i in chosen),
            f"{population.people[i]} {i}",
        )
        for i, own in ((i, population.as_recorded(i)[:, chosen]) for i in others)
    ]
    corpus = Corpus.of([one for one in rows if np.isfinite(one.features[: len(one.features) // N * N]).any()], N)
    adapt = part_of(mechanism).adapt
    if adapt is not None and not names:
        family = f"{mechanism}-anchored" if dict(recipe).get("anchored") else mechanism
        shipped = calibrations.load(f"everyday-{family}-{N}")
        if not set(shipped.provenance.recordings) & set(population.hashes):
            return referred(adapt)(shipped, corpus)[0]  # type: ignore[no-any-return]
    return calibrate(mechanism, corpus, **with_shipped_books(mechanism, dict(recipe)))


def _sums(mechanism: Mechanism, names: Sequence[str], wanted: Sequence[str], rows: Array, bounds: Array) -> Array:
    """(d, 5) of one release of rows (m, F): products and squares of chunk means; errors and squares of rows."""
    of = [names.index(name) for name in wanted]
    chunks = whole_chunks(rows, N)[WITHHELD:]
    found = _released(mechanism, names, whole_chunks(rows, N))[-len(chunks) :]
    if len(chunks) < LEAST:
        return np.zeros((len(of), 5))
    kept = [[own.removesuffix("_before") for own in mechanism.schema.names].index(name) for name in wanted]
    if "later" in mechanism.options:
        chunks, found = chunks[:-1], found[1:]
    x = np.concatenate([np.clip(chunk[of], *bounds[:, of, None]) for chunk in chunks], axis=1)
    y = np.concatenate([np.broadcast_to(one[kept], (len(of), N)) for one in found], axis=1)
    there = np.isfinite(x)
    x, y = (_centred(part, there) for part in (x, y))
    seen = there.reshape(len(of), -1, N).sum(axis=2)
    means = (part.reshape(len(of), -1, N).sum(axis=2) / np.maximum(seen, 1) for part in (x, y))
    a, b = (_centred(part, seen > 0) for part in means)
    return np.stack([part.sum(axis=1) for part in (a * b, a * a, b * b, (x - y) ** 2, x * x)], axis=1)


def _centred(values: Array, there: NDArray[np.bool_]) -> Array:
    """Values (d, m) less the mean of those that are there; 0 for the others."""
    held = np.where(there, values, 0.0)
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    return np.where(there, held - held.sum(axis=1, keepdims=True) / count, 0.0)


def _released(mechanism: Mechanism, names: Sequence[str], chunks: Array) -> list[Array]:
    """What a session publishes of chunks (T, F, n), the baseline's left out."""
    session, found = mechanism.session(), []
    taken = [names.index(name) for name in mechanism.calibration.names]
    for chunk in chunks[:, taken]:
        if session.awaits_baseline:
            session.anchor(chunk)
        else:
            found.append(session.release(chunk))
    return found


def _gallery(population: Population, own: tuple[int, ...], made: list[list[Mechanism]], split: int) -> Any:
    """People, scores by attacker, and chunks of a session; None where fewer than three people have the sessions."""
    from eyestream_lab.study.people.few import attack_all  # noqa: PLC0415  heavy

    cut = {
        p: _cut(population, [i for i in own if population.people[i] == p], len(made), split)
        for p in dict.fromkeys(population.people[i] for i in own)
    }
    there = {person: parts for person, parts in cut.items() if parts and min(map(len, parts)) >= WITHHELD + LEAST}
    if len(there) < 3:
        return None
    lengths = {person: min(map(len, parts)) for person, parts in there.items()}
    usual = 0.85 * float(np.median(list(lengths.values())))
    there = {person: parts for person, parts in there.items() if lengths[person] >= usual}
    length = min(lengths[person] for person in there)
    seen = [
        [_seen(mechanisms, population.names, parts[place][:length]) for parts in there.values()]
        for place, mechanisms in enumerate(made)
    ]
    return tuple(there), attack_all(seen[:-1], seen[-1], split), length - WITHHELD


def _cut(population: Population, recordings: Sequence[int], count: int, split: int) -> list[Array]:
    """Chunks (T, F, n) of `count` sessions of a person in random order; empty where there are not as many."""
    rng = np.random.default_rng((split, recordings[0]))
    whole = [whole_chunks(population.as_recorded(i), N) for i in recordings]
    if len(whole) == 1:
        gap = int(np.ceil(WINDOW_S * population.rate_hz / N))
        length = (len(whole[0]) - gap * (count - 1)) // count
        whole = (
            [whole[0][at : at + length] for at in range(0, count * (length + gap), length + gap)] if length > 0 else []
        )
    return [whole[i] for i in rng.permutation(len(whole))[:count]] if len(whole) >= count else []


def _seen(mechanisms: Sequence[Mechanism], names: Sequence[str], chunks: Array) -> Few:
    """What streams of one session publish, side by side; the first chunks are withheld of all alike."""
    parts = []
    for mechanism in mechanisms:
        published = _released(mechanism, names, chunks)[-(len(chunks) - WITHHELD) :]
        read = study_part(mechanism.name).read
        if read is not None:
            parts.append(read(mechanism, published))
        else:
            means = np.array([chunk.mean(axis=1) for chunk in published])
            ranks = means.argsort(axis=0).argsort(axis=0)
            parts.append(Few(means, ranks * 8 // len(means)))
    likely = [part.likely for part in parts if part.likely is not None]
    values, words = (np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("values", "words"))
    return Few(values, words, np.concatenate(likely, axis=1) if len(likely) == len(parts) else None)


def left_by_words(epsilon: float) -> float:
    """Share of a normal number's variance that the words of one asked feature leave, cut as the coder cuts them."""
    chains = build(calibrations.load(f"everyday-{ASKED}-{N}"), epsilon, features=["blink_rate"]).core.chains  # type: ignore[attr-defined]
    law = np.exp(-(GRID**2) / 2)[None]
    borders = chains.borders(law / law.sum(), 0)
    odds = np.array(
        [chains.odds(law / law.sum(), borders, np.array([word]))[0] for word in range(borders.shape[1] + 1)]
    )
    told = ((odds * law) @ GRID) ** 2 / (odds * law).sum(axis=1)
    return float(1 - told.sum() / (law @ GRID**2)[0])


def pooled(people: Array) -> list[dict[str, float]]:
    """For each feature, of sums (P, d, 5): r and explained with 95 % intervals over people."""
    rng = np.random.default_rng(1)
    picks = [np.arange(len(people)), *rng.integers(0, len(people), (400, len(people)))]
    sums = np.array([people[pick].sum(axis=0) for pick in picks])
    both = sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2] + 1e-300), 1 - sums[..., 3] / sums[..., 4]
    told = []
    for each in zip(*(part.T for part in both), strict=True):
        own: dict[str, float] = {}
        for name, of in zip(("r", "explained"), each, strict=True):
            low, high = np.nanpercentile(of[1:], [2.5, 97.5])
            own |= {name: float(of[0]), f"{name}_low": float(low), f"{name}_high": float(high)}
        told.append(own)
    return told


def summarise(records: Sequence[Record]) -> list[Record]:
    """A row for each way, set, feature and epsilon a minute, and one for each gallery, of all divisions."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in ("way", "set", "minute", "known")), []).append(record)
    rows: list[Record] = []
    for (way, label, minute, known), group in groups.items():
        base: Record = {"way": way, "set": label, "minute": minute, "known": known, "divisions": len(group)}
        if not known:
            sums = {person: np.sum([r["people"][person] for r in group], axis=0) for person in group[0]["people"]}
            told = pooled(np.array(list(sums.values())))
            rows += [base | {"feature": name} | own for name, own in zip(group[0]["names"], told, strict=True)]
            continue
        found, control = (
            [_strength(group, which, name) for name in group[0][which]] for which in ("trials", "control")
        )
        best, chance = (max(each, key=lambda one: float(one["area"])) for each in (found, control))
        rows.append(
            base
            | best
            | {
                "attackers": len(found),
                "chunks": min(r["chunks"] for r in group),
                "control": chance["area"],
                "control_low": chance["area_low"],
                "control_high": chance["area_high"],
            }
        )
    return rows


def _strength(group: Sequence[Record], which: str, attacker: str) -> Record:
    """Area and right names of an attacker, means over people with 95 % intervals over them (percentile bootstrap)."""
    people: dict[str, list[tuple[float, float]]] = {}
    for record in group:
        own = record[which][attacker]
        for name, area, first in zip(own["people"], own["areas"], own["firsts"], strict=True):
            people.setdefault(name, []).append((area, first))
    means = np.array([np.mean(rows, axis=0) for rows in people.values()])
    drawn = means[np.random.default_rng(0).integers(0, len(means), (1000, len(means)))].mean(axis=1)
    area, rate = means.mean(axis=0).tolist()
    low, high = np.quantile(drawn[:, 0], [0.025, 0.975]).tolist()
    told = {"attacker": attacker, "area": area, "area_low": low, "area_high": high, "rate": rate}
    return told | {"chance": 1 / group[0]["gallery"], "people": len(means)}


def asked_page(records: Sequence[Record]) -> str:
    """Page of the records of this part."""
    rows = summarise(records)
    parts = []
    for minute in sorted({row["minute"] for row in rows}):
        own = [row for row in rows if row["minute"] == minute]
        said = "What comes through: correlation of chunk means, and share of the variance of rows."
        parts.append(f"## Epsilon {minute:g} a minute\n\n{said}\n\n" + _utility(own))
        parts.append(
            "Who is recognised: area of the strongest attacker, and with people exchanged.\n\n" + _identity(own)
        )
    epsilon = min(row["minute"] for row in rows) * N / 120
    parts.append(
        f"Of one normal number, the words of one feature leave {left_by_words(epsilon):.3f} of the variance at epsilon "
        f"{epsilon:g}; no release of that epsilon leaves less than {one_shot(epsilon):.3f}."
    )
    return "\n\n".join(parts) + "\n"


def _within(row: Record, name: str) -> str:
    return f"{row[name]:.2f} [{row[name + '_low']:.2f}, {row[name + '_high']:.2f}]"


def _utility(rows: Sequence[Record]) -> str:
    told = [row for row in rows if not row["known"]]
    lines = [
        [row["set"], row["way"], row["feature"], _within(row, "r"), _within(row, "explained"), row["divisions"]]
        for row in told
    ]
    return pipes(["set", "released by", "feature", "r", "explained", "divisions"], lines)


def _identity(rows: Sequence[Record]) -> str:
    lines = [
        [
            row["set"],
            row["way"],
            row["known"],
            _within(row, "area"),
            row["attacker"],
            _within(row, "control"),
            f"{row['rate']:.2f} ({row['chance']:.2f})",
            row["chunks"],
            row["people"],
            row["attackers"],
        ]
        for row in rows
        if row["known"]
    ]
    heads = ["set", "released by", "known sessions", "area", "attacker", "people exchanged", "right names (chance)"]
    return pipes([*heads, "chunks a session", "people", "attackers"], lines)
