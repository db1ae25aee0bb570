"""A calibration for another tracker: its maps, and a model between that of a large corpus and its own.

What differs between trackers are units, offsets and the shapes of features' laws: the *maps*. They take few recordings,
and are always the tracker's own. How features hang together and how they move is much the same everywhere, but not
quite. The base knows it from many people, the recordings know it of these people. So the moments of features on their
maps (`klt.model.Moments`) are mixed,

    (1 - w) those of the base + w those of the recordings,

and w is the one of `SHARES` with which people who are left out are told best, in folds over the recordings. With w = 0
that is the base's model, with w = 1 what `eyestream calibrate` makes of these recordings alone. A feature that they
do not have, or that does not vary in them, keeps the base's map.

Maps and moments are figures of recordings: these have to be public, or of people who agreed to publish them. Epsilon is
untouched.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, JointTables, Provenance, product
from eyestream.errors import CalibrationError
from eyestream_lab.calibration.corpus import Corpus
from eyestream_lab.calibration.joint import tables_of
from eyestream_lab.calibration.model import Model, Moments
from eyestream_lab.calibration.shares import reference, shares_of, told
from eyestream_lab.calibration.standard import Standard

Array = NDArray[np.float64]

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the recordings' own moments in the mixture."""

TIED = 1.02
"""Shares that miss no more than so many times the least tell as much, and the largest of them is taken: in a fold the
recordings' own moments are those of fewer people than in the end."""

FOLDS = 4
"""At most. Recordings that stand one behind the other are left out together, as they may be one person's."""

FEWEST = 3
"""Recordings that moments are learned from; of fewer, only the maps are taken."""


def adapt_joint(
    base: Calibration, corpus: Corpus, description: str = "recordings given by the user"
) -> tuple[Calibration, tuple[str, ...]]:
    """`base` for the tracker that made `corpus`, and the features that it says too little of.

    Raises
    ------
    CalibrationError
        The base has no maps, or is of other features, another rate or another chunk length.
    """
    tables = base.tables
    if not isinstance(tables, JointTables) or tables.knots is None or tables.levels is None:
        raise CalibrationError(
            "the calibration to adapt has no maps of features; take one of klt that was not --linear"
        )
    base.check_stream(corpus.names, corpus.rate_hz)
    if corpus.n != base.n:
        raise CalibrationError(f"the recordings are cut into chunks of {corpus.n} rows, the calibration of {base.n}")
    anchor = base.anchor
    if anchor is not None:
        corpus, anchor = corpus.anchored()
    own = Standard.mapped(corpus, base.constant)
    known = np.isin(np.arange(len(base.names)), own.active)
    assert own.knots is not None
    assert own.levels is not None
    maps = {
        "knots": np.where(known[:, None], own.knots, tables.knots),
        "levels": np.where(known[:, None], own.levels, tables.levels),
    }
    if len(corpus.hashes) < FEWEST:
        fill = [np.interp(*each) for each in zip(tables.mean, maps["levels"], maps["knots"], strict=True)]
        adapted, share = replace(tables, **maps), 0.0
    else:
        fill = own.fill.tolist()
        adapted, share = _mixed(base, tables, own, corpus)
        adapted = replace(adapted, **maps)
    provenance = Provenance(
        corpus=f"{description}: maps, and {share:.0%} of the model; {base.provenance.corpus}: all else",
        people=len(corpus.hashes),
        chunks=len(corpus.chunks),
        coverage=None,
        recordings=(*base.provenance.recordings, *corpus.hashes),
        made_by=product(),
    )
    return replace(
        base,
        units=corpus.units,
        lo=np.where(known, own.lo, base.lo),
        hi=np.where(known, own.hi, base.hi),
        fill=np.where(known, fill, base.fill),
        tables=adapted,
        provenance=provenance,
        fingerprints=np.unique(np.concatenate([base.fingerprints, corpus.fingerprints])),
        front_end=corpus.front_end,
        takes_off=anchor,
    ), tuple(np.array(base.names)[~known & ~base.constant].tolist())


