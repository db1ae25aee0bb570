"""A guarantee for machines: `claim.json`, and `eyestream guarantee --json`."""

from eyestream.claims.facts import Facts
from eyestream.claims.nist import SOURCE, answers
from eyestream.core.leakage import leakage


def claim(made: Facts) -> dict[str, object]:
    """For machines: plain values that JSON knows.

    Where differential privacy is not claimed the loss is null, and `promise` has all that is claimed.
    """
    head: dict[str, object] = {
        "claim": 1,
        "version": made.version,
        "mechanism": made.mechanism,
        "calibration": made.calibration,
        "statement": made.statement,
        "promise": made.promise.facts(),
    }
    if not made.differential:
        return head | {"loss": None}
    return head | {
        "model": "local",
        "loss": made.loss.claim(),
        "streams_beside": list(made.streams),
        "unit": {"rows": made.n, "seconds": made.seconds, "features": made.features},
        "epsilon_in_any": {str(seconds): float(epsilon) for seconds, epsilon in made.in_any.items()} or None,
        "use": made.protection.use,
        "baseline_chunks": 0,
        **{key: value for fact in made.own for key, value in fact.claim.items()},
        "in_short": made.in_short,
        "purpose": made.purpose,
        "error": made.error,
        "scopes": [
            {
                "unit": scope.unit,
                "chunks": scope.chunks,
                "loss": None if scope.loss is None else scope.loss.claim(),
                "ceiling": scope.ceiling,
                "ceiling_delta": scope.ceiling_delta,
                "seconds": scope.seconds,
            }
            for scope in made.scopes
        ],
        "session_borders": None if made.borders is None else made.borders.claim(),
        "guess_factor": _guess_claim(made),
        "correlation": None if made.correlated is None else made.correlated.claim(),
        "floating_point": {"protection": made.protection.floating_point, "exact": made.protection.exact},
        "law": made.protection.law,
        "sampler": made.protection.sampler,
        "entropy": made.protection.entropy,
        "attacker": made.protection.attacker,
        "trusted": list(made.standing.trusted),
        "log": made.standing.log,
        "not_protected": list(made.standing.not_protected),
        "evaluation": {
            "of": SOURCE,
            "points": [one.claim() for one in answers(made)],
        },
    }


def _guess_claim(made: Facts) -> dict[str, object] | None:
    if made.gain is None:
        return None
    nats = leakage(made.gain)
    return {
        "chunk": float(made.gain) if nats < 700.0 else None,  # no float is larger: the logarithm alone is said
        "chunk_exact": str(made.gain) if nats < 700.0 else None,
        "nats": {
            "chunk": nats,
            "window": None if made.window_chunks is None else nats * made.window_chunks,
            "session": None if made.session_chunks is None else nats * made.session_chunks,
        },
        "of": "maximal leakage: an average over releases",
    }
