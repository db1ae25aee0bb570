"""Every block of code on every page is run, or stands here with the reason why it is not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rigs.pages import ROOT, blocks, pages

BY_OTHERS = {
    ("README.md", "python"): "tests/product/service/test_readme.py",
    ("docs/api.md", "pycon"): "tests/docs/test_docs_api.py",
    ("docs/application.md", "python"): "tests/product/service/test_readme.py",
    ("docs/audit.md", "js"): "tests/lab/audit/test_audit_command.py",
    ("docs/benchmark.md", "c"): "tests/lab/benchmark/test_run.py",
    ("docs/benchmark.md", "python"): "tests/lab/benchmark/test_run.py",
    ("docs/benchmark.md", "shell"): "tests/lab/benchmark/test_run.py",
    ("docs/coarse-gaze.md", "python"): "tests/product/tiles/test_tile_stream.py",
    ("docs/datasets.md", "toml"): "tests/lab/files/test_layouts.py",
    ("docs/deployment.md", "python"): "tests/product/faults/test_tls.py",
    ("docs/protocol.md", "text"): "tests/docs/test_docs_protocol.py",
    ("docs/protocol.md", "c"): "tests/docs/test_docs_protocol.py",
    ("docs/research.md", "python"): "tests/product/service/test_readme.py",
    ("docs/tasks.md", "python"): "tests/lab/words/test_live_words.py",
    ("docs/unity.md", "csharp"): "tests/unity/test_scene.py",
    ("docs/vendor.md", "python"): "tests/product/service/test_readme.py",
}
"""Blocks that need more than a shell, and the test that runs them."""

NO_CODE = {
    ("docs/api.md", "{eval-rst}"): "directives of the site, which test_docs_site.py builds",
    ("docs/audit.md", "text"): "outlines of options",
    ("docs/benchmark.md", "text"): "lines of a recording",
    ("docs/bridge.md", "text"): "lines of the configuration of NATS' own servers",
    ("docs/scale.md", "text"): "lines of the configuration of NATS' own servers",
    ("docs/tasks.md", "text"): "the head of a table",
    ("docs/unity.md", "text"): "an address for Unity's package manager",
}
PARSED = {
    r"^(demo|devices|gatekeeper|listen|monitor|replay|run|shard|sources)": "waits for a broker, a tracker or a browser",
    r"^(enrol|fleet-demo|openxr run)": "waits for a fleet's servers, a broker, or for Ctrl-C",
    r"^(check|deploy|explain|forget|grants?|revoke)": "looks at or changes the machine",
    r"^(audit|benchmark|study)": "takes minutes",
    r"--layout|dgaze": "reads a published corpus",
}
"""Commands of ours that are parsed only: how the line begins, or what it has in it."""

STILL = {
    "apt cp dpkg ln mkdir mosquitto mosquitto_passwd mv rm": "change the machine",
    "systemctl systemd-creds systemd-tmpfiles": "change the machine",
    "pip sleep": "the environment is there",
    "fakeroot": "tests/product/cli/test_deploy.py deploys into a folder",
    "make mcs mono node": "tests/examples runs them",
}
"""Programs that pages name and that do nothing here. Any other program is an error of the page."""

STANDS_FOR = {
    r"\bFILES\b|\bGAZE\.\.\.": "viewers/*.csv",
    r"\bROWS\b|\bRECORDING\.\.\.": "people/*.npz",
    r"\bOTHERS\.\.\.": "wearers/*.npz",
    r"profile P\b": "profile degrees",
    r"(?<![\w:/.])/(?=(etc|tmp|var)/)": "",
    r"[\w./]*/bin/(?=\w)": "",
}
"""What a reader puts in the place of a word, or what is nearer than on a reader's machine."""

NEEDED = {"docs/openxr.md": ("cc", "make")}
"""What commands of ours on a page call, and README's second command does not install."""

RUN = [
    pytest.param(page, marks=pytest.mark.needs(*NEEDED[page])) if page in NEEDED else page
    for page in sorted(pages())
    if not page.startswith("docs/tutorial-")  # which test_docs_tutorials.py runs
]

