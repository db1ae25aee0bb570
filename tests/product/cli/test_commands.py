"""Commands: ours, and those that other distributions add by entry points, as the laboratory and a fleet do."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from eyestream.cli.main import COMMANDS, commands, main
from eyestream_fleet.commands import COMMANDS as FLEET
from eyestream_lab.commands import COMMANDS as LAB
from eyestream_openxr.commands import COMMANDS as OPENXR

GROUP = "eyestream.commands"
THIRD = """
def add_parser(subparsers):
    parser = subparsers.add_parser("hello", help="greet")
    parser.add_argument("--name", default="you")

def main(options):
    print("hello", options.name)

COMMANDS = {"hello": ("third_party", "greet"), "run": ("third_party", "not the sidecar")}
"""


def install(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    """Let entry points be those, by name and place, and no others."""
    found = [importlib.metadata.EntryPoint(name, place, GROUP) for name, place in points]
    every = importlib.metadata.entry_points
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda *, group: found if group == GROUP else every(group=group),
    )


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "third_party.py").write_text(THIRD)
    monkeypatch.syspath_prepend(tmp_path)
    install(monkeypatch, ("third", "third_party:COMMANDS"))


def failed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_no_name_is_of_two_distributions() -> None:
    assert len(COMMANDS | LAB | FLEET) == len(COMMANDS) + len(LAB) + len(FLEET)
    assert len(COMMANDS | LAB | FLEET | OPENXR) == len(COMMANDS | LAB | FLEET) + len(OPENXR)
    found, known = list(commands()), [*COMMANDS, *FLEET, *LAB]
    assert found in (known, [*known, *OPENXR])  # an environment may be without it


def test_help_lists_all_and_imports_none_of_them() -> None:
    code = (
        "import sys\nfrom eyestream.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('eyestream', 'numpy', 'msgspec', 'paho'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *help_lines, loaded = done.stdout.splitlines()
    assert all(any(line.split()[:1] == [name] for line in help_lines) for name in (*COMMANDS, *LAB, *FLEET))
    assert len(loaded.split()) <= 14
    assert not {"numpy", "msgspec", "paho", "eyestream_lab.cli", "eyestream.rim"} & set(loaded.split())


@pytest.mark.usefixtures("third_party")
def test_a_command_of_somebody_else(capsys: pytest.CaptureFixture[str]) -> None:
    main(["hello", "--name", "eye"])
    assert capsys.readouterr().out == "hello eye\n"
    assert commands()["run"] == COMMANDS["run"], "a name that is taken stays with whoever has it"
    assert "did you mean hello?" in failed(capsys, "helo")


def test_who_calls_a_command_that_is_not_there_is_told_what_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch)
    said = failed(capsys, "demo")
    assert "there is no command demo; more commands come with eyestream-lab and eyestream-fleet: pip install" in said
    monkeypatch.undo()
    assert "pip install" not in failed(capsys, "xyzzy")


@pytest.mark.parametrize("place", ["no_such_module:COMMANDS", "eyestream.errors:COMMANDS"])
def test_an_entry_point_that_cannot_be_loaded_is_named_in_one_line_and_ours_still_run(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, ("broken", place))
    for words in (["--help"], ["demo"]):
        said = failed(capsys, *words)
        assert "entry point broken of eyestream.commands cannot be loaded" in said
        assert said.count("\n") == 1
    main(["init", str(tmp_path / "sidecar")])
    assert "(new: nothing spent)" in capsys.readouterr().out
