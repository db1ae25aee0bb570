"""Each of the clients under the same tests: our own and aiomqtt, in each version of MQTT."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint

__all__ = ["speaking"]


@contextlib.contextmanager
def speaking(client: Literal["own", "aiomqtt"], version: Literal["auto", "5", "3.1.1"] = "auto") -> Iterator[None]:
    """While the body runs, links whose settings ask for nothing else are of `client`, in `version`."""
    real = Endpoint.of

    def of(settings: BrokerSettings) -> Endpoint:
        made = real(settings)
        return replace(
            made,
            client=client if settings.client == "own" else settings.client,
            version=version if settings.version == "auto" else settings.version,
        )

    Endpoint.of = of  # type: ignore[method-assign]
    try:
        yield
    finally:
        Endpoint.of = real  # type: ignore[method-assign]
