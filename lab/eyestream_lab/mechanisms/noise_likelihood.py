"""Likelihoods of published values for each candidate, under the public law of additive noise (LPA, CFPA, DCFPA).

A published chunk gives its noisy coordinates y. A person's coordinates are modelled from public recordings (those that
calibrated): y_t = mean + V u + w_t + noise, u of the person along the leading directions V of the corpus' chunks, w_t
normal with the variance that coordinates have within people, and Laplace noise of the public scale b. The density of
z = w + noise is exact (normal convolved with Laplace): with g1 = e^(-z/b) Phi(z/tau - tau/b) and g2 its mirror image,

    f(z) = e^(tau^2 / 2 b^2) (g1 + g2) / 2 b,    (log f)' = (g2 - g1) / (b (g1 + g2)),
    (log f)'' = 1/b^2 - phi(z / tau) / (tau b^2 f) - (log f)'^2.

It is log-concave: Newton's method finds the u that a session makes likeliest, and the session's likelihood is held as
the normal one of the same peak and curvature. The score of an unknown session against a labelled one is the log of
int L_unknown L_known dP(u) / (int L_unknown dP(u) int L_known dP(u)).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from eyestream.core.additive.core import AdditiveCore
from eyestream.core.mechanism import Mechanism
from eyestream.errors import ConfigError
from eyestream_lab.study.people.galleries import Gallery
from eyestream_lab.study.people.white_box import WhiteBox

Array = NDArray[np.float64]

DIRECTIONS = 24
_ROUNDS = 50


def log_density(z: Array, tau: Array, b: Array) -> tuple[Array, Array, Array]:
    """log f, its derivative, and its second derivative, of normal (tau) plus Laplace (b) noise."""
    first, second = -z / b + log_ndtr(z / tau - tau / b), z / b + log_ndtr(-z / tau - tau / b)
    both = np.logaddexp(first, second)
    logs = both + tau**2 / (2 * b**2) - np.log(2 * b)
    slope = (np.exp(second - both) - np.exp(first - both)) / b
    normal = -0.5 * (z / tau) ** 2 - np.log(tau * np.sqrt(2 * np.pi))
    curve = np.minimum(1 / b**2 - np.exp(np.minimum(normal - logs, 700)) / b**2 - slope**2, 0.0)
    return logs, slope, curve


def values_of(mechanism: Mechanism, published: NDArray[np.floating]) -> Array:
    """(T, N) noisy coordinates of the published chunks (T, F, n), relative to the centre of the ball.

    Raises
    ------
    ConfigError
        when the mechanism adds no such noise, or filters or clips afterwards.
    """
    core = mechanism.core
    if not isinstance(core, AdditiveCore) or core.output.smoother is not None or core.output.clip is not None:
        raise ConfigError(f"{mechanism.name}: no published value is a coordinate and its noise")
    transform, kept = core.private.transform(), np.broadcast_to(core.private.steps > 0, core.private.law.shape)
    gain = np.maximum(core.output.gain, 1e-12)
    zero = transform.coordinates(transform.residual(core.output.offset.copy())).copy()
    chunks = np.asarray(published, np.float64)[:, mechanism.frame.active]
    return np.array([((transform.coordinates(transform.residual(c)) - zero) / gain)[kept] for c in chunks])


def coordinates_of(mechanism: Mechanism, raw: Array) -> Array:
    """(T, N) what the mechanism would add noise to, for finite raw chunks (T, F, n)."""
    core = mechanism.core
    assert isinstance(core, AdditiveCore)
    private = core.private
    transform, kept = private.transform(), np.broadcast_to(private.steps > 0, private.law.shape)
    rows = []
    for chunk in raw[:, mechanism.frame.active]:
        residual = transform.residual(chunk)
        rows.append((transform.coordinates(residual) * private.factor(residual, private.radius))[kept])
    return np.array(rows)


@dataclass(frozen=True, eq=False)
class PersonModel:
    """Model of people's coordinates, from public recordings.

    Attributes
    ----------
    mean : (N,).
    directions : (N, r) V.
    prior : (r, r) covariance of u between people.
    within : (N,) tau.
    scale : (N,) b, of the public noise.
    """

    mean: Array
    directions: Array
    prior: Array
    within: Array
    scale: Array

    @classmethod
    def of(cls, mechanism: Mechanism, background: Sequence[Array]) -> "PersonModel":
        """From the finite raw chunks (T, F, n) of people whose recordings are public."""
        core = mechanism.core
        assert isinstance(core, AdditiveCore)
        private = core.private
        kept = np.broadcast_to(private.steps > 0, private.law.shape)
        scale = (np.broadcast_to(private.law.sd[:, None] / np.sqrt(2) * private.steps, private.law.shape))[kept]
        people = [coordinates_of(mechanism, raw) for raw in background]
        every = np.concatenate(people)
        mean, sd = every.mean(axis=0), np.maximum(every.std(axis=0), 1e-9 * scale)
        _, size, rows = np.linalg.svd((every - mean) / sd, full_matrices=False)
        count = min(DIRECTIONS, len(people) * 2, len(size))
        directions = rows[:count].T * sd[:, None]
        own = np.array([(((p - mean) / sd) @ rows[:count].T).mean(axis=0) for p in people])
        between = own.T @ own / len(own)
        total = np.diag(size[:count] ** 2 / len(every))
        prior = 0.5 * between + 0.5 * np.trace(between) / np.trace(total) * total
        inside = np.concatenate([p - p.mean(axis=0) for p in people]).std(axis=0)
        return cls(mean, directions, prior, np.maximum(inside, 1e-3 * sd), scale)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A likelihood exp(linear u - u curve u / 2) of u, up to a factor: (r,) and (r, r)."""

    linear: Array
    curve: Array