def _mixed(base: Calibration, tables: JointTables, own: Standard, corpus: Corpus) -> tuple[JointTables, float]:
    """The base's figures with the mixture that tells most of people who are left out, and their share of it."""
    there = _with_all_of(base, tables, own)
    old = _moments_of(tables, there.sd)
    order = np.unique(corpus.person)
    folds = [np.isin(corpus.person, left) for left in np.array_split(order, min(FOLDS, len(order)))]
    modes = (there.chunks @ there.modes.T).reshape(len(there.chunks), -1)
    missed = np.zeros(len(SHARES))
    for left in folds:
        new = _placed(Moments.of_rows(*_of(~left, own, corpus)), own, there)
        for i, share in enumerate(SHARES):
            figures = _tables(tables, there, old.mixed(new, share))
            schedule = reference(figures, corpus)
            for one in np.unique(corpus.person[left]):
                own_modes = modes[corpus.person == one]
                missed[i] += float(((own_modes - told(figures, schedule, own_modes)) ** 2).sum())
    share = max(one for one, own in zip(SHARES, missed, strict=True) if own <= TIED * missed.min())
    mixed = _tables(tables, there, old.mixed(_placed(Moments.of_rows(own, corpus), own, there), share))
    if base.anchor is not None:
        before = 1.0 if tables.shares is None else tables.shares
        mixed = replace(mixed, shares=(1 - share) * before + share * shares_of(mixed, there, corpus))
    return mixed, share


def _with_all_of(base: Calibration, tables: JointTables, own: Standard) -> Standard:
    """`own` with every feature that the base releases; those that it does not have lie at their mean."""
    active = np.flatnonzero(~base.constant)
    place = np.searchsorted(active, own.active)
    chunks = np.zeros((len(own.chunks), len(active), own.chunks.shape[2]))
    present = np.ones(chunks.shape[:2], dtype=np.bool_)
    chunks[:, place], present[:, place] = own.chunks, own.present
    known = np.isin(np.arange(len(base.names)), own.active)
    mean, sd = np.where(known, own.mean, tables.mean), np.where(known, own.sd, tables.sd)
    return replace(own, chunks=chunks, present=present, active=active, mean=mean, sd=sd)


def _of(kept: NDArray[np.bool_], own: Standard, corpus: Corpus) -> tuple[Standard, Corpus]:
    """Both of some chunks alone."""
    some = replace(own, chunks=own.chunks[kept], present=own.present[kept])
    return some, replace(corpus, person=corpus.person[kept], index=corpus.index[kept])


def _moments_of(tables: JointTables, sd: Array) -> Moments:
    """Moments of the modes that a calibration describes, in units of another `sd` (F,)."""
    active = np.flatnonzero(tables.sd > 0)
    expand = tables.expand * np.repeat(tables.sd[active] / sd[active], len(tables.modes))
    stable, transient = tables.covariances
    move = tables.poles[1] * np.eye(len(transient)) if tables.moves is None else tables.moves[1]
    return Moments(*(expand.T @ part @ expand for part in (stable, transient, move @ transient)))


def _placed(moments: Moments, own: Standard, there: Standard) -> Moments:
    """The same with features that were not recorded, and of which nothing is known."""
    modes = len(own.modes)
    each = np.searchsorted(there.active, own.active)[:, None] * modes + np.arange(modes)
    at = np.ix_(each.ravel(), each.ravel())
    placed = np.zeros((3, *(2 * (len(there.active) * modes,))))
    for room, part in zip(placed, (moments.stable, moments.transient, moments.later), strict=True):
        room[at] = part
    return Moments(*placed)


def _tables(tables: JointTables, there: Standard, moments: Moments) -> JointTables:
    """Figures of a model, for features as `there` has them; books and what is shed are the base's."""
    model: Model = moments.model()
    if tables.weights[0] < 1:
        model = model.shed(1 / float(tables.weights[0]) - 1)
    described = (there.chunks @ there.modes.T).reshape(len(there.chunks), -1)
    books = {name: getattr(tables, name) for name in ("book_shapes", "book_points", "book_shares", "book_weights")}
    return replace(tables_of(there, model, described), **books)
