"""An unmodified program on the loaders that can be installed: without the layer, with it, and evading it."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eyestream_openxr.install import DISABLE, LAYER_NAME
from eyestream_openxr.wire import Page
from tests.openxr.machine import ROOT, TRACKED, VALID, Built, Looking, RefusedError, program
from tests.rigs.pyopenxr import pyopenxr_python

DEBIAN = "libopenxr_loader.so.1"

IMPLICIT = "openxr/1/api_layers/implicit.d/eyestream.json"

PROGRAM = """
import json, time, xr
instance = xr.create_instance(xr.InstanceCreateInfo(
    application_info=xr.ApplicationInfo("program", 1, "engine", 1, xr.Version(1, 0, 20)),
    enabled_extension_names=["XR_MND_headless", "XR_EXT_eye_gaze_interaction"]))
system = xr.get_system(instance, xr.SystemGetInfo(xr.FormFactor.HEAD_MOUNTED_DISPLAY))
group = xr.create_action_set(instance, xr.ActionSetCreateInfo("play", "Play", 0))
gaze = xr.create_action(group, xr.ActionCreateInfo("gaze", xr.ActionType.POSE_INPUT, localized_action_name="Gaze"))
pose = xr.ActionSuggestedBinding(gaze, xr.string_to_path(instance, "/user/eyes_ext/input/gaze_ext/pose"))
xr.suggest_interaction_profile_bindings(instance, xr.InteractionProfileSuggestedBinding(
    interaction_profile=xr.string_to_path(instance, "/interaction_profiles/ext/eye_gaze_interaction"),
    suggested_bindings=[pose]))
session = xr.create_session(instance, xr.SessionCreateInfo(0, system))
xr.attach_session_action_sets(session, xr.SessionActionSetsAttachInfo(action_sets=[group]))
space = xr.create_action_space(session, xr.ActionSpaceCreateInfo(action=gaze))
view = xr.create_reference_space(session, xr.ReferenceSpaceCreateInfo(xr.ReferenceSpaceType.VIEW))
flags, poses = set(), set()
for _ in range(60):
    active = [xr.ActiveActionSet(group, xr.NULL_PATH)]
    xr.sync_actions(session, xr.ActionsSyncInfo(active_action_sets=active))
    found = xr.locate_space(space, view, time.monotonic_ns())
    flags.add(int(found.location_flags))
    if found.location_flags:
        poses.add((found.pose.orientation.x, found.pose.orientation.y))
    time.sleep(1 / 90)
print(json.dumps({"flags": sorted(flags), "poses": len(poses)}))
"""

LETTING_GO = """
import _ctypes, ctypes, json, os, sys, time
from tests.openxr.looker import Loaded
from tests.openxr.machine import CLOCK, GAZE
for _ in range(2):
    program = Loaded(sys.argv[1], ["XR_MND_headless", GAZE, CLOCK])
    if not (child := os.fork()):
        ctypes.CDLL(None).exit(7)
    child = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _ctypes.dlclose(program._kept[0]._handle)
    time.sleep(0.1)
