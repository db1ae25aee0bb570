"""Programs of OpenXR in ctypes: on the fake runtime alone, or through the layer, as a loader puts them together."""

import contextlib
import ctypes as c
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eyestream_openxr.bridge import PageFile
from eyestream_openxr.wire import Page

ROOT = Path(__file__).resolve().parents[2]
LAYER = ROOT / "openxr" / "eyestream_openxr" / "layer"
RUNTIME = Path(__file__).with_name("fake_runtime.c")
LAYER_NAME = b"XR_APILAYER_EYESTREAM_private_gaze"

GAZE, CLOCK = "XR_EXT_eye_gaze_interaction", "XR_KHR_convert_timespec_time"
GAZE_PROFILE, GAZE_POSE = "/interaction_profiles/ext/eye_gaze_interaction", "/user/eyes_ext/input/gaze_ext/pose"
HAND_PROFILE, HAND_POSE = "/interaction_profiles/khr/simple_controller", "/user/hand/left/input/grip/pose"
VALID, TRACKED = 3, 15
VIEW, LOCAL = 1, 2
POSE = 4

Function = c.CFUNCTYPE(None)
GetProc = c.CFUNCTYPE(c.c_int, c.c_uint64, c.c_char_p, c.POINTER(c.c_void_p))


class Posef(c.Structure):
    _fields_ = [(name, c.c_float) for name in ("qx", "qy", "qz", "qw", "x", "y", "z")]


STILL = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


class Application(c.Structure):
    _fields_ = [
        ("name", c.c_char * 128),
        ("version", c.c_uint32),
        ("engine", c.c_char * 128),
        ("engine_version", c.c_uint32),
        ("api", c.c_uint64),
    ]


def structure(*fields: tuple[str, object]) -> type[c.Structure]:
    """A structure of OpenXR, which begins with its type and the next one."""
    return type("Xr", (c.Structure,), {"_fields_": [("type", c.c_int32), ("next", c.c_void_p), *fields]})


InstanceInfo = structure(
    ("flags", c.c_uint64),
    ("application", Application),
    ("layers", c.c_uint32),
    ("layer_names", c.c_void_p),
    ("extensions", c.c_uint32),
    ("extension_names", c.c_void_p),
)
Supports = structure(("yes", c.c_uint32))
SystemProperties = structure(
    ("id", c.c_uint64), ("vendor", c.c_uint32), ("name", c.c_char * 256), ("rest", c.c_uint32 * 5)
)
SetInfo = structure(("name", c.c_char * 64), ("localized", c.c_char * 128), ("priority", c.c_uint32))
ActionInfo = structure(
    ("name", c.c_char * 64),
    ("kind", c.c_int32),
    ("count", c.c_uint32),
    ("paths", c.c_void_p),
    ("localized", c.c_char * 128),
)
Pairs = structure(("profile", c.c_uint64), ("count", c.c_uint32), ("bindings", c.c_void_p))
Handles = structure(("count", c.c_uint32), ("handles", c.c_void_p))
Plain = structure(("a", c.c_uint64), ("b", c.c_uint64))
Flag = structure(("yes", c.c_uint32))
Time = structure(("time", c.c_int64))
ActionSpace = structure(("action", c.c_uint64), ("path", c.c_uint64), ("pose", Posef))
ReferenceSpace = structure(("kind", c.c_int32), ("pose", Posef))
Location = structure(("flags", c.c_uint64), ("pose", Posef))
LocateInfo = structure(("base", c.c_uint64), ("time", c.c_int64), ("count", c.c_uint32), ("spaces", c.c_void_p))
Locations = structure(("count", c.c_uint32), ("locations", c.c_void_p))


class LocationData(c.Structure):
    _fields_ = [("flags", c.c_uint64), ("pose", Posef)]


class Loader(c.Structure):
    _fields_ = [
        ("type", c.c_int32),
        ("version", c.c_uint32),
        ("size", c.c_size_t),
        ("lowest", c.c_uint32),
        ("highest", c.c_uint32),
        ("lowest_api", c.c_uint64),
        ("highest_api", c.c_uint64),
    ]


