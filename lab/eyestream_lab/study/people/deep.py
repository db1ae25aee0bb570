"""A deep attacker: a densely connected network on sequences of released chunks, in JAX (extra `deep`).

In the manner of Eye Know You Too (Lohr and Komogortsev, IEEE Transactions on Information Forensics and Security 17,
2022), written from the paper: eight one-dimensional convolutions of width 3, each reading all that was made before it,
dilated by 1, 2, 4 ... 64 and 1 again at the start; normalisation and ReLU before each; the mean over time; one linear
layer to an embedding; multi-similarity loss and a tenth of cross-entropy; Adam with a one-cycle learning rate. What
differs: the input is rows of released features, not gaze velocity, over 128 rows instead of five seconds; 28 channels a
layer and 64 embedded numbers, for about 10^5 weights with 48 features; normalisation over time within a window, so that
training and use are the same. A window keeps its level beside its shape: the features enter z-scored, not normalised.

It learns from the labelled sessions, and from public people: the attacker has the program, and releases their
recordings anew as often as wanted. A session is named by the mean embedding of its windows, by cosine similarity.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from eyestream_lab.study.people.galleries import Gallery

Array = NDArray[np.float64]
Weights = dict[str, Any]

DILATIONS = (1, 1, 2, 4, 8, 16, 32, 64)
GROWTH = 28
EMBEDDED = 64


class LearningSettings:
    """How long it learns; tests learn shorter."""

    steps = 300
    people_a_batch, windows_a_person = 10, 5
    rate = 3e-3
    rows = 128
    public_releases = 3


def deep_scores(gallery: Gallery, seed: int, settings: type[LearningSettings] = LearningSettings) -> Array:
    """(P, P) cosine similarities of unknown and known sessions; `seed` is for weights and windows."""
    known, unknown = ([_rows(gallery, chunks) for chunks in group] for group in (gallery.known, gallery.unknown))
    public = [[_rows(gallery, r) for r in _released_anew(gallery, raw, settings)] for raw in gallery.background]
    return sequence_scores([[session] for session in known], [unknown], public, seed, settings)[0]


def sequence_scores(
    known: Sequence[Sequence[Array]],
    unknown: Sequence[Sequence[Array]],
    public: Sequence[Sequence[Array]],
    seed: int,
    settings: type[LearningSettings] = LearningSettings,
) -> list[Array]:
    """Cosine similarities (U, P) of each group of unknown sessions (m, A) with P known people.

    Parameters
    ----------
    known, public
        Sessions (m, A) of each person to be named, and of others to learn from too.
    """
    every = np.concatenate([session for own in known for session in own])
    mean, sd = every.mean(axis=0), every.std(axis=0)
    kept = sd > 0

    def scaled(session: Array) -> Array:
        return _pad((session - mean)[:, kept] / sd[kept], settings.rows)

    rng = np.random.default_rng(seed)
    weights = _learn([list(map(scaled, own)) for own in (*known, *public)], rng, settings)

    def embedded(session: Array) -> Array:
        rows = scaled(session)
        starts = np.unique(np.linspace(0, len(rows) - settings.rows, 16).astype(int))
        windows = np.array([rows[s : s + settings.rows] for s in starts], np.float32)
        pad = np.concatenate([windows, np.repeat(windows[:1], 16 - len(windows), axis=0)])  # one shape: compiled once
        found: Array = np.asarray(_embed(weights, pad), np.float64)[: len(windows)].mean(axis=0)
        unit: Array = found / np.linalg.norm(found)
        return unit

    right = np.array([np.mean([embedded(session) for session in own], axis=0) for own in known])
    return [np.array([embedded(session) for session in group]) @ right.T for group in unknown]


def _rows(gallery: Gallery, chunks: NDArray[np.floating]) -> Array:
    """(m, A) rows of a session's chunks (T, F, n)."""
    return np.concatenate(np.asarray(chunks, np.float64)[:, gallery.active].transpose(0, 2, 1))


def _released_anew(gallery: Gallery, raw: Array, settings: type[LearningSettings]) -> list[Array]:
    """Releases of a public recording, some times over; the recording where there is no mechanism."""
    if gallery.mechanism is None:
        return [raw]
    sessions = [gallery.mechanism.session() for _ in range(settings.public_releases)]
    return [np.array([session.release(chunk) for chunk in raw]) for session in sessions]


