"""The verdict of a study in words, derived from its figures by rules that are written down in `MEANING`.

**What comes through** follows from the explained variance and its 95 % interval over people. It is "worse than the
mean" where the interval lies below 0, and "nothing seen" where the interval contains 0.

**Who is found** follows from the attacker with the largest area under the ROC curve, and from the smallest p times the
number of attackers. Beside "nobody was seen to be found" stands the smallest area that so many people would have shown:
a smaller one may exist unseen. Nothing is said of who is found where that area is above 0.8, or where these attackers
do not find the people of raw rows.

**No verdict** is given where less than 90 % of the values that the rows had were released.
"""

import math
from collections.abc import Sequence

from eyestream_lab.study.cells import Record
from eyestream_lab.study.ways import RAW_ROWS

COVERED = 0.9
_LEVEL = 0.05
_CLEARLY = 0.8
_NOBODY = "nobody was seen to be found"
_PERHAPS = "people are perhaps found"

MEANING = (
    "What the words mean. Everything: the variance around the common mean. Behaviour: that around each person's own "
    "mean. A little: less than 0.2 of it is explained. A part: 0.2 to below 0.5. Most: 0.5 or more. A way is useful "
    "when a part or most of one of the two comes through. Two tests say whether people are found: p of all attackers "
    "together is at most 0.05, and the 95 % interval of the area under the ROC curve lies above 0.5, a guess's area. "
    "Found: both say so. In part: both say so, and the area is below 0.8. Perhaps: only one says so. Nobody was seen "
    "to be found: neither does."
)
"""For readers of a verdict."""


def comes_through(row: Record, which: str = "explained") -> str:
    """Words on what comes through, around the common mean; `which` = "own": around each person's own mean."""
    low, value, high = (float(row[name]) for name in (f"{which}_low", which, f"{which}_high"))
    if high < 0:
        return "worse than the mean"
    if low <= 0:
        return "nothing seen"
    return "a little" if value < 0.2 else "a part" if value < 0.5 else "most"


def useful(row: Record) -> bool:
    """Whether a part of everything, or of behaviour, comes through."""
    return bool({comes_through(row), comes_through(row, "own")} & {"a part", "most"})


def who_is_found(row: Record) -> str:
    """Words on who is found: both tests, one of them, or none (`MEANING`)."""
    told_apart = row["p_all"] <= _LEVEL, row["area_low"] > 0.5
    if not any(told_apart):
        return _NOBODY
    if not all(told_apart):
        return _PERHAPS
    return "people are found" if row["area"] >= _CLEARLY else "people are found in part"


def no_verdict(row: Record) -> bool:
    """Whether too little was released to say anything."""
    return bool(row["coverage"] < COVERED)


def verdict(rows: Sequence[Record], limits: Sequence[Record], n: int, minute: float, *, quick: bool) -> list[str]:
    """Sentences about all ways with chunks of `n` rows at `minute` epsilon a minute."""
    own = [row for row in rows if row["n"] == n and row["minute"] == minute]
    raw = next(row for row in rows if row["n"] == n and row["label"] == RAW_ROWS)
    judged = [row for row in own if not no_verdict(row)]
    said = ["This was a quick run, to see that everything works: its figures mean little."] if quick else []
    second, chunk = (own[0][name] for name in ("second", "epsilon"))
    said.append(
        f"At {minute:g} epsilon a minute of the stream ({chunk:g} a chunk of {n} rows, {second:g} for any one second "
        f"of gaze), of {raw['people']} people:"
    )
    doubt = _cannot_be_judged(raw)
    said += _by_use(judged, doubt) if doubt else _by_use_and_identity(judged)
    said += [f"{r['label']}: no verdict, {r['coverage']:.0%} of the values are covered." for r in own if no_verdict(r)]
    limit = [r for r in limits if r["n"] == n and r["minute"] == minute]
    if limit and judged:
        best = max(judged, key=lambda r: float(r["explained"]))
        said.append(
            f"Under klt's model no release at this price could explain more than {limit[0]['explained']:.2f}; "
            f"{best['label']} explains {best['explained']:.2f}."
        )
    told_of_raw = "" if doubt else f"{who_is_found(raw)}, "
    said.append(f"Raw rows, for comparison: {told_of_raw}area {_interval(raw, 'area')} by {raw['attacker']}.")
    return said


