"""Figures out of records: latency distributions, cost against size, stages stacked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["draw"]

Records = Sequence[dict[str, Any]]


def draw(records: Records, folder: Path) -> str:
    """Write every figure that `records` hold something for; says what was written, or that matplotlib is missing."""
    try:
        import matplotlib as mpl
    except ImportError:
        return "no figures: matplotlib is not installed (pip install matplotlib)"
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, paint in (
        ("latency", _latency),
        ("size", _size),
        ("stages", _stages),
        ("devices", _devices),
        ("crossover", _crossover),
    ):
        figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
        if paint(records, axes):
            figure.savefig(folder / f"{name}.svg")
            written.append(f"{name}.svg")
        plt.close(figure)
    return f"figures in {folder}: {', '.join(written) or 'none, nothing to draw'}"


def _latency(records: Records, axes: Any) -> bool:
    """Distribution of every latency: the hop's, else the kernel's."""
    own = [r for r in records if r["benchmark"] == "hop"] or [
        r for r in records if r.get("state", "").startswith("warm")
    ]
    own = [r for r in own if "quantiles_us" in r and r.get("state") != "warm, by size"]
    shares = [i / 100 for i in range(101)]
    groups = list(dict.fromkeys(_group(record) for record in own))
    for record in own:
        compared = record.get("subject") == "null relay"
        axes.plot(
            record["quantiles_us"],
            shares,
            color=f"C{groups.index(_group(record))}",
            linestyle="--" if compared else "-",
            label=_group(record)
            if "stalls" in record
            else f"{_group(record)} {record.get('subject', record.get('state'))}",
        )
    axes.set(xscale="log", xlabel="us", ylabel="share of the samples", title="latency")
    axes.legend(fontsize="small")
    return bool(own)


def _group(record: dict[str, Any]) -> str:
    """What a curve shares with the one it is compared with."""
    if "rate" in record:
        return f"{record['broker']}, {record['rate']} rows/s,"
    return str(record["subject"] if "subject" in record else record["mechanism"])


def _size(records: Records, axes: Any) -> bool:
    """Cost of a release against chunk length and features."""
    own = [r for r in records if r.get("state") == "warm, by size"]
    for color, name in enumerate(dict.fromkeys(r["mechanism"] for r in own)):
        for features, style in ((8, ":"), (52, "-"), (208, "--")):
            line = sorted((r["n"], r["median_us"]) for r in own if (r["mechanism"], r["F"]) == (name, features))
            label = f"{name}, F = {features}"
            axes.plot(*zip(*line, strict=True), marker="o", color=f"C{color}", linestyle=style, label=label)
    axes.set(xscale="log", yscale="log", xlabel="rows of a chunk", ylabel="us", title="one release")
    lengths = sorted({r["n"] for r in own})
    axes.set_xticks(lengths, labels=lengths)
    axes.set_xticks([], minor=True)
    axes.legend(fontsize="small", ncols=2)
    return bool(own)


def _crossover(records: Records, axes: Any) -> bool:
    """Where planned FFTs overtake the product with a basis: their ratio against k, a line for each length."""
    own = [r for r in records if r.get("state") == "transform"]
    for color, n in enumerate(sorted({r["n"] for r in own})):
        for blas, style in zip(dict.fromkeys(r["blas"] for r in own), ("-", ":"), strict=False):
            line = sorted((r["k"], r["ratio_basis_to_fftw"]) for r in own if (r["n"], r["blas"]) == (n, blas))
            label = f"n = {n}, {blas}"
            axes.plot(*zip(*line, strict=True), marker="o", color=f"C{color}", linestyle=style, label=label)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="coefficients kept, k", ylabel="time, basis / planned FFTW")
    ticks = sorted({r["k"] for r in own})
    axes.set_xticks(ticks, labels=ticks)
    axes.set_xticks([], minor=True)
    axes.set(title="above 1, FFTW is faster")
    axes.legend(fontsize="small")
    return bool(own)


def _stages(records: Records, axes: Any) -> bool:
    """Stages of a release, stacked."""
    own = [r for r in records if r.get("state") == "stage"]
    names = list(dict.fromkeys(r["mechanism"] for r in own))
    below = [0.0] * len(names)
    for stage in dict.fromkeys(r["stage"] for r in own):
        heights = [next(r["median_us"] for r in own if (r["mechanism"], r["stage"]) == (m, stage)) for m in names]
        axes.bar(names, heights, bottom=below, label=stage)
        below = [a + b for a, b in zip(below, heights, strict=True)]
    axes.set(ylabel="us", title="stages of a release of 52x64")
    axes.legend()
    return bool(own)


def _devices(records: Records, axes: Any) -> bool:
    """Latency of a chunk against the number of devices."""
    own = sorted((r["devices"], r["median_us"], r["p99_us"]) for r in records if r["benchmark"] == "fleet")
    if own:
        devices, median, p99 = zip(*own, strict=True)
        axes.plot(devices, median, marker="o", label="median")
        axes.plot(devices, p99, marker="o", label="p99")
    axes.set(xscale="log", yscale="log", xlabel="devices", ylabel="us", title="last row to chunk")
    axes.legend()
    return bool(own)
