"""Write the cases of bad gaze, tests/product/hostile/gaze.jsonl: `python -m tools.make.hostile_gaze`."""

import base64
import gzip
import json
import struct
from pathlib import Path
from typing import Any

import msgpack

FILE = Path(__file__).resolve().parents[2] / "tests" / "product" / "hostile" / "gaze.jsonl"
CASES: list[dict[str, Any]] = []


def add(kind: str, name: str, says: str, **more: Any) -> None:
    CASES.append({"kind": kind, "name": name, **more, "says": says})


def sample(name: str, says: str, *gaze: float | str, profile: str = "mqtt", **more: Any) -> None:
    """Numbers as texts: JSON has neither NaN nor infinity."""
    told = {key: [str(n) for n in value] if isinstance(value, list) else str(value) for key, value in more.items()}
    add("sample", name, says, profile=profile, gaze=[str(n) for n in gaze or (1.0, 2.0)], **told)


def samples() -> None:
    for value in ("nan", "inf", "-inf", "1e308", "-1e308", "91.0", "-90.5"):
        sample(f"x is {value}", "lost", value, 2.0)
        sample(f"y is {value}", "lost", 1.0, value)
    sample("(0, 0) where it is a loss", "lost", 0.0, 0.0, profile="lsl", pupil=[3.0, 3.0])
    sample("(0, 0) where it is none", "fine", 0.0, 0.0)
    for value in ("-1.0", "0.0", "nan", "inf", "1e308", "0.5", "11.0"):
        sample(f"a diameter of {value}", "no pupil", pupil=[value])
    sample("one eye is lost", "no pupil", profile="lsl", pupil=[3.0, "nan"])
    sample("a point outside of the image", "lost", 2500.0, 600.0, profile="neon", valid=1.0)
    sample("a point in the margin of the image", "fine", 1900.0, 600.0, profile="neon", valid=1.0)
    sample("glasses not worn", "lost", 800.0, 600.0, profile="neon", valid=0.0)
    sample("worn is NaN", "lost", 800.0, 600.0, profile="neon", valid="nan")
    sample("a direction of no length", "lost", 0.0, 0.0, 0.0, profile="core", valid=1.0)
    sample("a direction of 1e308", "fine", 0.0, 0.0, "1e308", profile="core", valid=1.0)
    sample("a direction backward", "lost", 0.0, 0.0, -600.0, profile="core", valid=1.0)


def times() -> None:
    for name, how, says in (
        ("repeated times", {"repeat": True}, "no session"),
        ("time goes backward", {"backward": True}, "no session"),
        ("no time at all", {"none": True}, "no session"),
        ("milliseconds taken for seconds", {"unit": 1e3}, "no session"),
        ("nanoseconds taken for seconds", {"unit": 1e9}, "no session"),
        ("seconds taken for milliseconds", {"unit": 1e-3}, "no session"),
        ("thirty seconds of silence", {"silence": [35, 65]}, "nan in between"),
        ("the clock jumps an hour ahead", {"step": 3600}, "two sessions"),
        ("the clock jumps an hour back", {"step": -3600}, "two sessions"),
        ("the clock jumps half a second ahead", {"step": 0.5}, "fine"),
        ("the clock jumps half a second back", {"step": -0.5}, "fine"),
        ("the clock doubles", {"pace": 2.0}, "it ends"),
        ("the clock halves", {"pace": 0.5}, "it ends"),
        ("the clock stops", {"pace": 0.0}, "nan later"),
        ("two samples of each time", {"twice": True}, "fine"),
        ("twice the nominal rate", {"rate": 2.0}, "nan"),
        ("a third of the nominal rate", {"rate": 0.33}, "nan"),
        ("all lost", {"lost": True}, "nan"),
        ("a frozen value", {"frozen": True}, "nan"),
        ("single wrong times", {"wrong": ["nan", "inf", "-1e308", "1e308", "0.0"]}, "fine"),
    ):
        add("times", name, says, how=how)


def neon(name: str, says: str, data: bytes, report: bool = True) -> None:
    add("neon", name, says, report=report, hex=data.hex())


def packets() -> None:
    def packet(payload: bytes, kind: int = 97, source: int = 7, first: int = 0x80) -> bytes:
        return struct.pack("!BBHII", first, kind, 1, 900, source) + payload

    for length in (0, 8, 10, 16, 21, 64, 77, 88, 104, 106, 1400):
        neon(f"a payload of {length} bytes", "payloads of a length that is not known", packet(b"\x41" * length))
    early = "packets before the first sender report"
    neon("a packet before the first sender report", early, packet(b"\x41" * 9), report=False)
    neon("a packet of another source", early, packet(b"\x41" * 9, source=8))
    none = "not a packet of this stream"
    neon("a packet of another stream", none, packet(b"\x41" * 9, kind=96))
    for length in (0, 1, 11):
        neon(f"{length} bytes", none, b"\x80" * length)
    neon("a packet that is all padding", none, packet(b"\xff" * 4, first=0xA0))
    neon("an extension that is cut", none, packet(b"\x00\x00", first=0x90))


def core(name: str, says: str, *parts: bytes) -> None:
    add("core", name, says, hex=[part.hex() for part in parts])


