"""Lives of a sidecar that end well or badly, all with canaries inside."""

import contextlib
import dataclasses
import re
import signal
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import eyestream
from eyestream.cli.pause import ask
from eyestream.core.calibration import Calibration
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import create_ledger
from eyestream_lab.mechanisms.words import synthetic_words
from tests.rigs.tainting.canary import Canary
from tests.rigs.tainting.capture import Process, Proxy
from tests.rigs.tainting.tracker import Tracker, hostile

__all__ = ["LIVES", "PLAIN", "Ended", "Life", "Plant", "live"]

PLAIN = "from eyestream.cli.main import main\nmain()\n"

_PLANTED = """
from tests.rigs.seams import SEAMS, original
name, first = {seam!r}, {first!r}
real, calls = original(name), 0
def told(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    return [told(getattr(value, key)) for key in ("rows", "values") if hasattr(value, key)] or value
def fault(*given, **named):
    global calls
    calls += 1
    if calls >= first:
        raise {error}
    return real(*given, **named)
setattr(SEAMS[name].home(), SEAMS[name].attribute, fault)
"""


@dataclasses.dataclass(frozen=True)
class Plant:
    """From its `first` call on, what stands at `seam` raises `error`, which tells its arguments: raw values."""

    seam: str
    first: int = 2
    error: str = "RuntimeError([told(one) for one in given], named)"

    def code(self) -> str:
        """Python that plants it, for the sidecar's process to run first."""
        return _PLANTED.format(seam=self.seam, first=self.first, error=self.error)


@dataclasses.dataclass(frozen=True)
class Life:
    """One run of the sidecar.

    `chunks` of every device are sent; `released` of them must come out, None: all. Then it gets the signal `end`, or
    ends by itself (None). `says` is a pattern for its log, `code` how it ends. Where it takes histories off, a session
    of so many chunks is withheld `before`.
    """

    name: str
    calibration: str = "everyday-klt-one-64"
    edits: tuple[tuple[str, str], ...] = ()
    plant: Plant | None = None
    chunks: int = 3
    released: int | None = None
    end: signal.Signals | None = signal.SIGTERM
    code: int | None = 0
    says: str = "stopped: "
    hostile: bool = False
    metrics: bool = False
    devices: int = 1
    before: int = 0
    pauses: bool = False

    @property
    def known(self) -> Calibration:
        """What its mechanism is calibrated with."""
        if not self.before:
            return calibrations.load(self.calibration)
        names = calibrations.load("everyday-klt-one-64").names
        return dataclasses.replace(synthetic_words(64, len(names), 1e3), names=names)


_SHARED_S = 31.5
"""How long after a pause rows may describe gaze of it."""

_JSON = ('# [log]\n# format = "text"', '[log]\nformat = "json"')
_DROPPED = "dropped: the mechanism failed with RuntimeError"
_UNFORESEEN = "RuntimeError .its message is kept back"
_ENCODER = Plant("stream encoder")
_DECODER = Plant("pipeline decoder")
_DOMAIN = Plant("Domain.admit")
_DEVICE = Plant("Device.feed")
_OUTBOX = Plant("Outbox.put")
_RECEIVER = Plant("worker receives")
_DISK = Plant("disk", 3, "OSError(5, 'EIO')")

