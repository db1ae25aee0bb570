"""What the layer declares of OpenXR, compared with headers and bindings of others; and the list of extensions."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.openxr.machine import LAYER
from tests.rigs.pyopenxr import pyopenxr_python

XR = (LAYER / "xr.h").read_text(encoding="utf-8")
STRUCTURES = {
    name: [
        field
        for part in re.split(r"[;,]", re.sub(r"/\*.*?\*/", "", body))
        for field in re.findall(r"(\w+)(?:\[\d+\])?\s*$", part)
    ]
    for body, name in re.findall(r"typedef struct(?: \w+)? \{([^{}]*)\} (Xr\w+);", XR)
}
"""The members of each structure of ours."""

CONSTANTS = re.findall(r"^ +(XR_\w+) = ", XR, re.M)
LATER = {"XrSpaceLocationData", "XrSpacesLocateInfo", "XrSpaceLocations"}
"""Of 1.1: Debian's header is older."""

OF_LOADERS = {name for name in STRUCTURES if "Negotiate" in name or "ApiLayer" in name}
POLICY = (LAYER / "policy.txt").read_text(encoding="utf-8")
EXTENSIONS = {name: verdict for verdict, name in re.findall(r"^(pass|replace|deny) (XR_\w+) ", POLICY, re.M)}


def told(include: str, names: list[str], constants: list[str], folder: Path) -> list[str]:
    """Sizes, offsets and numbers, by one header."""
    lines = [f'printf("{name} %zu\\n", sizeof({name}));' for name in names]
    lines += [f'printf("{n}.{f} %zu\\n", offsetof({n}, {f}));' for n in names for f in STRUCTURES[n]]
    lines += [f'printf("{name} %lld\\n", (long long){name});' for name in constants]
    body = "\n".join(lines)
    made = folder / "told"
    source = f"#include <stddef.h>\n#include <stdio.h>\n#include <{include}>\nint main(void) {{\n{body}\n}}\n"
    words = ["cc", "-w", f"-I{LAYER}", "-xc", "-", "-o", str(made)]
    subprocess.run(words, input=source, text=True, check=True)
    return subprocess.run([made], text=True, capture_output=True, check=True).stdout.splitlines()


@pytest.mark.needs("openxr", "cc")
def test_sizes_offsets_and_numbers_are_those_of_debians_header(tmp_path: Path) -> None:
    names = sorted(STRUCTURES.keys() - OF_LOADERS - LATER)
    ours = told("xr.h", names, CONSTANTS, tmp_path)
    assert ours == told("openxr/openxr.h", names, CONSTANTS, tmp_path)
    assert len(names) > 20
    assert len(ours) > 150


BINDINGS = """
import ctypes, json, xr
from xr.api_layer import loader_interfaces
names = %r
found = {}
for name in names:
    there = getattr(loader_interfaces, name[2:], None) or getattr(xr, name[2:], None)
    if there is not None:
        parts = [part for kind in reversed(there.__mro__) for part in vars(kind).get("_fields_", ())]
        found[name] = [ctypes.sizeof(there)] + [getattr(there, part[0]).offset for part in parts]
print(json.dumps(found))
"""


@pytest.mark.needs("pyopenxr", "libgl", "cc")
def test_sizes_and_offsets_are_those_of_the_bindings_too(tmp_path: Path) -> None:
    """They have what is new in 1.1, and what stands between a loader and its layers."""
    names = sorted(STRUCTURES.keys() - {"XrVector3f", "XrQuaternionf", "XrBaseOutStructure"})
    words = [pyopenxr_python(), "-c", BINDINGS % (names,)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout)
    ours: dict[str, list[int]] = {}
    for line in told("xr.h", names, [], tmp_path):
        name, number = line.split()
        ours.setdefault(name.partition(".")[0], []).append(int(number))
    assert LATER | OF_LOADERS - {"XrNegotiateRuntimeRequest"} <= theirs.keys()
    assert {name: ours[name] for name in theirs} == theirs


def made(folder: Path, *headers: Path, policy: str | None = None) -> "subprocess.CompletedProcess[str]":
    """The table of extensions, made of a policy and headers."""
    file = folder / "policy.txt"
    file.write_text(POLICY if policy is None else policy)
    words = ["awk", "-f", str(LAYER / "policy.awk"), str(file), *map(str, headers)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_list_passes_replaces_and_denies(tmp_path: Path) -> None:
    table = made(tmp_path).stdout
    passed, denied = (re.findall(r'"(\w+)"', part) for part in table.split("denied_functions"))
    assert passed == [name for name, verdict in EXTENSIONS.items() if verdict == "pass"]
    assert [name for name, verdict in EXTENSIONS.items() if verdict == "replace"] == ["XR_EXT_eye_gaze_interaction"]
    for name, verdict in EXTENSIONS.items():
        if re.search(r"_eye_|gaze|_face_|facial|foveat|quad_views|presence", name) and not name.startswith("XR_FB_fov"):
            assert verdict != "pass", name
    assert {"xrGetEyeGazesFB", "xrGetFineTrackingEyesInfoANDROID", "xrGetFoveationEyeTrackedStateMETA"} <= set(denied)
    assert len(EXTENSIONS) > 250


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("allow XR_TEST_a 1.1.65 of the room", "the verdict is pass, replace or deny, not allow"),
        ("pass XR_TEST_a 1.1.65", "needs the version that it was read in, and a reason"),
        ("pass XR_TEST_a of the room", "needs the version that it was read in, and a reason"),
        ("pass test 1.1.65 of the room", "is no name of an extension"),
        ("deny XR_KHR_metal_enable 1.1.65 twice", "is here twice"),
        ("pass XR_TEST_a 1.1.65 of the room\n    calls xrTest", "functions stand below a denied extension"),
    ],
)
def test_a_wrong_line_stops_the_build(tmp_path: Path, change: str, said: str) -> None:
    done = made(tmp_path, policy=f"{POLICY}{change}\n")
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.needs("cc", "make")
def test_an_extension_that_the_list_does_not_know_stops_the_build(tmp_path: Path) -> None:
    header = tmp_path / "openxr.h"
    header.write_text('#define XR_EXT_UUID_EXTENSION_NAME "XR_EXT_uuid"\n#define XR_B_EXTENSION_NAME "XR_TEST_new"\n')
    words = ["make", "-C", str(LAYER), f"OUT={tmp_path / 'out'}", f"HEADERS={header}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "XR_TEST_new is not in" in done.stderr
    assert not (tmp_path / "out" / "policy.h").exists()
    header.write_text("XR_EXT_uuid\n")
    assert made(tmp_path, header).returncode == 0


@pytest.mark.needs("openxr")
def test_every_extension_of_debians_header_is_in_the_list(tmp_path: Path) -> None:
    headers = sorted(Path("/usr/include/openxr").glob("openxr*.h"))
    done = made(tmp_path, *headers)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(headers) > 1


@pytest.mark.needs("pyopenxr", "libgl")
def test_every_extension_of_the_bindings_is_in_the_list(tmp_path: Path) -> None:
    code = (
        "import xr.constants as k; print(*(v for n, v in vars(k).items() if n.endswith('_EXTENSION_NAME')), sep='\\n')"
    )
    done = subprocess.run([pyopenxr_python(), "-c", code], capture_output=True, text=True, check=True)
    names = tmp_path / "names"
    names.write_text(done.stdout)
    assert len(done.stdout.split()) > 200
    assert made(tmp_path, names).stderr == ""