def _cannot_be_judged(raw: Record) -> str:
    """A sentence on why nobody can say who is found; empty where that can be said.

    The standard error of an area falls with the root of the number of people: so many would be enough.
    """
    if raw["least_area"] > _CLEARLY:
        enough = math.ceil(raw["people"] * ((raw["least_area"] - 0.5) / (_CLEARLY - 0.5)) ** 2)
        return (
            f"Who is found cannot be judged: {raw['people']} people are too few. An area below {raw['least_area']:.2f} "
            f"would often not have been seen. About {enough} people are needed, and more are better."
        )
    if who_is_found(raw) in (_NOBODY, _PERHAPS):
        return f"Who is found cannot be judged: even of raw rows these attackers only say that {who_is_found(raw)}."
    return ""


def _by_use(judged: Sequence[Record], doubt: str) -> list[str]:
    """Sentences about ways, where `doubt` says why nobody can tell who is found."""
    some, nothing = [r for r in judged if useful(r)], [r for r in judged if not useful(r)]
    said = [doubt]
    if some:
        best = max(some, key=lambda r: float(r["explained"]))
        said.append(f"Useful: {_names(some)}. Of these {best['label']} says most: {_worth(best)}.")
    if nothing:
        said.append("Of little or no use: " + "; ".join(f"{r['label']} ({comes_through(r)})" for r in nothing) + ".")
    return [*said, "What to take: this study cannot tell. Take its figures of use alone, or study more people."]


def _by_use_and_identity(judged: Sequence[Record]) -> list[str]:
    """Sentences about all ways, and what to take."""
    said, take = [], "What to take: none of these at this price, because nothing of use comes through."
    both = [r for r in judged if useful(r) and who_is_found(r) == _NOBODY]
    other = [r for r in judged if useful(r) and r not in both]
    nothing = [r for r in judged if not useful(r)]
    if both:
        best = max(both, key=lambda r: max(float(r["explained"]), float(r["own"])))
        said.append(
            f"Useful, and nobody was seen to be found: {_names(both)}. Of these {best['label']} says most: "
            f"{_worth(best)}; area {_interval(best, 'area')}. An area below {best['least_area']:.2f} would often not "
            "have been seen."
        )
        take = f"What to take: {best['label']}."
    else:
        said.append("No way of releasing is useful and, at the same time, hides people from these attackers.")
    if other:
        best = max(other, key=lambda r: float(r["explained"]))
        named = "; ".join(f"{r['label']} ({who_is_found(r)}, area {_interval(r, 'area')})" for r in other)
        said.append(
            f"Useful, and not hidden: {named}. Of these {best['label']} says most: {_worth(best)}; {_who(best)}."
        )
        hidden = take if both else "What to take: none of these at this price, if people must not be recognised."
        take = f"{hidden} If it is acceptable that people are recognised: {best['label']}."
    if nothing:
        said.append(
            "Of little or no use: "
            + "; ".join(f"{r['label']} ({comes_through(r)}, {who_is_found(r)})" for r in nothing)
            + "."
        )
    return [*said, take]


def _names(rows: Sequence[Record]) -> str:
    return ", ".join(row["label"] for row in rows)


def _interval(row: Record, name: str) -> str:
    return f"{row[name]:.2f} [{row[name + '_low']:.2f}, {row[name + '_high']:.2f}]"


def _worth(row: Record) -> str:
    return (
        f"{comes_through(row)} of everything ({_interval(row, 'explained')} of the variance, median feature "
        f"{row['explained_middle']:.2f}), {comes_through(row, 'own')} of behaviour ({_interval(row, 'own')}, median "
        f"feature {row['own_middle']:.2f})"
    )


def _who(row: Record) -> str:
    rate = f"{_interval(row, 'rate')} right names, chance {row['chance']:.2f}"
    return f"{who_is_found(row)} by {row['attacker']}, area {_interval(row, 'area')} ({rate})"