LIVES = (  # the longest first, as some run at a time
    Life("pause", "everyday-cfpa-32", pauses=True, hostile=True, metrics=True),
    Life("pause, abort", "everyday-klt-32", pauses=True, end=signal.SIGABRT, code=-signal.SIGABRT, says="Fatal Python"),
    Life("work", hostile=True, metrics=True, chunks=6),
    Life(
        "json log, budget that runs out",
        "everyday-lpa-32",
        (("session_epsilon = 1152.0", "session_epsilon = 9.6"), _JSON),
        chunks=4,
        released=2,
        says='"message": ".*what the budget allows a session is spent',
        hostile=True,
        metrics=True,
    ),
    Life("abort", "everyday-cfpa-32", end=signal.SIGABRT, code=-signal.SIGABRT, says="Fatal Python error: Aborted"),
    Life("segv", "everyday-dcfpa-32", end=signal.SIGSEGV, code=-signal.SIGSEGV, says="Fatal Python error: Segment"),
    Life("histories", "./words.npz", before=2),
    Life(
        "histories, abort", "./words.npz", before=2, end=signal.SIGABRT, code=-signal.SIGABRT, says="Fatal Python error"
    ),
    Life("interrupt", "everyday-klt-32", end=signal.SIGINT),
    Life("mechanism", "everyday-klt-32", plant=_DOMAIN, released=1, says=_DROPPED),
    Life("encoder", plant=_ENCODER, released=1, says=_DROPPED),
    Life(
        "failing disk",
        plant=_DISK,
        released=1,
        says="durably: EIO; no chunk is released any more: when that is mended, restart the sidecar",
    ),
    Life("rows", plant=_DEVICE, released=1, end=None, code=1, says=_UNFORESEEN),
    Life("decoder", plant=_DECODER, released=1, end=None, code=1, says=_UNFORESEEN),
    Life("outbox", plant=_OUTBOX, released=1, end=None, code=1, says=_UNFORESEEN),
    Life("callback", plant=_RECEIVER, released=1, end=None, code=1, says=_UNFORESEEN),
)


@dataclasses.dataclass
class Ended:
    """What a life has written, by where it was caught, and what was wrong with it."""

    written: dict[str, Callable[[], "list[bytes]"]]
    controls: dict[str, bytes]
    """What must be full of canaries: the tracker's payloads, and what the sidecar received."""
    wrong: list[str]
    released: int


def configuration(life: Life, folder: Path, port: int, metrics_port: int) -> Path:
    """A configuration beside its ledger, outside of the folder that the sidecar works in."""
    example = Path(eyestream.__file__).parent / "data" / "sidecar.toml"
    text = example.read_text(encoding="utf-8")
    pairs = [
        ("mqtt://localhost:1883", f"mqtt://127.0.0.1:{port}"),
        ('"everyday-klt-anchored-64"', f'"{life.calibration}"'),
        ("window_epsilon = 9.6", "window_epsilon = 1e9"),
        ("day_epsilon = 2304.0", "day_epsilon = 1e9"),
        *(pair for pair in life.edits),
        ('id = "hmd-4f1c07a9d2"', "\n[[device]]\n".join(f'id = "hmd-{i}"' for i in range(life.devices))),
    ]
    if not any("session_epsilon" in old for old, _ in life.edits):
        pairs.append(("session_epsilon = 1152.0", "session_epsilon = 1e9"))
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    if life.metrics:
        text += f"\n[metrics]\nport = {metrics_port}\n"
    (folder / "sidecar.toml").write_text(text)
    if life.before:
        calibrations.save(life.known, folder / life.calibration)
    create_ledger(folder / "ledger", created=int(time.time()))
    return folder / "sidecar.toml"


def live(life: Life, folder: Path, broker_port: int, metrics_port: int, canary: Canary, *, trace: bool) -> Ended:
    """Run one life to its end."""
    folder.mkdir()
    proxy = Proxy(broker_port)
    path = configuration(life, folder, proxy.port, metrics_port)
    code = (life.plant.code() if life.plant else "") + PLAIN
    devices = tuple(f"hmd-{i}" for i in range(life.devices))
    pages: list[bytes] = []
    wrong: list[str] = []
    with Tracker(broker_port, devices, canary) as tracker:
        process = Process(
            [sys.executable, "-c", code, "run", "--config", str(path)],
            folder,
            trace=trace,
        )
        try:
            _play(life, tracker, process, wrong)
            if life.metrics:
                pages += _scrape(life, process, metrics_port, wrong)
        finally:
            if life.end is not None and process.alive:
                process.signal(life.end)
            end, dumped = process.end()
        tracker.wait(lambda: False, 0.05)
    proxy.close()
    if end != life.code:
        wrong.append(f"ended with {end}, not {life.code}")
    if dumped or any(folder.rglob("core*")):
        wrong.append("left a core")
    if not re.search(life.says, process.said()):
        wrong.append(f"did not say {life.says!r}")
    written = {
        "strace": lambda: list(process.strings()),
        "links": lambda: [b"".join(proxy.sent)],
        "files": lambda: list(process.left()),
        "metrics": lambda: pages,
    }
    controls = {"tracker": b"".join(tracker.sample), "received": b"".join(proxy.received)}
    return Ended(written, controls, wrong, tracker.released)


