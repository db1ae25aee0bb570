"""An error that nobody foresaw is printed without its message, which may hold raw values."""

import subprocess
import sys

import pytest

from eyestream.cli.log import traceback_without_message

SECRET = "63.1415926"

PROGRAM = """
import threading
from eyestream.cli.log import hide_messages
hide_messages()
class Bad:
    def __del__(self):
        raise ValueError(repr(3 * 21.0471975333333))
def fail():
    raise KeyError(repr(3 * 21.0471975333333))
{}
"""


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def test_type_and_place_of_every_error_in_a_chain_and_a_group() -> None:
    inner = raised(ValueError(SECRET), KeyError(SECRET))
    text = traceback_without_message(raised(ExceptionGroup(SECRET, [inner, raised(OSError(5, SECRET))])))
    for name in ("ExceptionGroup", "ValueError", "KeyError", "OSError", "test_tracebacks.py", "in raised"):
        assert name in text
    assert SECRET not in text


def test_a_ring_of_errors_is_told_once() -> None:
    first, second = raised(ValueError(SECRET)), raised(KeyError(SECRET))
    first.__context__, second.__context__ = second, first
    assert traceback_without_message(first).count("Traceback") == 2


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        ("fail()", "KeyError"),
        ("threading.Thread(target=fail).start()", "KeyError"),
        ("bad = Bad()\ndel bad", "ValueError"),
    ],
)
def test_hooks(ending: str, kind: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(ending)], capture_output=True, text=True, check=False)
    assert f"{kind} (its message is kept back" in done.stderr
    assert "63.14159" not in done.stderr