def _pad(rows: Array, least: int) -> Array:
    """Rows, the session over again until there are enough."""
    return rows if len(rows) >= least else np.tile(rows, (-(-least // len(rows)), 1))[:least]


def _start(rng: np.random.Generator, channels: int, people: int) -> Weights:
    weights: Weights = {}
    for layer, _ in enumerate(DILATIONS):
        inside = channels + GROWTH * layer
        weights[f"kernel{layer}"] = (rng.normal(size=(3, inside, GROWTH)) * np.sqrt(2 / (3 * inside))).astype("f4")
        weights[f"gain{layer}"] = np.ones(inside, "f4")
        weights[f"shift{layer}"] = np.zeros(inside, "f4")
    last = channels + GROWTH * len(DILATIONS)
    weights["out"] = (rng.normal(size=(last, EMBEDDED)) / np.sqrt(last)).astype("f4")
    weights["classes"] = (rng.normal(size=(EMBEDDED, people)) / np.sqrt(EMBEDDED)).astype("f4")
    return weights


def _network(weights: Weights, windows: Any) -> Any:
    """(B, E) embeddings of windows (B, rows, channels)."""
    made = windows
    for layer, dilation in enumerate(DILATIONS):
        scaled = jax.nn.relu(made * weights[f"gain{layer}"] + weights[f"shift{layer}"])
        fresh = jax.lax.conv_general_dilated(
            scaled,
            weights[f"kernel{layer}"],
            (1,),
            "SAME",
            rhs_dilation=(dilation,),
            dimension_numbers=("NWC", "WIO", "NWC"),
        )
        size = jnp.sqrt((fresh**2).mean(axis=(1, 2), keepdims=True) + 1e-6)
        made = jnp.concatenate([made, fresh / size], axis=2)
    return made.mean(axis=1) @ weights["out"]


_embed = jax.jit(_network)


def _loss(weights: Weights, windows: Any, who: Any) -> Any:
    """Multi-similarity loss (Wang et al., CVPR 2019; alpha 2, beta 50, base 0.5, no mining), 0.1 of cross-entropy."""
    found = _network(weights, windows)
    unit = found / (jnp.linalg.norm(found, axis=1, keepdims=True) + 1e-6)
    alike = unit @ unit.T
    same = (who[:, None] == who[None, :]) & ~jnp.eye(len(who), dtype=bool)
    other = who[:, None] != who[None, :]
    pull = jnp.log1p(jnp.where(same, jnp.exp(-2.0 * (alike - 0.5)), 0.0).sum(axis=1)) / 2.0
    push = jnp.log1p(jnp.where(other, jnp.exp(50.0 * (alike - 0.5)), 0.0).sum(axis=1)) / 50.0
    logs = jax.nn.log_softmax(found @ weights["classes"])
    return (pull + push).mean() - 0.1 * jnp.take_along_axis(logs, who[:, None], axis=1).mean()


def _step(held: tuple[Weights, Weights, Weights], turn: Any, rate: Any, windows: Any, who: Any) -> Any:
    """One step of Adam (Kingma and Ba, 2015), with a little decay of the weights."""
    weights, first, second = held
    slope = jax.grad(_loss)(weights, windows, who)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slope)
    weights = jax.tree.map(
        lambda w, m, v: w - rate * ((m / (1 - 0.9**turn)) / (jnp.sqrt(v / (1 - 0.999**turn)) + 1e-8) + 1e-3 * w),
        weights,
        first,
        second,
    )
    return weights, first, second


_compiled = jax.jit(_step)


def _learn(people: Sequence[Sequence[Array]], rng: np.random.Generator, settings: type[LearningSettings]) -> Weights:
    """Weights after learning from the sessions of each person."""
    weights: Weights = _start(rng, people[0][0].shape[1], len(people))
    nothing: Weights = jax.tree.map(np.zeros_like, weights)
    held = (weights, nothing, nothing)
    many = min(settings.people_a_batch, len(people))
    for turn in range(settings.steps):
        chosen = np.repeat(rng.permutation(len(people))[:many], settings.windows_a_person)
        windows = np.array([_window(people[int(p)], rng, settings.rows) for p in chosen], np.float32)
        share = turn / settings.steps
        rate = settings.rate * (share / 0.3 if share < 0.3 else 0.5 * (1 + np.cos(np.pi * (share - 0.3) / 0.7)))
        held = _compiled(held, turn + 1.0, np.float32(rate), windows, chosen)
    return held[0]


def _window(sessions: Sequence[Array], rng: np.random.Generator, rows: int) -> Array:
    own = sessions[int(rng.integers(len(sessions)))]
    start = int(rng.integers(len(own) - rows + 1))
    return own[start : start + rows]
