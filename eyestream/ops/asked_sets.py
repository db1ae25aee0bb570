"""Named sets of asked features, and how somebody names what an application needs (docs/mechanisms.md, "asked").

A set is a word of the command line alone. Configurations, `meta` and claims have the names of its features: what is
asked for stays as it was chosen.
"""

from collections.abc import Sequence

from eyestream.errors import ConfigError, meant

ASKED_CALIBRATION = "everyday-asked-64"
"""The shipped one."""

FEATURE_SETS = {
    "fatigue": ("blink_rate", "mean_blink_duration"),
    "load": ("mean_mean_diameter", "mean_fixation_duration"),
    "reading": ("rate_saccades", "mean_saccade_amplitude", "ratio_positive_saccades"),
    "attention": ("rate_fixations", "mean_var_x"),
    "comfort": ("blink_rate", "rate_saccades"),
}
"""Features of the 52, by what an application wants to know; why these, says docs/mechanisms.md."""


def asked_features(text: str, names: Sequence[str]) -> list[str]:
    """The features that NAME[,NAME...] names, each one of `names` or a set; a feature of two sets is there once.

    >>> asked_features("fatigue, rate_saccades", ["rate_saccades", "blink_rate", "mean_blink_duration"])
    ['blink_rate', 'mean_blink_duration', 'rate_saccades']

    Raises
    ------
    ConfigError
        A name is neither.
    """
    known = (*FEATURE_SETS, *names)
    found: dict[str, None] = {}
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name not in known:
            sets = ", ".join(FEATURE_SETS)
            raise ConfigError(
                f"features: expected features of the calibration, or a set ({sets}), not {name!r}{meant(name, known)}"
            )
        found |= dict.fromkeys(FEATURE_SETS.get(name, (name,)))
    return list(found)


def sets_and_traits() -> str:
    """``fatigue (blink habits), load (pupils), reading, ...``: each set, and which trait of people it has."""
    traits = {name: " and ".join(_traits(features)) for name, features in FEATURE_SETS.items()}
    return ", ".join(f"{name} ({trait})" if trait else name for name, trait in traits.items())


def _traits(features: Sequence[str]) -> list[str]:
    return [word for word, part in (("blink habits", "blink"), ("pupils", "diameter")) if part in " ".join(features)]


def recognised_by(features: Sequence[str]) -> str:
    """The cost of a choice of features in recognition, in words."""
    if traits := _traits(features):
        return f"{' and '.join(traits)} are a trait: people may be recognised by how these change"
    return "without blinks and pupils, which are a trait; people may still be recognised by how these change"