def data() -> None:
    good: dict[str, Any] = {"timestamp": 1.0, "confidence": 1.0, "gaze_point_3d": [1.0, 2.0, 600.0]}
    none = "no datum"
    core("no second part", none, b"gaze.")
    core("nothing", none, b"gaze.", b"")
    core("a reserved byte", none, b"gaze.", b"\xc1")
    core("a cut datum", none, b"gaze.", msgpack.packb(good)[:-3])
    core("a list", none, b"gaze.", msgpack.packb([1, 2]))
    core("time as text", none, b"gaze.", msgpack.packb(good | {"timestamp": "1"}))
    core("no confidence", none, b"gaze.", msgpack.packb({"timestamp": 1.0, "gaze_point_3d": [1.0, 2.0, 3.0]}))
    core("a point of two numbers", none, b"gaze.", msgpack.packb(good | {"gaze_point_3d": [1.0, 2.0]}))
    core("nested too deep", none, b"gaze.", b"\x91" * 5000)
    flat = "gaze without a point in space: use the three-dimensional calibration"
    core("two-dimensional gaze", flat, b"gaze.2d", msgpack.packb({"timestamp": 1.0, "confidence": 1.0}))


def mqtt(name: str, says: str, message: Any) -> None:
    payload = message if isinstance(message, bytes) else msgpack.packb(message, use_bin_type=True)
    add("mqtt", name, says, hex=payload.hex())


def messages() -> None:
    single, double = (lambda *x: struct.pack(f"<{len(x)}f", *x)), (lambda *x: struct.pack(f"<{len(x)}d", *x))
    good = {"v": 1, "schema": 1, "shape": [1, 2], "values": single(1, 2), "t": double(1)}
    mqtt("no t", "missing_key", {key: value for key, value in good.items() if key != "t"})
    mqtt("t of float32", "length", good | {"t": single(1)})
    mqtt("two times for one sample", "length", good | {"t": double(1, 2)})
    mqtt("t as a list", "type", good | {"t": [1.0]})
    mqtt("one column", "shape", good | {"shape": [1, 1], "values": single(1)})
    mqtt("four columns", "shape", good | {"shape": [1, 4], "values": single(1, 2, 3, 4)})
    mqtt("no columns", "shape", good | {"shape": [1, 0], "values": b""})
    mqtt("a negative number of samples", "shape", good | {"shape": [-1, 2]})
    mqtt("more samples than bytes", "length", good | {"shape": [4_000_000_000, 2]})
    mqtt("another schema", "schema", good | {"schema": 2})
    mqtt("a key of rows", "unknown_key", good | {"seq": 1})
    mqtt("a later version", "version", good | {"v": 2})
    mqtt("JSON", "not_a_map", b'{"v": 1}')
    mqtt("nothing", "not_msgpack", b"")


def outlet(name: str, says: str, channels: list[list[str]], **more: Any) -> None:
    usual: dict[str, Any] = {"rate_hz": 200.0, "numbers": True, "wanted": {}}
    add("outlet", name, says, channels=channels, **(usual | more))


def outlets() -> None:
    def screen(unit: str) -> list[list[str]]:
        return [["x", "ScreenX", unit, "both"], ["y", "ScreenY", unit, "both"]]

    outlet("no units", "no unit", screen(""))
    outlet("unknown units", "unit 'furlongs'", screen("furlongs"))
    outlet("pixels without geometry", "unit 'pixels'", screen("pixels"))
    outlet("no channels", "0 channels of type", [])
    labels = {"gaze": ["x", "y"]}
    outlet("a channel less than before", "0 channels have the label 'y'", screen("deg")[:1], wanted=labels)
    outlet("a channel less than before, by number", "there is no channel 2", screen("deg"), wanted={"gaze": [1, 2]})
    outlet("two of each", "2 channels of type", screen("deg") * 2)
    outlet("texts", "texts, not numbers", screen("deg"), numbers=False)
    outlet("another rate", "60 samples a second", screen("deg"), rate_hz=60.0)


def profiles() -> None:
    for name, says, old, new in (
        ("pixels without a camera", "[camera]: expected a table", 'gaze_unit = "deg"', 'gaze_unit = "px"'),
        ("an unknown unit", "gaze_unit: expected", '"deg"', '"furlongs"'),
        ("an unknown unit of time", "time_unit: expected", 'time_unit = "s"', 'time_unit = "min"'),
        ("a rate of 0", "rate_hz", "rate_hz = 200.0", "rate_hz = 0.0"),
        ("a rate of NaN", "rate_hz", "rate_hz = 200.0", "rate_hz = nan"),
        ("an unknown key", "unknown key", 'time_unit = "s"', 'time_unit = "s"\ntime_units = "s"'),
    ):
        add("profile", name, says, old=old, new=new)


def file(name: str, says: str, suffix: str, content: bytes) -> None:
    add("file", name, says, suffix=suffix, base64=base64.b64encode(content).decode())


def files() -> None:
    def table(step: float, line: str = "1.0,2.0") -> bytes:
        return ("t_s,x_deg,y_deg\n" + "".join(f"{i * step:.2f},{line}\n" for i in range(50))).encode()

    file("a gzip that is cut off", "", ".csv.gz", gzip.compress(table(0.01), mtime=0)[:-12])
    file("decimal commas", "", ".csv", table(0.01, "1,0,2,0"))
    file("a column is missing", "y_deg", ".csv", table(0.01).replace(b"y_deg", b"y"))
    file("no samples", "no samples", ".csv", b"t_s,x_deg,y_deg\n")
    file("time stands still", "does not go forward", ".csv", table(0.0))
    file("milliseconds taken for seconds", "samples a second", ".csv", table(10.0))


def main() -> None:
    for make in (samples, times, packets, data, messages, outlets, profiles, files):
        make()
    FILE.write_text("".join(json.dumps(case) + "\n" for case in CASES))


if __name__ == "__main__":
    main()