def noisy_session(model: PersonModel, values: Array) -> Quadratic:
    """Evidence of published values (T, N) about u."""
    inverse, u = np.linalg.inv(model.prior), np.zeros(len(model.prior))

    def told(at: Array) -> tuple[float, Array, Array]:
        """Log of likelihood and prior at u, the likelihood's slope, and its curvature turned positive."""
        logs, slope, curve = log_density(values - model.mean - model.directions @ at, model.within, model.scale)
        bend = (model.directions.T * -curve.sum(axis=0)) @ model.directions
        return float(logs.sum() - 0.5 * at @ inverse @ at), -model.directions.T @ slope.sum(axis=0), bend

    height, pull, bend = told(u)
    for _ in range(_ROUNDS):
        move = np.linalg.solve(bend + inverse, pull - inverse @ u)
        while (there := told(u + move))[0] < height and np.abs(move).max() > 1e-9:
            move = move / 2  # concave: a shorter step goes up
        u, gained = u + move, there[0] - height
        height, pull, bend = there
        if gained < 1e-6:
            break
    return Quadratic(pull + bend @ u, bend)


def exact_session(model: PersonModel, values: Array) -> Quadratic:
    """Evidence of raw coordinates (T, N), known without noise, about u."""
    weighted = model.directions / model.within[:, None] ** 2
    return Quadratic(weighted.T @ (values - model.mean).sum(axis=0), len(values) * weighted.T @ model.directions)


def scores_of(model: PersonModel, known: Sequence[Quadratic], unknown: Sequence[Quadratic]) -> Array:
    """(U, C) log-odds that an unknown session is of the person of a known one."""
    inverse = np.linalg.inv(model.prior)

    def evidence(told: Quadratic) -> float:
        precision = told.curve + inverse
        size: float = np.linalg.slogdet(precision @ model.prior)[1]
        return 0.5 * float(told.linear @ np.linalg.solve(precision, told.linear)) - 0.5 * size

    alone = [[evidence(one) for one in group] for group in (unknown, known)]
    return np.array(
        [
            [
                evidence(Quadratic(a.linear + b.linear, a.curve + b.curve)) - alone[0][i] - alone[1][j]
                for j, b in enumerate(known)
            ]
            for i, a in enumerate(unknown)
        ]
    )


def _labelled(gallery: Gallery, sessions: Sequence[NDArray[np.float32]]) -> Array:
    mechanism = _known(gallery)
    model = PersonModel.of(mechanism, gallery.background)
    known, unknown = (
        [noisy_session(model, values_of(mechanism, chunks)) for chunks in every]
        for every in (sessions, gallery.unknown)
    )
    return scores_of(model, known, unknown)


def _seen_raw(gallery: Gallery) -> Array:
    mechanism = _known(gallery)
    model = PersonModel.of(mechanism, gallery.background)
    known = [exact_session(model, coordinates_of(mechanism, raw)) for raw in gallery.minutes]
    unknown = [noisy_session(model, values_of(mechanism, chunks)) for chunks in gallery.unknown]
    return scores_of(model, known, unknown)


def _known(gallery: Gallery) -> Mechanism:
    assert gallery.mechanism is not None
    return gallery.mechanism


WHITE_BOX = WhiteBox(_labelled, _seen_raw)
