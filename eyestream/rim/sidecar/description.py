"""What a configuration says: to each device, to the words of the guarantee, and to applications."""

from eyestream.chunking.settings import DeviceSettings
from eyestream.privacy.guarantee import Deployment, text
from eyestream.privacy.mechanism import Mechanism
from eyestream.rim.config import Settings
from eyestream.streams.spec import StreamSpec
from eyestream.wire.messages import Meta

__all__ = ["STREAM", "deployment_of", "device_settings", "meta_of"]

STREAM = "features"


def device_settings(settings: Settings, n: int) -> list[DeviceSettings]:
    """Every configured device, with chunks of `n` rows."""
    stream = settings.stream
    return [
        DeviceSettings(
            id=device.id,
            stream=STREAM,
            schema=stream.schema,
            names=stream.names,
            rate_hz=stream.rate_hz,
            n=n,
            grace_s=stream.grace_s,
            idle_s=stream.idle_s,
            jump_chunks=stream.jump_chunks,
            release=stream.release,
        )
        for device in settings.device
    ]


def deployment_of(settings: Settings) -> Deployment:
    """What stands around the mechanism, for the words of the guarantee."""
    stream, budget = settings.stream, settings.budget
    units = ("1",) * len(stream.names)
    return Deployment(
        stream=StreamSpec(STREAM, stream.schema, stream.names, units, stream.rate_hz, stream.window_s),
        window_chunks=budget.window_chunks,
        window_epsilon=budget.window_epsilon,
        session_epsilon=budget.session_epsilon,
        day_epsilon=budget.day_epsilon,
    )


def meta_of(settings: Settings, mechanism: Mechanism) -> Meta:
    """What applications are told of every stream."""
    calibration = mechanism.calibration
    return Meta(
        names=settings.stream.names,
        units=calibration.units,
        rate_hz=settings.stream.rate_hz,
        n=mechanism.n,
        mechanism=mechanism.name,
        k=mechanism.k,
        epsilon=mechanism.epsilon,
        delta=mechanism.delta,
        noise_sd=mechanism.noise_sd.astype("float32"),
        guarantee=text(mechanism, deployment_of(settings)),
        calibration=calibration.content_hash,
    )
