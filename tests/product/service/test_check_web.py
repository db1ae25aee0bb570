"""The port for web pages: found in the broker's configuration, and tried without a login."""

import contextlib
import os
import re
import socket
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from eyestream.ops.check_ports import anonymous_login_finding, web_listener
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream_lab.embedded import free_port
from tests.rigs.mosquitto import Mosquitto

SHIPPED = (files("eyestream") / "data" / "deployment" / "private-tls.conf").read_text()


def test_the_listener_that_is_shipped_is_off_until_somebody_uncomments_it() -> None:
    head, listener = SHIPPED.split("# listener 8443", 1)
    assert web_listener(SHIPPED) is None
    assert web_listener(head + re.sub("^# ", "", f"# listener 8443{listener}", flags=re.M)) == 8443
    assert web_listener("listener 1883\nprotocol mqtt\n") is None


@pytest.fixture(params=["open", "closed", "plain"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A broker whose second listener lets pages in, refuses them, or speaks MQTT without WebSocket."""
    logins, port = tmp_path / "logins", free_port()
    logins.write_text(f"application:$7$101${'A' * 16}${'A' * 86}==\n")  # of a salt and a hash of zeros
    logins.chmod(0o644 if os.geteuid() else 0o600)
    entry = f"password_file {logins}" if request.param == "closed" else ""
    protocol = "mqtt" if request.param == "plain" else "websockets"
    allowed = "false" if request.param == "closed" else "true"
    lines = (f"listener {port} 127.0.0.1", f"protocol {protocol}", f"allow_anonymous {allowed}", entry)
    broker = Mosquitto(tmp_path, *lines)
    text = broker._configuration.read_text()
    broker._configuration.write_text(f"per_listener_settings true\n{text}")
    broker.start()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
    yield request.param, port
    broker.stop()


@pytest.mark.needs("mosquitto")
async def test_a_page_without_a_login(listener: tuple[str, int]) -> None:
    kind, port = listener
    finding = await anonymous_login_finding(Endpoint("127.0.0.1", port))
    assert finding.passed == (kind == "closed"), finding
    if kind == "open":
        assert "allow_anonymous false" in str(finding)


async def test_a_port_where_nobody_listens() -> None:
    finding = await anonymous_login_finding(Endpoint("127.0.0.1", free_port()))
    assert not finding.passed
    assert "systemctl status eyestream-private" in str(finding)