class LayerRequest(c.Structure):
    _fields_ = [
        ("type", c.c_int32),
        ("version", c.c_uint32),
        ("size", c.c_size_t),
        ("interface", c.c_uint32),
        ("api", c.c_uint64),
        ("get", c.c_void_p),
        ("create", c.c_void_p),
    ]


class RuntimeRequest(c.Structure):
    _fields_ = LayerRequest._fields_[:-1]


class Next(c.Structure):
    pass


Create = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.POINTER(c.c_uint64))
Next._fields_ = [
    ("type", c.c_int32),
    ("version", c.c_uint32),
    ("size", c.c_size_t),
    ("name", c.c_char * 256),
    ("get", c.c_void_p),
    ("create", c.c_void_p),
    ("next", c.POINTER(Next)),
]


class LayerInfo(c.Structure):
    _fields_ = [
        ("type", c.c_int32),
        ("version", c.c_uint32),
        ("size", c.c_size_t),
        ("loader", c.c_void_p),
        ("settings", c.c_char * 512),
        ("next", c.POINTER(Next)),
    ]


def layer_sources(system: str) -> list[Path]:
    """What the layer is compiled from, on `posix` or `win32`."""
    return [LAYER / f"{name}.c" for name in ("layer", "objects", "gaze", f"link_{system}")]


class Built:
    """The layer and the runtime, compiled for the tests of this process.

    Attributes
    ----------
    place : where sidecar and bridge stand, built into this layer.
    """

    def __init__(self, folder: Path, flags: str = "-O1") -> None:
        self.folder, self.place = folder, folder / "place"
        self.place.mkdir(mode=0o700)
        self.layer_file, self.runtime_file = make_layer(folder, self.place, flags), make_runtime(folder)
        self.layer, self.runtime = c.CDLL(str(self.layer_file)), c.CDLL(str(self.runtime_file))
        self.runtime.fake_enabled.restype = c.c_char_p
        self._over = threading.Event()
        self._beating: threading.Thread | None = None

    def eyes(self, x_deg: float, y_deg: float, seen: bool = True) -> None:
        """Where the fake eyes look, against the head."""
        self.runtime.fake_eyes(c.c_double(x_deg), c.c_double(y_deg), int(seen))

    def head(self, yaw_deg: float, yaw_deg_s: float = 0.0) -> None:
        """How the fake head turns to the right."""
        self.runtime.fake_head(c.c_double(yaw_deg), c.c_double(yaw_deg_s))

    def times(self, epoch_ns: int = 0, lie_ns: int = 0) -> None:
        """Where the runtime's clock begins, and how wrong the times of its samples are."""
        self.runtime.fake_times(c.c_int64(epoch_ns), c.c_int64(lie_ns))

    def lacks(self, profile: bool = False, clock: bool = False, second_session: bool = False) -> None:
        """What the headset or its runtime does not have."""
        self.runtime.fake_lacks(int(profile), int(clock), int(second_session))

    def as_before(self) -> None:
        """The state in which every test begins."""
        self.eyes(10.0, -5.0)
        self.head(0.0)
        self.times()
        self.lacks()
        self.runtime.fake_focus(1)
        self._stop()
        for name in ("page", "gaze.sock"):
            (self.place / name).unlink(missing_ok=True)

    def show(self, page: Page, turn: int = 2) -> None:
        """Write the page, as a bridge that dies then."""
        self._stop()
        (self.place / "page").write_bytes(page.packed(turn))
        (self.place / "page").chmod(0o600)

    def show_gaze(self, x_deg: float, y_deg: float, beats: bool = True) -> int:
        """Show a released tile, until the test ends or writes a page; gives the middle of its slot.

        Without `beats` it is gone when the bridge was last alive too long ago.
        """
        now = time.monotonic_ns()
        page = Page(now, now + 60 * 10**9, now - 7 * 10**8, x_deg, y_deg)
        self.show(page)
        if beats:
            self._over.clear()
            self._beating = threading.Thread(target=self._beat, args=(page,))
            self._beating.start()
        return page.gaze_ns

    def _beat(self, page: Page) -> None:
        with contextlib.closing(PageFile(self.place / "page")) as file:
            while not self._over.wait(0.2):  # not at once: a program that starts now would meet half a page
                file.write(page._replace(beat_ns=time.monotonic_ns()))

    def _stop(self) -> None:
        if self._beating is not None:
            self._over.set()
            self._beating.join()
            self._beating = None


