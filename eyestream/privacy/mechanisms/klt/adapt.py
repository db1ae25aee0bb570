"""A calibration for another tracker: the model of a large corpus, and maps from recordings of that tracker.

How features hang together and how they move from chunk to chunk is much the same everywhere, once each is on its map;
what differs between trackers are units, offsets and the shapes of their laws: the maps. A map takes few recordings, the
model takes many. So the maps, ranges and fills are the tracker's own, and everything behind the maps is the base's.

Maps are figures of recordings: these have to be public, or of people who agreed to publish them. Epsilon is untouched.
"""

from dataclasses import replace

import numpy as np

from eyestream.errors import CalibrationError
from eyestream.privacy.calibration import Calibration, JointTables, Provenance
from eyestream.privacy.calibration.calibration import product
from eyestream.privacy.calibration.corpus import Corpus
from eyestream.privacy.mechanisms.klt.maps import rank_knots
from eyestream.privacy.mechanisms.klt.standard import RANK_TAIL

__all__ = ["adapt_joint"]


def adapt_joint(
    base: Calibration, corpus: Corpus, description: str = "recordings given by the user"
) -> tuple[Calibration, tuple[str, ...]]:
    """`base` with the maps of the tracker that made `corpus`, and the features that it says too little of.

    Those keep the base's map: they were never recorded, or did not vary.

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
    held = np.where(corpus.present[:, :, None], corpus.chunks, np.nan)
    rows = held.transpose(0, 2, 1).reshape(-1, len(corpus.names))
    known = np.flatnonzero(corpus.present.any(axis=0) & ~base.constant)
    lo, hi, fill = base.lo.copy(), base.hi.copy(), base.fill.copy()
    knots, levels = tables.knots.copy(), tables.levels.copy()
    kept = [name for name, constant in zip(base.names, base.constant, strict=True) if not constant]
    for f in known:
        low, high = np.nanquantile(rows[:, f], (RANK_TAIL, 1 - RANK_TAIL))
        if not high > low:
            continue
        lo[f], hi[f] = low, high
        own_knots, own_levels = rank_knots(rows[:, [f]], lo[[f]], hi[[f]])
        knots[f], levels[f] = own_knots[0], own_levels[0]
        fill[f] = np.interp(tables.mean[f], levels[f], knots[f])
        kept.remove(base.names[f])
    provenance = Provenance(
        corpus=f"{description}: maps; {base.provenance.corpus}: all else",
        people=len(corpus.hashes),
        chunks=len(corpus.chunks),
        coverage=None,
        recordings=(*base.provenance.recordings, *corpus.hashes),
        made_by=product(),
    )
    return replace(
        base,
        units=corpus.units,
        lo=lo,
        hi=hi,
        fill=fill,
        tables=replace(tables, knots=knots, levels=levels),
        provenance=provenance,
        fingerprints=np.unique(np.concatenate([base.fingerprints, corpus.fingerprints])),
        front_end=corpus.front_end,
        anchor=anchor,
    ), tuple(kept)
