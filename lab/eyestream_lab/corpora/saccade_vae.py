"""A conditional variational autoencoder for profiles of saccades (David-John, Butler, Jain, TVCG 2023, supplement).

In: 30 speeds of a saccade, standardised, and its conditions: amplitude and duration. Encoder: 32 units with ReLU, then
32 means and 32 logarithms of variances. Decoder: a code and the conditions, 96 linear units, 30 speeds. Adam with rate
0.01, batches of 100, 20 epochs.

**Two things differ from the text.** The printed loss subtracts the divergence of the code from the standard normal law,
which would reward codes that tell everything; it is added here (Kingma and Welling, ICLR 2014). The person's name is no
condition: what is made from it would name the person.

Training needs JAX (`pip install 'eyestream-lab[deep]'`). What is trained are arrays, which numpy uses.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.corpora.events import POINTS, Events, fitted

Array = NDArray[np.float64]
Weights = dict[str, Any]

CODE, BATCH, EPOCHS, RATE = 32, 100, 20, 0.01
_CONDITIONS, _ENCODER, _DECODER = 2, 32, 96


def check_jax(name: str) -> None:
    """Raise ConfigError where training is not possible."""
    if find_spec("jax") is None:
        raise ConfigError(f"{name}: needs JAX: pip install 'eyestream-lab[deep]'")


def divergence(mean: Any, log_variance: Any, exp: Any = np.exp) -> Any:
    """Kullback-Leibler divergence of N(mean, e^log_variance) from the standard normal law, summed over codes; >= 0."""
    return 0.5 * (mean**2 + exp(log_variance) - 1.0 - log_variance).sum(axis=-1)


def _encoded(weights: Weights, given: Any, rectified: Any) -> tuple[Any, Any]:
    """Means and logarithms of variances of speeds with conditions (s, 32)."""
    hidden = rectified(given @ weights["in"] + weights["in0"], 0.0)
    both = hidden @ weights["code"] + weights["code0"]
    return both[..., :CODE], both[..., CODE:]


def _decoded(weights: Weights, given: Any) -> Any:
    """Speeds of codes with conditions."""
    return (given @ weights["out"] + weights["out0"]) @ weights["speeds"] + weights["speeds0"]


def loss(weights: Weights, speeds: Any, conditions: Any, noise: Any) -> Any:
    """Mean over saccades of the squared error of the speeds, plus the divergence of the codes."""
    import jax.numpy as jnp  # noqa: PLC0415  for training alone

    mean, log_variance = _encoded(weights, jnp.concatenate((speeds, conditions), axis=1), jnp.maximum)
    code = mean + jnp.exp(log_variance / 2) * noise
    error = ((_decoded(weights, jnp.concatenate((code, conditions), axis=1)) - speeds) ** 2).sum(axis=1)
    return (error + divergence(mean, log_variance, jnp.exp)).mean()


def _start(rng: np.random.Generator) -> Weights:
    sizes = {
        "in": (POINTS + _CONDITIONS, _ENCODER),
        "code": (_ENCODER, 2 * CODE),
        "out": (CODE + _CONDITIONS, _DECODER),
        "speeds": (_DECODER, POINTS),
    }
    weights = {name: (rng.normal(size=size) / np.sqrt(size[0])).astype("f4") for name, size in sizes.items()}
    return weights | {f"{name}0": np.zeros(size[1], "f4") for name, size in sizes.items()}


def trained(speeds: Array, conditions: Array, rng: np.random.Generator, epochs: int = EPOCHS) -> Weights:
    """Weights after `epochs` over standardised speeds (s, 30) and conditions (s, 2); the same for the same `rng`."""
    import jax  # noqa: PLC0415  for training alone
    import jax.numpy as jnp  # noqa: PLC0415

    def step(held: Any, turn: Any, own: Any, given: Any, noise: Any) -> Any:
        """One step of Adam (Kingma and Ba, ICLR 2015)."""
        weights, first, second = held
        slope = jax.grad(loss)(weights, own, given, noise)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slope)
        weights = jax.tree.map(
            lambda w, m, v: w - RATE * (m / (1 - 0.9**turn)) / (jnp.sqrt(v / (1 - 0.999**turn)) + 1e-8),
            *(weights, first, second),
        )
        return weights, first, second

    compiled, size = jax.jit(step), min(BATCH, len(speeds))
    held: Any = (_start(rng), *(jax.tree.map(np.zeros_like, _start(rng)) for _ in range(2)))
    turn = 0.0
    for _ in range(epochs):
        order = rng.permutation(len(speeds))
        for at in range(0, len(order) - size + 1, size):
            chosen, turn = order[at : at + size], turn + 1.0
            noise = rng.standard_normal((size, CODE))
            batch = (one.astype(np.float32) for one in (speeds[chosen], conditions[chosen], noise))
            held = compiled(held, np.float32(turn), *batch)
    return {name: np.asarray(value, np.float64) for name, value in held[0].items()}


@dataclass(frozen=True, eq=False)
class SaccadeVAE:
    """A coder of saccades (`eyestream_lab.corpora.event_synth.SaccadeCoder`).

    Attributes
    ----------
    weights
        Of `trained`.
    mean, sd
        (30,) that speeds are standardised with.
    """

    weights: Weights
    mean: Array
    sd: Array

    @classmethod
    def of(cls, events: list[Events], rng: np.random.Generator, epochs: int = EPOCHS) -> "SaccadeVAE":
        """Trained on the saccades of several recordings."""
        speeds = np.concatenate([one.speeds for one in events])
        mean, sd = speeds.mean(axis=0), np.maximum(speeds.std(axis=0), 1e-6)
        given = np.concatenate([_conditions(one) for one in events])
        return cls(trained((speeds - mean) / sd, given, rng, epochs), mean, sd)

    def encode(self, events: Events) -> tuple[Array, Array]:
        """Means and deviations (s, 32) of the codes of a recording's saccades."""
        given = np.concatenate(((events.speeds - self.mean) / self.sd, _conditions(events)), axis=1)
        mean, log_variance = _encoded(self.weights, given, np.maximum)
        return mean, np.exp(log_variance / 2)

    def decode(self, code: Array, events: Events, saccade: int) -> Array:
        """The profile (3,) of a code (32,) under the conditions of one saccade of a recording."""
        speeds = _decoded(self.weights, np.concatenate((code, _conditions(events)[saccade])))
        return np.asarray(fitted(np.maximum(speeds * self.sd + self.mean, 0.0)[None])[0])


def _conditions(events: Events) -> Array:
    """(s, 2) amplitude in 50 degrees, and samples in `POINTS`."""
    counts = (events.timeline.end - events.timeline.begin)[~events.timeline.is_fixation]
    return np.stack((events.speeds.mean(axis=1) * (counts - 1) / 50.0, counts / POINTS), axis=1)
