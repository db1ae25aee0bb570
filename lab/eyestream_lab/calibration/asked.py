"""Calibration of asked features: clip, unit and chain of each feature, from chunk means of a public corpus.

The chain is fitted by expectation and maximisation over pairs of chunks in sequence (Dempster, Laird, Rubin, J. R.
Stat. Soc. B 39(1), 1977). To adapt to another tracker, pairs of its recordings are counted beside `_PAIRS` of the base;
units and clips are the tracker's own. No epsilon enters here: one calibration serves every choice of features.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import BASELINE_S, Anchor
from eyestream.core.calibration import Calibration, product
from eyestream.core.mechanisms.asked.chain import MOST
from eyestream.core.mechanisms.asked.tables import AskedTables
from eyestream.errors import CalibrationError
from eyestream_lab.calibration.anchors import anchor_of
from eyestream_lab.calibration.corpus import WORDBOOK_MINIMA, Corpus

Array = NDArray[np.float64]
Law = tuple[Array, Array, Array]
"""Shares, keeps and moves (J,) of one feature's chain."""

_CLIP = 0.99
"""Share of the corpus' changes, row by row, inside the clip."""
_LEAST_FIRST, _LEAST_MOVE = 0.3, 0.12
_WIDTHS, _SHARES = np.array([0.45, 1.0, 2.0]), np.array([0.4, 0.4, 0.2])
_ROUNDS = 60
_PAIRS = 200.0
_ROOTED = ("blink_rate",)
"""Counts of which roots are coded: how far a rate of blinks moves grows with its level, and was seen to name people.
Their mean is added first: the root of a few blinks alone moves farther than that of many. Rates of saccades and
fixations name nobody, and roots of them say less."""