print(json.dumps({"child": child}))
"""


class Machine:
    """A user's home with the layer, the fake headset whose eyes jump, and a loader."""

    def __init__(self, built: Built, home: Path, loader: str) -> None:
        self.built, self.home, self.loader = built, home, loader
        runtime = home / "runtime.json"
        said = {"name": "fake", "library_path": str(built.runtime_file)}
        runtime.write_text(json.dumps({"file_format_version": "1.0.0", "runtime": said}))
        self.add(IMPLICIT, LAYER_NAME, built.layer_file, disable_environment=DISABLE)
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(("XR_", "XDG_"))} | {
            "XR_RUNTIME_JSON": str(runtime),
            "XDG_DATA_HOME": str(home),
            "FAKE_JUMPING": "1",
            "FAKE_1_0": "1",
            "PYTHONPATH": str(ROOT / "openxr"),
        }

    def add(self, path: str, name: str, library: Path, **more: str) -> None:
        """Install a layer."""
        manifest = self.home / path
        manifest.parent.mkdir(parents=True, exist_ok=True)
        said = {"name": name, "library_path": str(library), "api_version": "1.0", "implementation_version": "1"}
        layer = said | {"description": "a layer"} | more
        manifest.write_text(json.dumps({"file_format_version": "1.0.0", "api_layer": layer}))

    def looked(self, *extensions: str, frames: int = 30, **variables: str) -> dict[str, Any]:
        """What the ordinary program saw."""
        words = [sys.executable, "-m", "tests.openxr.looker", self.loader, str(frames), *extensions]
        return self._run(words, variables)

    def _run(self, words: list[str], variables: dict[str, str]) -> dict[str, Any]:
        done = subprocess.run(
            words, env=self.variables | variables, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found | {"log": done.stderr}

    def run(self, python: str, code: str, *words: str, **variables: str) -> dict[str, Any]:
        """What a program of somebody else's saw."""
        return self._run([python, "-c", code, *words], variables)


def _loader(kind: str) -> str:
    if kind == "debian":
        return DEBIAN
    words = "import pathlib, xr; print(pathlib.Path(xr.__file__).parent / 'library' / 'libopenxr_loader.so')"
    done = subprocess.run([pyopenxr_python(), "-c", words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


LOADERS = [
    pytest.param("debian", marks=pytest.mark.needs("openxr", "cc", "make")),
    pytest.param("pyopenxr", marks=pytest.mark.needs("pyopenxr", "libgl", "cc", "make")),
]


@pytest.fixture(params=LOADERS)
def machine(request: pytest.FixtureRequest, built: Built, tmp_path: Path) -> Machine:
    return Machine(built, tmp_path, _loader(request.param))


@pytest.fixture
def bridge(built: Built) -> Iterator[None]:
    """A live bridge with one tile."""
    over = threading.Event()

    def beat() -> None:
        turn, gaze_ns = 0, time.monotonic_ns() - 700_000_000
        while not over.is_set():
            now, turn = time.monotonic_ns(), turn + 2
            built.show(Page(now, now + 10**9, gaze_ns, -20.0, 12.0), turn)
            over.wait(0.2)

    beating = threading.Thread(target=beat)
    beating.start()
    yield
    over.set()
    beating.join()


def raw(seen: dict[str, Any]) -> bool:
    """Whether a program saw the eyes: tracked, each frame anew."""
    return seen["flags"] == [TRACKED] and seen["poses"] > 10


def test_nothing_without_a_bridge_and_raw_gaze_without_the_layer(machine: Machine) -> None:
    seen = machine.looked()
    assert (seen["flags"], seen["supports"], seen["log"]) == ([0], False, "")
    control = machine.looked(**{DISABLE: "1"})
    assert raw(control)
    assert control["supports"]
    assert control["age_s"] < 0.1


@pytest.mark.usefixtures("bridge")
def test_a_tile_where_a_bridge_is_at_work(machine: Machine) -> None:
    seen = machine.looked()
    assert (seen["flags"], seen["poses"], seen["supports"]) == ([VALID], 1, True)
    assert 0.7 < seen["age_s"] < 20


@pytest.mark.usefixtures("bridge")
def test_other_extensions_of_the_eyes_are_dropped(machine: Machine) -> None:
    seen = machine.looked("XR_FB_eye_tracking_social")
    assert not seen["social"]
    assert seen["log"].splitlines() == [f"{LAYER_NAME}: dropped XR_FB_eye_tracking_social, which has no private form"]
    assert machine.looked("XR_FB_eye_tracking_social", **{DISABLE: "1"})["social"]


def test_a_program_may_end_or_let_its_loader_go_without_destroying_its_instance(machine: Machine) -> None:
    """A thread of the layer that ran on where nothing is mapped ended 3 of 150 such programs with SIGSEGV."""
    assert machine.run(sys.executable, LETTING_GO, machine.loader)["child"] == 7


@pytest.mark.needs("pyopenxr", "libgl", "cc", "make")
@pytest.mark.usefixtures("bridge")
def test_a_program_of_pyopenxr_before_and_after(built: Built, tmp_path: Path) -> None:
    machine = Machine(built, tmp_path, "")
    assert raw(machine.run(pyopenxr_python(), PROGRAM, **{DISABLE: "1"}))
    after = machine.run(pyopenxr_python(), PROGRAM)
    assert (after["flags"], after["poses"]) == ([VALID], 1)


# Evasions. Each of these succeeds: the layer is an adapter and a reference policy, and no border.


def test_evasion_the_program_switches_the_layer_off_itself(machine: Machine) -> None:
    assert raw(machine.looked(EVADE=DISABLE))


def test_evasion_other_folders_for_manifests(machine: Machine, tmp_path: Path) -> None:
    assert raw(machine.looked(XDG_DATA_HOME=str(tmp_path / "elsewhere")))


@pytest.mark.needs("cc", "make")
def test_evasion_the_runtime_opened_without_a_loader(built: Built) -> None:
    with program(built, layered=False) as direct:
        assert Looking(direct).look()[0] == TRACKED


@pytest.mark.needs("cc", "make")
def test_evasion_the_handle_of_the_layers_own_action_is_guessed(built: Built) -> None:
    with program(built) as through:
        looking = Looking(through)
        looking.look()
        seen = []
        for action in range(2 << 32, (2 << 32) + 100):
            with contextlib.suppress(RefusedError):
                seen.append(through.locate(through.action_space(looking.session, action), looking.view)[0])
        assert looking.look()[0] == 0
        assert sorted(set(seen)) == [0, TRACKED]


def test_no_evasion_a_layer_below_gets_no_gaze_at_all(machine: Machine) -> None:
    """An explicit layer stands below ours."""
    machine.add("openxr/1/api_layers/explicit.d/spy.json", "XR_APILAYER_TEST_spy", spy_library(machine.built))
    seen = machine.looked(XR_ENABLE_API_LAYERS="XR_APILAYER_TEST_spy")
    assert seen["flags"] == [0]
    assert "no gaze, because the layer XR_APILAYER_TEST_spy below would see it raw" in seen["log"]


def spy_library(built: Built) -> Path:
    """A layer that hands everything down."""
    made, source = built.folder / "libspy.so", Path(__file__).with_name("spy_layer.c")
    include = ROOT / "openxr/eyestream_openxr/layer"
    words = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{include}", "-o", str(made)]
    subprocess.run([*words, str(source)], check=True)
    return made