def make_layer(folder: Path, place: Path, flags: str = "-O1", headers: Sequence[Path] = ()) -> Path:
    """Compile the layer, warnings as errors."""
    words = ["make", "-s", "-C", str(LAYER), f"OUT={folder}", f"CFLAGS={flags}", f'PLACES="{place}"']
    subprocess.run([*words, f"HEADERS={' '.join(map(str, headers))}"], check=True, capture_output=True, text=True)
    return folder / "libeyestream_openxr.so"


def make_runtime(folder: Path) -> Path:
    """Compile the fake runtime."""
    made = folder / "libfake_runtime.so"
    words = ["cc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([*words, "-pthread", f"-I{LAYER}", "-o", str(made), str(RUNTIME), "-lm"], check=True)
    return made


def negotiated(library: c.CDLL, function: str, request: c.Structure, *words: object) -> None:
    """Ask a layer or a runtime for its functions."""
    loader = Loader(1, 1, c.sizeof(Loader), 1, 1, 1 << 48, (1 << 48) + (0x3FF << 32) + 0xFFF)
    request.size = c.sizeof(request)
    assert getattr(library, function)(c.byref(loader), *words, c.byref(request)) == 0


class RefusedError(Exception):
    """The program's call failed, with the number of OpenXR."""

    def __init__(self, function: str, result: int) -> None:
        super().__init__(f"{function}: {result}")
        self.result = result


class Program:
    """An instance of a program; every method raises `RefusedError` where OpenXR gives an error.

    Parameters
    ----------
    built
        Layer and runtime.
    extensions
        That the program asks for.
    layered
        False: the control, on the runtime alone.
    below
        Name of a layer between ours and the runtime, which does nothing.
    """

    def __init__(
        self, built: Built, extensions: Sequence[str] = (GAZE,), layered: bool = True, below: str | None = None
    ) -> None:
        self._kept: list[object] = []
        self._functions: dict[str, Any] = {}
        request = RuntimeRequest(3, 1)
        negotiated(built.runtime, "xrNegotiateLoaderRuntimeInterface", request)
        self._get = GetProc(request.get)
        self.instance = c.c_uint64()
        names = (c.c_char_p * len(extensions))(*(name.encode() for name in extensions))
        info = InstanceInfo(3)
        info.extensions, info.extension_names = len(extensions), c.cast(names, c.c_void_p)
        if layered:
            layer = LayerRequest(2, 1)
            negotiated(built.layer, "xrNegotiateLoaderApiLayerInterface", layer, LAYER_NAME)
            under = self._get
            create = Create(lambda info, _, made: self._create(under, info, made))
            first = Next(5, 1, c.sizeof(Next), LAYER_NAME, c.cast(under, c.c_void_p), c.cast(create, c.c_void_p))
            if below is not None:
                first.next = c.pointer(Next(5, 1, c.sizeof(Next), below.encode()))
            chain = LayerInfo(4, 1, c.sizeof(LayerInfo), None, b"", c.pointer(first))
            self._kept += [under, create, first, chain]
            result = Create(layer.create)(c.addressof(info), c.addressof(chain), c.byref(self.instance))
            self._get = GetProc(layer.get)
        else:
            result = self._create(self._get, c.addressof(info), c.pointer(self.instance))
        if result < 0:
            raise RefusedError("xrCreateInstance", result)

    @staticmethod
    def _create(get: Any, info: int, made: Any) -> int:
        found = c.c_void_p()
        get(0, b"xrCreateInstance", c.byref(found))
        return int(c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(c.c_uint64))(found.value)(info, made))

    def has(self, function: str) -> bool:
        """Whether the program is given a function."""
        found = c.c_void_p()
        return self._get(self.instance, f"xr{function}".encode(), c.byref(found)) >= 0 and bool(found.value)

    def call(self, function: str, *words: object) -> int:
        """Call a function; gives a result that is no error."""
        made = self._functions.get(function)
        if made is None:
            found = c.c_void_p()
            result = self._get(self.instance, f"xr{function}".encode(), c.byref(found))
            if result < 0:
                raise RefusedError(function, result)
            made = self._functions[function] = c.CFUNCTYPE(c.c_int)(found.value)
        result = made(*words)
        if result < 0:
            raise RefusedError(function, result)
        return int(result)

    def _made(self, function: str, *words: object) -> int:
        handle = c.c_uint64()
        self.call(function, *words, c.byref(handle))
        return handle.value

    def path(self, text: str) -> int:
        return self._made("StringToPath", self.instance, text.encode())

    def text(self, path: int) -> str:
        count, out = c.c_uint32(), c.create_string_buffer(256)
        self.call("PathToString", self.instance, c.c_uint64(path), 256, c.byref(count), out)
        return out.value.decode()

    def supports_gaze(self) -> bool:
        part = Supports(1000030000)
        properties = SystemProperties(5, c.addressof(part))
        self.call("GetSystemProperties", self.instance, c.c_uint64(1), c.byref(properties))
        return bool(part.yes)

    def session(self) -> int:
        info = Plain(8, None, 0, 1)
        return self._made("CreateSession", self.instance, c.byref(info))

    def action_set(self, name: str = "set") -> int:
        return self._made("CreateActionSet", self.instance, c.byref(SetInfo(28, None, name.encode(), b"set", 0)))

    def action(self, action_set: int, name: str = "gaze", kind: int = POSE) -> int:
        info = ActionInfo(29, None, name.encode(), kind, 0, None, b"gaze")
        return self._made("CreateAction", c.c_uint64(action_set), c.byref(info))

    def suggest(self, pairs: Sequence[tuple[int, str]], profile: str = GAZE_PROFILE) -> None:
        flat = (c.c_uint64 * (2 * len(pairs)))(*(word for a, path in pairs for word in (a, self.path(path))))
        info = Pairs(51, None, self.path(profile), len(pairs), c.cast(flat, c.c_void_p))
        self.call("SuggestInteractionProfileBindings", self.instance, c.byref(info))

    def attach(self, session: int, *sets: int) -> None:
        info = Handles(60, None, len(sets), c.cast((c.c_uint64 * len(sets))(*sets), c.c_void_p))
        self.call("AttachSessionActionSets", c.c_uint64(session), c.byref(info))

    def sync(self, session: int, *sets: int) -> int:
        pairs = (c.c_uint64 * (2 * len(sets)))(*(word for one in sets for word in (one, 0)))
        info = Handles(61, None, len(sets), c.cast(pairs, c.c_void_p))
        return self.call("SyncActions", c.c_uint64(session), c.byref(info))

    def active(self, session: int, action: int, path: int = 0) -> bool:
        state = Flag(27)
        self.call("GetActionStatePose", c.c_uint64(session), c.byref(Plain(58, None, action, path)), c.byref(state))
        return bool(state.yes)

    def profile(self, session: int, user: str = "/user/eyes_ext") -> str | None:
        state = Plain(53)
        words = (c.c_uint64(session), c.c_uint64(self.path(user)), c.byref(state))
        self.call("GetCurrentInteractionProfile", *words)
        return self.text(state.a) if state.a else None

    def sources(self, session: int, action: int) -> list[str]:
        count, info = c.c_uint32(), Plain(62, None, action)
        words = (c.c_uint64(session), c.byref(info))
        self.call("EnumerateBoundSourcesForAction", *words, 0, c.byref(count), None)
        out = (c.c_uint64 * max(count.value, 1))()
        self.call("EnumerateBoundSourcesForAction", *words, count.value, c.byref(count), out)
        return [self.text(path) for path in out[: count.value]]

    def action_space(self, session: int, action: int, path: int = 0, pose: Sequence[float] = STILL) -> int:
        info = ActionSpace(38, None, action, path, Posef(*pose))
        return self._made("CreateActionSpace", c.c_uint64(session), c.byref(info))

    def reference_space(self, session: int, kind: int = VIEW) -> int:
        info = ReferenceSpace(37, None, kind, Posef(*STILL))
        return self._made("CreateReferenceSpace", c.c_uint64(session), c.byref(info))

    def now(self) -> int:
        """The runtime's time."""
        at = (c.c_long * 2)(*divmod(time.monotonic_ns(), 1_000_000_000))
        found = c.c_int64()
        get = "ConvertTimespecTimeToTimeKHR"
        self.call(get, self.instance, at, c.byref(found))
        return found.value

    def locate(self, space: int, base: int) -> tuple[int, tuple[float, ...], int]:
        """Flags, pose, and the time of the eyes' sample."""
        seen = Time(1000030001, None, -7)
        location = Location(42, c.addressof(seen))
        words = (c.c_uint64(space), c.c_uint64(base), c.c_int64(self.now()), c.byref(location))
        self.call("LocateSpace", *words)
        return location.flags, tuple(getattr(location.pose, name) for name, _ in Posef._fields_), seen.time

    def locate_all(self, session: int, spaces: Sequence[int], base: int) -> list[tuple[int, tuple[float, ...]]]:
        """Flags and pose of each, by the function of many spaces."""
        out = (LocationData * len(spaces))()
        handles = c.cast((c.c_uint64 * len(spaces))(*spaces), c.c_void_p)
        info = LocateInfo(1000471000, None, base, self.now(), len(spaces), handles)
        found = Locations(1000471001, None, len(spaces), c.cast(out, c.c_void_p))
        self.call("LocateSpacesKHR", c.c_uint64(session), c.byref(info), c.byref(found))
        return [(one.flags, tuple(getattr(one.pose, name) for name, _ in Posef._fields_)) for one in out]

    def views(self) -> list[int]:
        """The view configurations."""
        count, out = c.c_uint32(), (c.c_int32 * 16)()
        self.call("EnumerateViewConfigurations", self.instance, c.c_uint64(1), 16, c.byref(count), out)
        return list(out[: count.value])

    def destroy(self, kind: str, handle: int) -> None:
        self.call(f"Destroy{kind}", c.c_uint64(handle))

    def end(self) -> None:
        self.call("DestroyInstance", self.instance)


@contextlib.contextmanager
def program(
    built: Built, extensions: Sequence[str] = (GAZE, CLOCK), layered: bool = True, below: str | None = None
) -> Iterator[Program]:
    """A program, ended after use."""
    made = Program(built, extensions, layered, below)
    try:
        yield made
    finally:
        made.end()


class Looking:
    """What an ordinary program does with gaze: a session, one action, its space and the head's."""

    def __init__(self, program: Program, pose: Sequence[float] = STILL) -> None:
        self.program = program
        self.session = program.session()
        self.set = program.action_set()
        self.action = program.action(self.set)
        program.suggest([(self.action, GAZE_POSE)])
        program.attach(self.session, self.set)
        self.space = program.action_space(self.session, self.action, pose=pose)
        self.view = program.reference_space(self.session, VIEW)
        self.local = program.reference_space(self.session, LOCAL)

    def look(self, base: int | None = None) -> tuple[int, tuple[float, ...], int]:
        """A frame."""
        self.program.sync(self.session, self.set)
        return self.program.locate(self.space, self.view if base is None else base)