EYESTREAM = """
import importlib, re, sys
from eyestream.cli.main import commands, main
if re.search({parsed!r}, " ".join(sys.argv[1:])):
    importlib.import_module(commands()[sys.argv[1]][0]).main = lambda options: None
main()
"""
PYTHON = """
import importlib.util, os, sys
if sys.argv[1] == "-m":
    sys.exit(importlib.util.find_spec(sys.argv[2]) is None and f"there is no module {sys.argv[2]}")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def programs(folder: Path) -> Path:
    """All that a block may call. What a command of ours calls in its turn is the machine's own."""
    folder.mkdir()
    own = {"eyestream": EYESTREAM.format(parsed="|".join(PARSED)), "python": PYTHON, "python3": PYTHON}
    for name, code in own.items():
        (folder / f"{name}-is.py").write_text(code)
        machine = f'export PATH="{os.environ["PATH"]}"\n' if name == "eyestream" else ""
        (folder / name).write_text(f'#!/bin/sh\n{machine}exec "{sys.executable}" "{folder}/{name}-is.py" "$@"\n')
    for name in " ".join(STILL).split():
        (folder / name).write_text("#!/bin/sh\n")
    for path in folder.iterdir():
        path.chmod(0o755)
    for name in ("cut", "head", "sed", "sha256sum"):
        if (program := shutil.which(name)) is not None:
            (folder / name).symlink_to(program)
    return folder


def completed(toml: str) -> str:
    """A part of a configuration, with what a whole one has besides."""
    if toml.startswith("[stream.privacy]"):
        toml = f"[[stream]]\n{toml}"
    if "[[stream]]\n[stream.privacy]" not in toml:
        toml += '\n[[stream]]\n[stream.privacy]\ncalibration = "everyday-klt-64"\nepsilon = 4.8\n'
    fixed = {"[[device]]": 'id = "hmd-1"', "[budget]": "session_epsilon = 600"}
    return "\n".join([toml, *(f"{name}\n{line}" for name, line in fixed.items() if name not in toml)])


def script(page: str, name: str, folder: Path) -> str:
    """What a reader types who follows the page from top to bottom; programs and tables are files of `folder`."""
    typed = ["set -eux"]
    for block in blocks(page):
        if (name, block.language) in BY_OTHERS.keys() | NO_CODE.keys():
            continue
        typed.append(f": {name}:{block.line}")
        text, file = block.text, folder / f"line{block.line}.{block.language}"
        if block.language == "sh":
            for word, here in STANDS_FOR.items():
                text = re.sub(word, here, text)
            typed.append(text)
        elif block.language == "toml":
            file.write_text(text if "[project" in text else completed(text))
            if "[project" in text:  # of a package of one's own
                typed.append(f'python -c \'import tomllib; tomllib.load(open("{file.name}", "rb"))\'')
                continue
            typed.append(f"eyestream guarantee --config {file.name}")
        else:
            assert block.language == "python", f"{name}:{block.line}: nothing runs a block of {block.language!r}"
            file.write_text(text)
            typed.append(f"python {file.name}")
    return "\n".join(typed)


def follow(page: str, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Type what `page` says, in `folder`."""
    own = {"PATH": str(programs(folder / "bin")), "XDG_DATA_HOME": str(folder / "data")}
    words = [shutil.which("bash") or "bash", "-c", script(page, name, folder)]
    return subprocess.run(
        words, cwd=folder, env=os.environ | own, capture_output=True, text=True, timeout=240, check=False
    )


WRONG = {
    "an option": ("sh", "eyestream run --confg sidecar/sidecar.toml"),
    "a key": ("toml", '[[stream]]\n[stream.privacy]\ncalibration = "everyday-klt-64"\nepsilom = 4.8'),
    "a name of Python": ("python", "import eyestream\neyestream.subscibe"),
    "a program": ("sh", "eyestreem run --config sidecar/sidecar.toml"),
    "a file that no block makes": ("sh", "eyestream guarantee --config nowhere.toml"),
    "a tool": ("sh", "python -m tools.make.nothing"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_control_a_wrong_block_is_found(fault: str, tmp_path: Path) -> None:
    good = "```sh\neyestream run --config sidecar.toml && python -m pytest\n```\n"
    for page, fits in ((good, True), ("{}\n```{}\n{}\n```\n".format(good, *WRONG[fault]), False)):
        (here := tmp_path / str(fits)).mkdir()
        assert (follow(page, "page.md", here).returncode == 0) is fits


def test_a_block_in_another_language_needs_somebody_who_runs_it(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:2: nothing runs a block of 'ruby'"):
        script("```ruby\nputs 1\n```\n", "page.md", tmp_path)


@pytest.mark.parametrize(("name", "language"), BY_OTHERS)
def test_who_is_said_to_run_a_block_knows_its_page(name: str, language: str) -> None:
    assert language in {block.language for block in blocks((ROOT / name).read_text(encoding="utf-8"))}
    assert Path(name).name in (ROOT / BY_OTHERS[name, language]).read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("name", RUN)
def test_a_page_can_be_followed(name: str, supposed: Path, tmp_path: Path) -> None:
    here = shutil.copytree(supposed, tmp_path / "here", symlinks=True)
    done = follow((ROOT / name).read_text(encoding="utf-8"), name, here)
    assert done.returncode == 0, done.stdout + done.stderr
