"""`eyestream monitor` and `demo --monitor` as somebody at a terminal meets them."""

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from eyestream.cli.main import main
from eyestream_lab.embedded import free_port
from tests.rigs.mosquitto import Mosquitto

EYESTREAM = [sys.executable, "-c", "from eyestream.cli.main import main; main()"]
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextmanager
def page_of(*words: str) -> Iterator[str]:
    """The address that a command prints, while it runs."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([*EYESTREAM, *words], stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    try:
        yield next(found[1] for line in process.stdout if (found := re.match(r"page at (\S+)", line)))
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.needs("mosquitto")
def test_the_address_that_is_printed_opens(mosquitto: Mosquitto) -> None:
    with page_of("monitor", "--broker", mosquitto.url) as address:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{22}/", address)
        assert "<title>eyestream monitor</title>" in DIRECT.open(address, timeout=10).read().decode()
    with page_of("monitor", "--broker", mosquitto.url) as again:
        assert again.split("/")[3] != address.split("/")[3]


@pytest.mark.long
def test_the_demo_shows_its_chunks_on_a_page() -> None:
    kinds: set[str] = set()
    with (
        page_of("demo", "--monitor", "--mechanism", "cfpa", "--seconds", "20") as address,
        DIRECT.open(f"{address}events", timeout=20) as events,
    ):
        while not {"stream", "chunk", "state"} <= kinds:
            kinds |= set(re.findall(r'"kind":"(\w+)"', events.readline().decode()))


def test_what_is_wrong_is_one_line() -> None:
    url = f"mqtt://127.0.0.1:{free_port()}"
    words = [*EYESTREAM, "monitor", "--broker", url, "--wait", "0.3"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("eyestream monitor: cannot connect to the broker at")


def test_the_demo_says_first_that_the_extra_of_its_page_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(SystemExit):
        main(["demo", "--monitor", "--seconds", "4"])
    said = capsys.readouterr()
    assert "pip install 'eyestream[monitor]'" in said.err
    assert said.out == ""
