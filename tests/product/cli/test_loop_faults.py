"""An error that nobody foresaw in a callback of the loop is seen, without what it was given, and ends the sidecar."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import aiomqtt
import msgpack
import pytest

from eyestream.cli.log import one_line_faults
from eyestream.errors import LinkError
from eyestream_lab.testing.clocks import PATIENCE_S
from tests.rigs.mosquitto import Mosquitto

SECRET = "63.1415926"


def fail(given: str, kind: type[Exception] = KeyError) -> None:
    raise kind(given)


async def test_type_and_place_are_an_error_in_the_log_and_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "eyestream")
    fault = one_line_faults()
    asyncio.get_running_loop().call_soon(fail, SECRET)
    with pytest.raises(KeyError):
        async with asyncio.timeout(PATIENCE_S):
            await fault
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "KeyError" in record.getMessage()
    assert "test_loop_faults.py" in record.getMessage()
    assert "fail" in record.getMessage()
    assert SECRET not in caplog.text
    assert "\n" not in record.getMessage()


async def test_a_task_that_nobody_waits_for_is_seen_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "eyestream")
    fault = one_line_faults()

    async def work() -> None:
        fail(SECRET)

    task = asyncio.create_task(work())
    await asyncio.wait({task})
    del task
    assert "KeyError" in caplog.text
    assert SECRET not in caplog.text
    assert not fault.done()  # nobody depends on it


@pytest.mark.parametrize("kind", [OSError, LinkError])
async def test_the_weather_is_no_fault(caplog: pytest.LogCaptureFixture, kind: type[Exception]) -> None:
    caplog.set_level(logging.INFO, "eyestream")
    fault = one_line_faults()
    asyncio.get_running_loop().call_exception_handler({"message": "the link broke", "exception": kind()})
    assert caplog.records == []
    assert not fault.done()


async def test_a_callback_that_fails_with_an_error_of_the_system_is_seen(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "eyestream")
    fault = one_line_faults()
    asyncio.get_running_loop().call_soon(fail, SECRET, OSError)
    await asyncio.sleep(0.01)
    assert "OSError" in caplog.text
    assert SECRET not in caplog.text
    assert not fault.done()  # it may be asyncio's own


PROGRAM = """
import sys
from eyestream.rim.sidecar.sender import Sender
from eyestream.cli.main import main
from eyestream_lab.testing.clocks import PATIENCE_S
def fail(self, topic):
    raise KeyError(repr(3 * 21.0471975333333))
Sender.resend = fail
main()
"""


async def test_the_sidecar_ends_and_its_will_is_said(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """A second into the private link a timer fails: without an end, nobody would know what else is not done."""
    init = [sys.executable, "-c", "from eyestream.cli.main import main; main()", "init", str(tmp_path / "conf")]
    await asyncio.to_thread(subprocess.run, init, check=True, capture_output=True, timeout=60)
    path = tmp_path / "conf" / "sidecar.toml"
    path.write_text(path.read_text().replace("mqtt://localhost:1883", mosquitto.url))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, "run", "--config", str(path), stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 1
    [line] = [line for line in said.decode().splitlines() if "nobody foresaw this" in line]
    assert "KeyError" in line
    assert " fail" in line
    assert "63.14159" not in said.decode()
    async with aiomqtt.Client("127.0.0.1", mosquitto.port) as client, asyncio.timeout(PATIENCE_S):
        await client.subscribe("eyestream/v1/+/sidecar/status")
        message = await anext(client.messages)
    assert msgpack.unpackb(bytes(message.payload))["reason"] == "lost"
