"""A system of the laboratory as a program like any other: `python -m eyestream_lab.benchmark.ours SPEC SEED IN OUT`.

SPEC is `NAME:option=value,...`, as in `kalman:sd_deg=1.0,push=500` or `klt:epsilon=4.8,calibration=everyday-klt-32`.
Random numbers come from a generator with SEED, so that a run can be repeated: such a release has no guarantee. Only the
mechanisms of the sidecar take none, and draw from the operating system.
"""

import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from eyestream.errors import ConfigError, OperatorError
from eyestream.rim.files.calibrations import load
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.corpora.corpus import open_corpus
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.kinds import MAPS, gaze_kind, rows_of_gaze
from eyestream_lab.corpora.registry import SYSTEMS, make_system
from eyestream_lab.corpora.run import release_with
from eyestream_lab.corpora.streams import ChunkByChunk
from eyestream_lab.testing.noise import SeededNoise

PROMISE = "promise.txt"
"""A file that a system may write beside its recordings: what it promises, in words."""


def spec_of(text: str) -> tuple[str, dict[str, Any]]:
    """Name and options; values as in TOML, a name of a calibration without quotes.

    Raises
    ------
    ConfigError
        An option is not NAME=VALUE.
    """
    name, _, rest = text.partition(":")
    options: dict[str, Any] = {}
    for one in filter(None, rest.split(",")):
        key, equals, value = one.partition("=")
        if not equals:
            raise ConfigError(f"--system {text}: {one}: expected NAME=VALUE")
        try:
            options[key] = load(value) if key == "calibration" else tomllib.loads(f"x = {value}")["x"]
        except tomllib.TOMLDecodeError:
            raise ConfigError(f"--system {text}: {one}: expected a number, or true") from None
    return name, options


def main(spec: str, seed: str, source: str, target: str) -> None:
    """Release the folder `source` into the folder `target`."""
    name, options = spec_of(spec)
    folder, out = Path(source), Path(target)
    profile = load_profile("degrees")
    system = make_system(name, **options)
    if system.released_kind is MAPS:
        raise ConfigError(f"{name}: releases maps, which have no recordings of people")
    gaze = open_corpus(folder, gaze_kind(profile))
    profile = profile.at_rate(gaze.load(gaze.parts[0]).profile.fixed_rate_hz)
    kind: Any = gaze_kind(profile) if SYSTEMS[name].reads == "gaze" else rows_of_gaze(profile)
    corpus, whole = open_corpus(folder, kind), out.parent / f"{out.name}-whole"
    # Mechanisms of the sidecar release nothing with noise from a seed: these lines are another draw each time.
    draws = Draws() if isinstance(system, ChunkByChunk) else Draws(SeededNoise(int(seed)))
    release_with(draws, system, corpus, whole)
    promise = system.promise(corpus, corpus.survey())  # of the system; what a seed draws has none
    for path in whole.iterdir():
        shutil.move(path, out / path.name)
    (out / PROMISE).write_text(promise.claim.statement, encoding="utf-8")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except OperatorError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