def _play(life: Life, tracker: Tracker, process: Process, wrong: list[str]) -> None:
    """Send what the life asks for, once the sidecar is ready."""
    known = life.known
    if not tracker.wait(lambda: len(tracker.ready) == life.devices, 20):
        wrong.append("was not ready in 20 s")
        return
    if life.before:
        for _ in range(life.before):
            tracker.send(known.n)
        tracker.begin()
    expected = life.chunks if life.released is None else life.released
    if expected and not tracker.chunks(expected, known.n, 20):
        wrong.append(f"released {tracker.released} chunks, not {expected}")
    if life.hostile:
        for topic, payload in hostile(tracker.canary, tracker.devices[0]):
            tracker.publish(topic, payload)
        for payload in (tracker.sample[0], b""):  # the second one removes the first from the broker
            tracker.publish(f"eyestream/v1/{tracker.devices[0]}/features/raw", payload, retain=True)
    for _ in range(life.chunks - expected):
        tracker.send(known.n)
    tracker.send(known.n // 2)  # an open chunk is in memory at the end
    if life.pauses:
        _pause_and_resume(tracker, process, known.n, wrong)
    deadline = time.monotonic() + 8
    asked = "" if life.says == "stopped: " or life.end is not signal.SIGTERM else life.says
    while process.alive and time.monotonic() < deadline and not (asked and re.search(asked, process.said())):
        if life.end is not None and not asked:
            tracker.wait(lambda: False, 0.3)
            break
        tracker.wait(lambda: False, 0.02)
    if tracker.released != expected * life.devices and life.released is not None:
        wrong.append(f"released {tracker.released} chunks, not {expected}")


def _pause_and_resume(tracker: Tracker, process: Process, n: int, wrong: list[str]) -> None:
    """Rows before a pause, in it and after it, and over switches; lines on the control socket that are none."""
    path = process.folder / "ledger.control"
    before = tracker.released
    if ask(path, "pause") != "paused":
        wrong.append("was not paused")
    for _ in range(3):
        tracker.send(n)
    for line in ("", "pause 1.25", "x" * 1000):
        with contextlib.suppress(ConfigError):
            ask(path, line)
    tracker.wait(lambda: False, 0.3)
    if tracker.released != before:
        wrong.append("released something while it was paused")
    if ask(path, "resume") != "on":
        wrong.append("was not resumed")
    tracker.send(n)  # may describe gaze of the pause, and is passed over
    tracker.wait(lambda: False, _SHARED_S)
    for _ in range(8):
        tracker.send(n)
    if not tracker.wait(lambda: tracker.released > before, 20):
        wrong.append("released nothing after the pause")
    tracker.send(n // 2)
    _switch_and_forget(tracker, path, n, wrong)


def _switch_and_forget(tracker: Tracker, path: Path, n: int, wrong: list[str]) -> None:
    """An open chunk as somebody else puts the device on, rows that are passed over, and what is forgotten."""
    for line, answer in (("wearer guest-1", "worn"), ("forget guest-1", "forgotten"), ("wearer guest-2", "worn")):
        if ask(path, line) != answer:
            wrong.append(f"{line} was not answered")
        for _ in range(2):
            tracker.send(n)
    for line in ("wearer", "wearer 1.25 x", "forget a/b"):
        with contextlib.suppress(ConfigError):
            ask(path, line)
    tracker.wait(lambda: False, 0.3)


def _scrape(life: Life, process: Process, port: int, wrong: list[str]) -> list[bytes]:
    """What the sidecar tells on its port; then a reload."""
    pages = []
    for page in ("metrics", "healthz"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5) as answer:
            pages.append(answer.read())
    if life.hostile and b'rejected_total{reason="' not in pages[0]:
        wrong.append("rejected nothing")
    process.signal(signal.SIGHUP)
    time.sleep(0.1)
    return pages
