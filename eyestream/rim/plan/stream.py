"""One stream of a plan: what releases it, and everything that is said of it."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from eyestream.core.charge import Charge, charges_of
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.scopes import Deployment
from eyestream.gaze.entry import FrontEndEntry
from eyestream.rim.config import Settings, StreamSettings
from eyestream.rim.plan.words import (
    borders_of,
    epsilon_warnings,
    error_words,
    follows_words,
    in_short,
    lasting_words,
    purpose_words,
    trust_model_of,
    wearer_scopes,
    withheld_seconds,
)
from eyestream.streams import FrontEndMark, StreamSpec
from eyestream.wire.release import Meta

if TYPE_CHECKING:
    from eyestream.claims.correlation.published import Correlated
    from eyestream.claims.guarantee import Guarantee
    from eyestream.gaze.profile import Profile

_IDLE_S = 60.0
"""A shorter silence ends no session, unless the configuration says so."""


_ON_ITS_WAY_S = 1.0
"""A row may be on its way for so long, whatever the grace."""


def rows_apart(spec: StreamSpec) -> int:
    """Rows between two that no second of gaze, and so no event, enters both of."""
    return spec.rows_touched(1.0) - 1


def sends_alone(settings: Settings) -> bool:
    """Whether no device sends more streams than one."""
    return all(len(streams) < 2 for streams in settings.senders)


@dataclass(frozen=True, eq=False)
class StreamParts:
    """Parts that a stream is made of; ceilings do not change them.

    Attributes
    ----------
    spec : what its rows are.
    mechanism : what releases its chunks.
    front_end : makes its rows of gaze; None where it is not known.
    profiles : of the sources of gaze that serve it, each once.
    answers : whether each tracker of live gaze is asked if it is there; None where there is none.
    """

    spec: StreamSpec
    mechanism: Mechanism
    front_end: FrontEndEntry | None = None
    profiles: "tuple[Profile, ...]" = ()
    answers: bool | None = None


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """A stream, resolved. What takes long to compute is computed when it is first asked for, and kept.

    Attributes
    ----------
    settings : its table.
    parts : what it is made of.
    deployment : what stands around its mechanism.
    file : all tables of the configuration.
    """

    settings: StreamSettings
    parts: StreamParts
    deployment: Deployment
    file: Settings

    @property
    def name(self) -> str:
        """Name of the stream."""
        return self.settings.name

    @property
    def spec(self) -> StreamSpec:
        """Specification of its rows."""
        return self.parts.spec

    @property
    def marks(self) -> "list[tuple[Profile, FrontEndMark]]":
        """The profiles of the sources of gaze that serve it, and the provenance of the rows that are made of each."""
        front_end = self.parts.front_end
        return [] if front_end is None else [(profile, front_end.mark(profile)) for profile in self.parts.profiles]

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that releases its chunks."""
        return self.parts.mechanism

    @property
    def chunk_s(self) -> float:
        """Nominal seconds of one chunk."""
        return self.mechanism.n / self.spec.rate_hz

    @property
    def touched(self) -> int:
        """Chunks that one second of gaze enters at most."""
        return self.spec.chunks_touched(self.mechanism.n, 1.0)

    @property
    def withheld_s(self) -> float:
        """Seconds of each session that its baseline takes; 0 where there is none."""
        return withheld_seconds(self.mechanism, self.spec.rate_hz)

    @cached_property
    def charges(self) -> tuple[Charge, ...]:
        """Charge of one chunk, on each level of the lifetime."""
        return charges_of(self.mechanism, self.deployment.ceilings.levels)

    @cached_property
    def lasting(self) -> str:
        """How long the ceilings of a session, of a day and of all time last, in words."""
        return lasting_words(self.mechanism, self.deployment)

    @cached_property
    def purpose(self) -> str | None:
        """The purpose that the configuration names, and what it came to, in words; None where it names none."""
        return purpose_words(self.settings.privacy, self.mechanism)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of what is allowed and hardly meant: an epsilon that protects nothing, or leaves nothing to see."""
        return epsilon_warnings(self.mechanism, self.deployment)

    @cached_property
    def follows(self) -> str:
        """How closely what is asked for follows the truth, in words; empty where nothing is asked for."""
        return follows_words(self.mechanism)

    @cached_property
    def claim(self) -> "Correlated | None":
        """About a whole session, under a class of processes; raises ConfigError as `correlated_of`."""
        if self.settings.privacy.correlation is None:
            return None
        from eyestream.rim.plan.correlated import correlated_of  # noqa: PLC0415  for who names a class

        alone = sends_alone(self.file)
        return correlated_of(self.settings, self.deployment.ceilings, self.mechanism, self.spec, alone=alone)

    @cached_property
    def guarantee(self) -> "Guarantee":
        """The guarantee; raises ConfigError as `claim`."""
        from eyestream.claims.guarantee import guarantee_of  # noqa: PLC0415  its words are for who asks

        made = guarantee_of(self.mechanism, self.deployment, self.claim)
        ceilings = self.deployment.ceilings
        return dataclasses.replace(
            made,
            scopes=(*made.scopes, *wearer_scopes(ceilings.wearer)),
            in_short=in_short(self.mechanism, self.deployment, self.settings.privacy.calibration),
            purpose=self.purpose,
            error=error_words(self.mechanism, ceilings.levels),
            borders=borders_of(self.parts.answers),
            standing=trust_model_of(self.file.sidecar, self.file.added),
        )

    @cached_property
    def meta(self) -> Meta:
        """The description that applications read, the same for every device; raises ConfigError as `claim`."""
        mechanism, schema = self.mechanism, self.mechanism.schema
        rows = schema.shape[1]
        return Meta(
            names=schema.names,
            units=schema.units,
            rate_hz=self.spec.rate_hz * rows / mechanism.n,
            n=rows,
            mechanism=mechanism.name,
            k=mechanism.k,
            epsilon=mechanism.epsilon,
            delta=mechanism.delta,
            noise_sd=mechanism.noise_sd.astype("float32"),
            guarantee=self.guarantee.text(),
            calibration=mechanism.calibration.content_hash,
        )

    def device(self, device: str) -> DeviceSettings:
        """How rows of one device become chunks."""
        stream, spec = self.settings, self.spec
        return DeviceSettings(
            id=device,
            stream=stream.name,
            schema=spec.schema,
            names=spec.names,
            rate_hz=spec.rate_hz,
            n=self.mechanism.n,
            grace_s=stream.grace_s,
            idle_s=max(_IDLE_S, spec.window_s + spec.memory_s) if stream.idle_s is None else stream.idle_s,
            jump_chunks=stream.jump_chunks,
            release=stream.release,
            apart=rows_apart(spec) if self.mechanism.baseline_chunks or self.mechanism.sessions else 0,
            units=spec.units,
            shared_s=spec.rows_touched() / spec.rate_hz + max(stream.grace_s, _ON_ITS_WAY_S),
        )
