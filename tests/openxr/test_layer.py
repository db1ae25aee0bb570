"""What an unmodified program sees through the layer, and without it."""

import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from eyestream_lab.testing.clocks import PATIENCE_S
from eyestream_openxr.wire import PAGE_BYTES, Page
from tests.openxr.machine import (
    CLOCK,
    GAZE,
    GAZE_POSE,
    HAND_POSE,
    HAND_PROFILE,
    LOCAL,
    STILL,
    TRACKED,
    VALID,
    Built,
    Looking,
    Program,
    RefusedError,
    program,
)

pytestmark = pytest.mark.needs("cc", "make")

NEAR = 1e-3
"""Degrees: what is left after a way through single precision."""


def until(true: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait; the layer's own thread reads the page."""
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it did not come to be"
        time.sleep(0.01)


def looks_at(pose: Sequence[float]) -> tuple[float, float]:
    """Degrees to the right and up of where (0, 0, -1) of a pose points."""
    x, y, z, w = pose[:4]
    ahead = (-2 * (x * z + w * y), -2 * (y * z - w * x), -(1 - 2 * (x * x + y * y)))
    return math.degrees(math.atan2(ahead[0], -ahead[2])), math.degrees(math.atan2(ahead[1], math.hypot(*ahead[::2])))


def test_control_without_the_layer_gaze_is_raw(built: Built) -> None:
    with program(built, layered=False) as plain:
        flags, pose, seen = Looking(plain).look()
        assert flags == TRACKED
        assert looks_at(pose) == pytest.approx((10.0, -5.0), abs=NEAR)
        assert 0 < plain.now() - seen < 1_000_000_000
        assert plain.supports_gaze()


def test_by_default_a_program_sees_nothing(built: Built) -> None:
    with program(built) as through:
        assert not through.supports_gaze()
        looking = Looking(through)
        assert looking.look() == (0, STILL, 0)
        assert not through.active(looking.session, looking.action)
        assert through.sources(looking.session, looking.action) == []
        assert through.profile(looking.session) is None
        assert through.locate_all(looking.session, [looking.space, looking.view], looking.view)[0] == (0, STILL)


def test_released_gaze_is_valid_never_tracked_and_has_the_time_of_its_slot(built: Built) -> None:
    built.times(epoch_ns=5_000_000_000_000)
    gaze_ns = built.show_gaze(-20.0, 12.0)
    with program(built) as through:
        assert through.supports_gaze()
        looking = Looking(through)
        flags, pose, seen = looking.look()
        assert flags == VALID
        assert looks_at(pose) == pytest.approx((-20.0, 12.0), abs=NEAR)
        assert seen == gaze_ns + 5_000_000_000_000
        assert through.active(looking.session, looking.action)
        assert through.sources(looking.session, looking.action) == [GAZE_POSE]
        assert through.profile(looking.session) == "/interaction_profiles/ext/eye_gaze_interaction"
        [(flags, pose), (head, _)] = through.locate_all(looking.session, [looking.space, looking.view], looking.view)
        assert (flags, head) == (VALID, TRACKED)
        assert looks_at(pose) == pytest.approx((-20.0, 12.0), abs=NEAR)


def test_released_gaze_turns_with_the_head(built: Built) -> None:
    built.head(30.0)
    built.show_gaze(-20.0, 0.0)
    with program(built) as through:
        looking = Looking(through)
        assert looks_at(looking.look(looking.local)[1]) == pytest.approx((10.0, 0.0), abs=NEAR)
        assert looks_at(looking.look(looking.view)[1]) == pytest.approx((-20.0, 0.0), abs=NEAR)
        # And the other way round: where the head points, as the eyes see it.
        flags, pose, seen = through.locate(looking.view, looking.space)
        assert (flags, seen) == (VALID, 0)
        assert looks_at(pose) == pytest.approx((20.0, 0.0), abs=NEAR)


def test_a_space_may_lie_apart_from_its_action(built: Built) -> None:
    built.show_gaze(90.0, 0.0)
    with program(built) as through:
        _, pose, _ = Looking(through, pose=(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, -2.0)).look()
        assert pose[4:] == pytest.approx((2.0, 0.0, 0.0), abs=1e-5)


@pytest.mark.parametrize(
    "page",
    [
        lambda now: Page(now, 0, now - 10**9, 1.0, 1.0),
        lambda now: Page(now - 2 * 10**9, now + 10**9, now - 10**9, 1.0, 1.0),
        lambda now: Page(now + 10**12, now + 10**12, now - 10**9, 1.0, 1.0),
        lambda now: Page(now, now - 1, now - 10**9, 1.0, 1.0),
        lambda now: Page(now, now + 10**9, now + 10**12, 1.0, 1.0),
        lambda now: Page(now, now + 10**9, now - 10**12, 1.0, 1.0),
        lambda now: Page(now, now + 10**9, now - 10**9, math.nan, 1.0),
        lambda now: Page(now, now + 10**9, now - 10**9, 1.0, 90.5),
    ],
    ids=["nothing released", "dead", "future", "over", "slot to come", "old slot", "no number", "behind the head"],
)
def test_what_a_page_may_not_say_shows_nothing(built: Built, page: Callable[[int], Page]) -> None:
    built.show(page(time.monotonic_ns()))
    with program(built) as through:
        assert Looking(through).look()[0] == 0


@pytest.mark.parametrize(
    "spoilt",
    [
        b"",
        b"\0" * PAGE_BYTES,
        lambda page: page[:-1],
        lambda page: b"X" + page[1:],
        lambda page: page[:4] + b"\2" + page[5:],
        lambda page: page[:8] + b"\3" + page[9:],
        lambda page: page[:-4] + b"\1" + page[-3:],
    ],
    ids=["empty", "zeros", "cut", "magic", "version", "turn", "reserved"],
)
def test_a_page_that_is_none_shows_nothing(built: Built, spoilt: bytes | Callable[[bytes], bytes]) -> None:
    built.show_gaze(1.0, 1.0, beats=False)
    page = built.place / "page"
    page.write_bytes(spoilt if isinstance(spoilt, bytes) else spoilt(page.read_bytes()))
    with program(built) as through:
        assert not through.supports_gaze()
        assert Looking(through).look()[0] == 0


@pytest.mark.parametrize("spoilt", ["file", "folder", "link"])
def test_a_page_that_others_could_have_written_shows_nothing(built: Built, spoilt: str) -> None:
    built.show_gaze(1.0, 1.0, beats=False)
    page = built.place / "page"
    if spoilt == "link":
        page.rename(built.folder / "elsewhere")
        page.symlink_to(built.folder / "elsewhere")
    else:
        (page if spoilt == "file" else built.place).chmod(0o722)
    try:
        with program(built) as through:
            assert Looking(through).look()[0] == 0
    finally:
        built.place.chmod(0o700)


def test_a_bridge_that_comes_ends_and_dies(built: Built) -> None:
    with program(built) as through:
        looking = Looking(through)
        assert looking.look()[0] == 0

        def shown(degrees: float) -> bool:  # by a bridge that is alive now
            built.show_gaze(degrees, degrees, beats=False)
            return looking.look()[0] == VALID

        until(lambda: shown(1.0))
        built.show(Page(0), turn=4)  # ended well: gone at once
        until(lambda: looking.look()[0] == 0)
        (built.place / "page").unlink()
        until(lambda: shown(2.0))  # another bridge, another file
        until(lambda: looking.look()[0] == 0)  # dead
        assert not through.supports_gaze()


def test_a_program_that_does_not_ask_for_gaze_is_left_alone(built: Built) -> None:
    built.show_gaze(1.0, 1.0)
    for layered in (False, True):
        with program(built, ["XR_MND_headless"], layered) as made:
            assert built.runtime.fake_enabled() == b"XR_MND_headless "
            session, group = made.session(), made.action_set()
            action = made.action(group)
            with pytest.raises(RefusedError, match="-22"):
                made.suggest([(action, GAZE_POSE)])
            made.suggest([(action, HAND_POSE)], HAND_PROFILE)
            made.attach(session, group)
            made.sync(session, group)
            view = made.reference_space(session)
            assert made.locate(made.action_space(session, action), view)[0] == TRACKED
            assert made.has("LocateSpace")
            assert not made.has("NoSuchFunction")


def test_extensions_of_eyes_and_face_are_dropped_and_so_is_what_nobody_knows(
    built: Built, capfd: pytest.CaptureFixture[str]
) -> None:
    wanted = [GAZE, CLOCK, "XR_FB_eye_tracking_social", "XR_EXT_future", "XR_META_foveation_eye_tracked"]
    with program(built, [*wanted, "XR_TEST_unheard_of"]) as through:
        assert built.runtime.fake_enabled() == f"{GAZE} {CLOCK} XR_EXT_future ".encode()
        assert not through.has("GetEyeGazesFB")
    said = capfd.readouterr().err.splitlines()
    assert [line.split()[2].rstrip(",") for line in said] == [*wanted[2:3], wanted[4], "XR_TEST_unheard_of"]
    with program(built, wanted, layered=False) as plain:
        assert plain.has("GetEyeGazesFB")


def test_an_extension_that_the_runtime_lacks_is_refused_as_without_the_layer(built: Built) -> None:
    for layered in (False, True):
        with pytest.raises(RefusedError, match="xrCreateInstance: -9"):
            Program(built, [GAZE, "XR_EXT_uuid"], layered)


def test_views_that_follow_the_eyes_are_not_offered(built: Built) -> None:
    with program(built, layered=False) as plain:
        assert 1000037000 in plain.views()
    with program(built) as through:
        assert through.views() == [2, 1000054000, 1]
        with pytest.raises(RefusedError, match="-41"):
            through.call("EnumerateViewConfigurationViews", through.instance, 1, 1000037000, 0, None, None)
        with pytest.raises(RefusedError, match="-31"):
            through.reference_space(through.session(), 1000121000)


def test_gaze_without_a_clock_that_can_be_read_is_no_gaze(built: Built) -> None:
    built.lacks(clock=True)
    built.show_gaze(1.0, 1.0)
    with program(built, [GAZE]) as through:
        assert built.runtime.fake_enabled() == f"{GAZE} ".encode()
        assert not through.supports_gaze()
        session, group = through.session(), through.action_set()
        action = through.action(group)
        through.suggest([(action, GAZE_POSE)])
        through.attach(session, group)
        through.sync(session, group)
        assert not through.active(session, action)


def test_the_clock_is_asked_for_where_the_program_does_not(built: Built) -> None:
    with program(built, [GAZE]):
        assert built.runtime.fake_enabled() == f"{GAZE} {CLOCK} ".encode()


def test_a_headset_without_eyes_answers_as_without_the_layer(built: Built) -> None:
    built.lacks(profile=True)
    for layered in (False, True):
        with program(built, layered=layered) as made:
            assert not made.supports_gaze()
            with pytest.raises(RefusedError, match="-22"):
                Looking(made)


def test_a_layer_below_would_see_raw_gaze_so_there_is_none(built: Built, capfd: pytest.CaptureFixture[str]) -> None:
    built.show_gaze(1.0, 1.0)
    with program(built, below="XR_APILAYER_TEST_spy") as through:
        assert built.runtime.fake_enabled() == f"{CLOCK} ".encode()
        assert "XR_APILAYER_TEST_spy" in capfd.readouterr().err
        assert not through.supports_gaze()
        assert Looking(through).look() == (0, STILL, 0)


def test_a_second_instance_at_once_is_refused_and_the_next_is_as_the_first(built: Built) -> None:
    for _ in range(3):
        built.show_gaze(3.0, 4.0)
        with program(built) as through:
            with pytest.raises(RefusedError, match="-10"):
                Program(built)
            assert looks_at(Looking(through).look()[1]) == pytest.approx((3.0, 4.0), abs=NEAR)


def test_two_sessions_of_one_process_both_see_what_was_released(built: Built) -> None:
    built.show_gaze(3.0, 4.0)
    with program(built) as through:
        one = Looking(through)
        two = Looking(through)
        assert [looking.look()[0] for looking in (one, two, one)] == [VALID] * 3
        through.destroy("Session", one.session)
        assert two.look()[0] == VALID
        three = Looking(through)
        assert [looking.look()[0] for looking in (two, three)] == [VALID] * 2


def test_a_runtime_that_attaches_a_set_to_one_session_only_keeps_its_answers(built: Built) -> None:
    built.lacks(second_session=True)
    built.show_gaze(3.0, 4.0)
    with program(built) as through:
        assert Looking(through).look()[0] == VALID
        assert Looking(through).look()[0] == 0  # without the layer's own set, and without gaze


def test_what_was_destroyed_shows_nothing_though_its_handle_is_given_again(built: Built) -> None:
    built.show_gaze(3.0, 4.0)
    with program(built) as through:
        looking = Looking(through)
        assert looking.look()[0] == VALID
        through.destroy("Space", looking.space)
        assert through.reference_space(looking.session, LOCAL) == looking.space
        assert looking.look()[0] == TRACKED  # it is the room now
        through.destroy("Session", looking.session)
        through.destroy("ActionSet", looking.set)
        session, group = through.session(), through.action_set()
        hand = through.action(group)
        assert (session, group, hand) == (looking.session, looking.set, looking.action)
        through.suggest([(hand, HAND_POSE)], HAND_PROFILE)
        through.attach(session, group)
        view, space = through.reference_space(session), through.action_space(session, hand)
        assert through.sync(session, group) == 0
        assert through.locate(space, view)[0] == TRACKED  # the hand
        assert through.sources(session, hand) == [HAND_POSE]
        through.destroy("Session", session)
        through.destroy("Action", hand)
        again = through.action_set("again")
        through.suggest([(through.action(again), GAZE_POSE)])


def test_sixty_four_actions_and_more_follow_the_eyes(built: Built) -> None:
    built.show_gaze(3.0, 4.0)
    with program(built) as through:
        session, group = through.session(), through.action_set()
        actions = [through.action(group, f"gaze{i}") for i in range(200)]
        through.suggest([(action, GAZE_POSE) for action in actions])
        through.attach(session, group)
        view, spaces = through.reference_space(session), [through.action_space(session, one) for one in actions]
        through.sync(session, group)
        assert {flags for flags, _ in through.locate_all(session, spaces, view)} == {VALID}
        assert all(through.active(session, action) for action in actions)


def test_a_later_suggestion_replaces_an_earlier_one(built: Built) -> None:
    built.show_gaze(3.0, 4.0)
    with program(built) as through:
        session, group = through.session(), through.action_set()
        first, second, wrong = through.action(group, "a"), through.action(group, "b"), through.action(group, "c", 1)
        through.suggest([(first, GAZE_POSE)])
        through.suggest([(second, GAZE_POSE), (wrong, GAZE_POSE)])
        through.attach(session, group)
        through.sync(session, group)
        assert [through.active(session, action) for action in (first, second, wrong)] == [False, True, False]


def test_gaze_is_active_only_while_its_set_is_synchronised(built: Built) -> None:
    built.show_gaze(3.0, 4.0)
    with program(built) as through:
        session, group, other = through.session(), through.action_set(), through.action_set("other")
        action, _ = through.action(group), through.action(other)
        through.suggest([(action, GAZE_POSE)])
        through.attach(session, group, other)
        space, view = through.action_space(session, action), through.reference_space(session)
        assert through.locate(space, view)[0] == 0  # a program that never synchronises
        through.sync(session, group, other)
        assert through.locate(space, view)[0] == VALID
        through.sync(session, other)
        assert through.locate(space, view)[0] == 0
        through.sync(session, group)
        built.runtime.fake_focus(0)
        assert through.sync(session, group) == 8
        assert through.locate(space, view)[0] == 0


def test_of_a_subaction_of_the_hand_there_is_no_gaze(built: Built) -> None:
    built.show_gaze(3.0, 4.0)
    with program(built) as through:
        looking = Looking(through)
        for user, shown in (("/user/eyes_ext", True), ("/user/hand/left", False)):
            path = through.path(user)
            space = through.action_space(looking.session, looking.action, path)
            through.sync(looking.session, looking.set)
            assert through.active(looking.session, looking.action, path) is shown
            assert through.locate(space, looking.view)[0] == (VALID if shown else 0)


def _told(made: Program, words: random.Random) -> list[tuple[str, Any]]:
    """Four hundred calls in any order, with what was answered to each.

    Handles are chosen by when they were made, as their numbers differ through the layer. What was destroyed is not
    named again, because what has its number then may be of the layer.
    """
    handles: dict[str, list[tuple[int, int]]] = {"Session": [], "ActionSet": [], "Action": [], "Space": []}
    answers: list[tuple[str, Any]] = []

    def some(kind: str) -> int:
        return words.choice([*(handle for handle, _ in handles[kind])] * 5 + [12345])

    def keep(kind: str, make: Callable[..., int], *words: int) -> None:
        handles[kind].append((make(*words), words[0] if words else 0))

    def end(kind: str, child: str | None = None) -> None:
        gone = some(kind)
        made.destroy(kind, gone)
        handles[kind] = [pair for pair in handles[kind] if pair[0] != gone]
        if child is not None:
            handles[child] = [pair for pair in handles[child] if pair[1] != gone]

    def sets() -> list[int]:
        return [some("ActionSet") for _ in range(words.randrange(1, 4))]

    calls: dict[str, Callable[[], object]] = {
        "session": lambda: keep("Session", made.session),
        "set": lambda: keep("ActionSet", made.action_set),
        "action": lambda: keep("Action", made.action, some("ActionSet")),
        "button": lambda: keep("Action", lambda group: made.action(group, kind=1), some("ActionSet")),
        "gaze": lambda: made.suggest([(some("Action"), GAZE_POSE) for _ in range(words.randrange(3))]),
        "hand": lambda: made.suggest([(some("Action"), HAND_POSE)], HAND_PROFILE),
        "wrong": lambda: made.suggest([(some("Action"), HAND_POSE)]),
        "other": lambda: made.suggest([(some("Action"), GAZE_POSE)], HAND_PROFILE),
        "attach": lambda: made.attach(some("Session"), *sets()),
        "sync": lambda: made.sync(some("Session"), *sets()),
        "no sync": lambda: made.sync(some("Session")),
        "active": lambda: made.active(some("Session"), some("Action")),
        "sources": lambda: made.sources(some("Session"), some("Action")),
        "action_space": lambda: keep("Space", made.action_space, some("Session"), some("Action")),
        "view": lambda: keep("Space", made.reference_space, some("Session")),
        "locate": lambda: made.locate(some("Space"), some("Space"))[:2],
        "end session": lambda: end("Session", "Space"),
        "end set": lambda: end("ActionSet", "Action"),
        "end action": lambda: end("Action"),
        "end space": lambda: end("Space"),
    }
    often = [name for name in calls for _ in range(1 if name.startswith("end") else 4)] + ["locate"] * 12
    begun = [
        "session",
        "set",
        "action",
        "action",
        "gaze",
        "hand",
        "attach",
        "action_space",
        "action_space",
        "view",
        "sync",
    ]
    for name in [*begun * words.randrange(3), *words.choices(often, k=400)]:
        try:
            answers.append((name, calls[name]()))
        except RefusedError as refused:
            answers.append((name, refused.result))
    return answers


SEEDS = range(40)


def test_in_any_order_of_calls_answers_are_those_of_a_runtime_whose_eyes_are_lost(built: Built) -> None:
    seen: set[object] = set()
    for seed in SEEDS:
        built.eyes(0.0, 0.0, seen=False)
        with program(built, layered=False) as plain:
            expected = _told(plain, random.Random(seed))
        built.eyes(33.0, 22.0)
        with program(built) as through:
            found = _told(through, random.Random(seed))
        # An action that is bound to the eyes has a source without the layer, and none through it.
        assert found == [
            (name, [path for path in said if path != GAZE_POSE] if isinstance(said, list) else said)
            for name, said in expected
        ]
        seen |= {said[0] if isinstance(said, tuple) else said for _, said in found if not isinstance(said, list)}
    assert seen >= {0, True, TRACKED, -1, -12, -22, -46, -47}


def test_in_any_order_of_calls_released_gaze_comes_where_raw_gaze_would(built: Built) -> None:
    shown = 0
    for seed in SEEDS:
        with program(built, layered=False) as plain:
            expected = _told(plain, random.Random(seed))
        built.show_gaze(10.0, -5.0)  # where the eyes look
        with program(built) as through:
            found = _told(through, random.Random(seed))
        for (name, said), (other, answer) in zip(found, expected, strict=True):
            assert name == other
            if not isinstance(said, tuple):
                assert said == answer
                continue
            assert said[0] == answer[0] or (said[0], answer[0]) == (VALID, TRACKED)
            assert looks_at(said[1]) == pytest.approx(looks_at(answer[1]), abs=NEAR)
            shown += said[0] == VALID
    assert shown > 3
