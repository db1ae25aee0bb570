"""The page of a study of systems that release corpora."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from eyestream.lab.releases.gaze import STATISTICS
from eyestream.lab.releases.published import PUBLISHED, verdict

__all__ = ["page"]

Cell = Mapping[str, Any]
_NETWORKS = "networks on events, raw tested"


def page(cells: Mapping[str, Cell], corpus: str, people: int, tasks: int) -> str:
    """Tables of all cells, by the line that each stands in; `raw` is the corpus as it is."""
    lines = ["# Systems that release corpora", ""]
    lines += [f"Corpus: {corpus or 'not named'}, {people} people, {tasks} tasks. One release a line.", ""]
    lines += [*_recognised(cells), "", *_useful(cells), "", *_beside(cells, corpus, people)]
    return "\n".join(lines) + "\n"


def _recognised(cells: Mapping[str, Cell]) -> Iterator[str]:
    first = cells["raw"]
    yield "## Who is recognised"
    yield ""
    yield (
        f"Shares of people who are named rightly, from half of the tasks; chance is {first['chance_person']:.2f}. "
        f"Activities by a random forest of the other people; chance is {first['chance_task']:.2f}."
    )
    yield ""
    yield f"| system | epsilon of a person | {_NETWORKS} | raw tested, best | released tested, best | activity |"
    yield "|---|---|---|---|---|---|"
    for key, cell in cells.items():
        if "refused" in cell:
            yield f"| {key} | refused: {cell['refused']} | | | | |"
            continue
        loss = cell.get("claim", {}).get("loss")
        epsilon = f"{loss['epsilon']:.3g}" if loss else ""
        best = [_best(cell, f", {which} tested") for which in ("raw", "released")]
        activity = f"{np.mean(list(cell['activity'].values())):.2f}" if "activity" in cell else ""
        yield f"| {key} | {epsilon} | {_share(cell.get(_NETWORKS))} | {best[0]} | {best[1]} | {activity} |"


def _useful(cells: Mapping[str, Cell]) -> Iterator[str]:
    yield "## What is left"
    yield ""
    yield "Of gaze alone. The mean error of prediction is of somebody else's raw gaze 0.15 s later."
    yield ""
    yield f"| system | {' | '.join(STATISTICS)} | KL of saliency | prediction, degrees | processor s |"
    yield "|---|" + "---|" * (len(STATISTICS) + 3)
    for key, cell in cells.items():
        seconds = f"{cell['processor_s']:.0f}" if "processor_s" in cell else ""
        if "statistics" in cell:
            told = " | ".join(f"{cell['statistics'][name]:.2f}" for name in STATISTICS)
            yield f"| {key} | {told} | {cell['kl']:.3f} | {cell['predicted_deg']:.2f} | {seconds} |"
        elif seconds:
            yield f"| {key} |{' |' * (len(STATISTICS) + 2)} {seconds} |"


def _beside(cells: Mapping[str, Cell], corpus: str, people: int) -> Iterator[str]:
    yield "## Beside the papers"
    yield ""
    yield "| system | corpus of the paper | published | ours | verdict |"
    yield "|---|---|---|---|---|"
    for one in PUBLISHED:
        own = cells.get(one.line, {}).get(_NETWORKS)
        said = verdict(one, corpus, own, people)
        yield f"| {one.line} | {one.corpus} | {one.share:.2f} | {_share(own)} | {said} |"


def _best(cell: Cell, end: str) -> str:
    means = [float(np.mean(value)) for key, value in cell.items() if key.endswith(end)]
    return f"{max(means):.2f}" if means else ""


def _share(shares: list[float] | None) -> str:
    return "" if shares is None else f"{np.mean(shares):.2f}"