def calibrate_asked(
    corpus: Corpus,
    *,
    declared: Sequence[str] = WORDBOOK_MINIMA,
    description: str = "recordings given by the user",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Calibration:
    """Calibration of asked features from a corpus; features that are `declared` cannot be asked for.

    Raises
    ------
    CalibrationError
        A recording holds nothing behind its baseline, or no two chunks in sequence.
    """
    made = _made(corpus, np.isin(corpus.names, list(declared)), description, None)
    progress(1, 1)
    return made


def adapt_asked(
    base: Calibration, corpus: Corpus, description: str = "recordings given by the user"
) -> tuple[Calibration, tuple[str, ...]]:
    """`base` for the tracker that made `corpus`, and the features that vary too little in it to be asked for.

    Raises
    ------
    CalibrationError
        The base is of other features, another rate or another chunk length.
    """
    base.check_stream(corpus.names, corpus.rate_hz)
    if corpus.n != base.n:
        raise CalibrationError(f"the recordings are cut into chunks of {corpus.n} rows, the calibration of {base.n}")
    made = _made(corpus, base.declared, f"{description}, beside {base.provenance.corpus}", base)
    lacking = tuple(np.array(base.names)[made.constant & ~base.constant].tolist())
    recordings = (*base.provenance.recordings, *corpus.hashes)
    return replace(
        made,
        provenance=replace(made.provenance, recordings=recordings, made_by=product()),
        fingerprints=np.unique(np.concatenate([base.fingerprints, corpus.fingerprints])),
    ), lacking


def _made(corpus: Corpus, declared: NDArray[np.bool_], description: str, base: Calibration | None) -> Calibration:
    anchor, root = _rooted(corpus, None if base is None else base.anchor)
    people = list(_changes(corpus, anchor))
    rows = np.abs(np.concatenate(people)).transpose(1, 0, 2).reshape(len(root), -1)
    clip = np.array([np.quantile(own[np.isfinite(own)], _CLIP) if np.isfinite(own).any() else 0.0 for own in rows])
    people = [_means(np.clip(own, -clip[:, None], clip[:, None])) for own in people]
    unit = np.sqrt(_mean_square(np.concatenate(people)))
    unit = np.where(declared | ~(unit > 0), 0.0, unit)
    people = [np.clip(own / np.where(unit > 0, unit, 1.0), -MOST, MOST) for own in people]
    before, after = (np.concatenate([own[part] for own in people]) for part in (slice(-1), slice(1, None)))
    first = np.maximum(
        np.nan_to_num(np.sqrt(_mean_square(np.array([own[0] for own in people]))), nan=1.0), _LEAST_FIRST
    )
    chains = [
        _fitted(before[:, f], after[:, f], None if base is None else _law(base, f)) for f in range(len(corpus.names))
    ]
    tables = AskedTables(unit, root, np.zeros(len(unit)), first, *map(np.array, zip(*chains, strict=True)))
    raw = np.concatenate([_means(own) for own in _changes(corpus, replace(anchor, roots=None))])
    residual = np.nan_to_num(_mean_square(raw - tables.changes(np.concatenate(people))))
    nothing = np.zeros(len(unit))
    return corpus.calibration(
        "asked",
        replace(tables, residual=residual),
        description=description,
        declared=declared,
        lo=-clip,
        hi=clip,
        fill=nothing,
        takes_off=anchor,
    )


def _rooted(corpus: Corpus, base: Anchor | None) -> tuple[Anchor, Array]:
    """The public part of the baselines, and the mean root (F,) of features of which roots are taken; 0 of others."""
    count = np.maximum(corpus.seen.sum(axis=(0, 2)), 1)
    mean = (corpus.chunks * corpus.seen).sum(axis=(0, 2)) / count
    roots = np.where(np.isin(corpus.names, _ROOTED), np.maximum(mean, 0.0), 0.0) if base is None else base.roots
    assert roots is not None
    bounds = [np.where(roots > 0, np.sqrt(np.maximum(bound + roots, 0.0)), bound) for bound in (corpus.lo, corpus.hi)]
    values = np.sqrt(np.maximum(corpus.chunks + roots[:, None], 0.0)) * corpus.seen
    level = values.sum(axis=(0, 2)) / count
    anchor = anchor_of(bounds[0], bounds[1], np.zeros(len(roots)), corpus.n, corpus.rate_hz)
    return replace(anchor, roots=roots), np.where(roots > 0, level, 0.0)


def _changes(corpus: Corpus, anchor: Anchor) -> Iterator[Array]:
    """Chunks (T, F, n) of each person after the baseline, less the baseline; NaN where nothing was seen."""
    for one in np.unique(corpus.person):
        own = corpus.person == one
        index = corpus.index[own]
        chunks = np.full((int(index.max()) + 1, *corpus.chunks.shape[1:]), np.nan)
        chunks[index] = np.where(corpus.seen[own], corpus.chunks[own], np.nan)
        if len(chunks) <= anchor.chunks:
            raise CalibrationError(f"a recording holds nothing behind the {BASELINE_S:g} s of its baseline")
        baseline = anchor.session()
        for chunk in chunks[: anchor.chunks]:
            baseline.take(chunk)
        yield np.array([baseline.off(chunk) for chunk in chunks[anchor.chunks :]])


def _means(chunks: Array) -> Array:
    """(T, F) means of chunks (T, F, n), NaN where nothing was seen."""
    there = np.isfinite(chunks)
    count = there.sum(axis=2)
    means: Array = np.where(count > 0, np.where(there, chunks, 0.0).sum(axis=2) / np.maximum(count, 1), np.nan)
    return means


def _mean_square(values: Array) -> Array:
    """(F,) of (m, F), NaN where nothing is."""
    square: Array = _means((values * values).T[None])[0]
    return square


def _law(base: Calibration, feature: int) -> Law:
    tables = base.tables
    if not isinstance(tables, AskedTables):
        raise CalibrationError("the calibration to adapt is none of asked features")
    return tables.shares[feature], tables.keeps[feature], tables.moves[feature]


def _fitted(before: Array, after: Array, base: Law | None) -> Law:
    """Shares, keeps and moves of the chain of changes `before` and a chunk `after`, in units; NaN is missing."""
    paired = np.isfinite(before) & np.isfinite(after)
    x, y = before[paired], after[paired]
    if base is None and (not len(x) or not x.any()):
        return _SHARES, np.full(3, 0.5), np.ones(3)
    if base is None:
        keep = float(np.clip((x @ y) / (x @ x), 0.0, 0.99))
        shares, keeps, moves = _SHARES, np.full(3, keep), max((y - keep * x).std(), _LEAST_MOVE) * _WIDTHS
        weight = np.zeros(3)
    else:
        shares, keeps, moves = base
        weight = _PAIRS * shares
    old = (keeps, moves)
    for _ in range(_ROUNDS):
        likely = shares * np.exp(-0.5 * ((y[:, None] - keeps * x[:, None]) / moves) ** 2) / moves + 1e-12
        likely /= likely.sum(axis=1, keepdims=True)
        counts = likely.sum(axis=0) + weight
        shares = counts / counts.sum()
        power = (likely * (x * x)[:, None]).sum(axis=0) + weight
        keeps = np.clip(((likely * (x * y)[:, None]).sum(axis=0) + weight * old[0]) / np.maximum(power, 1e-9), 0.0, 1.0)
        missed = (likely * (y[:, None] - keeps * x[:, None]) ** 2).sum(axis=0) + weight * old[1] ** 2
        moves = np.clip(np.sqrt(missed / counts), _LEAST_MOVE, 3.0)
    return shares, keeps, moves
