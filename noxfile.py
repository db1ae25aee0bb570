"""`nox -s NAME` checks one part of a change. `.ci/run` and `.github/workflows/ci.yml` run the same sessions.

Sessions use the environment that nox itself is in. README's second command makes one with the newest versions of
everything, `locks/development.txt` one with known versions.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
ORDINARY = "not long and not alone and not slow"
LOCKS: dict[str, dict[str, tuple[str, ...]]] = {
    "sidecar": {".": ("deploy",)},
    "laboratory": {".": ("deploy",), "lab": ()},
    "fleet": {".": ("deploy",), "fleet": ()},
    "development": {
        ".": ("frames", "notebook", "site", "test"),
        "lab": ("cluster", "deep", "parquet", "xdf"),
        "fleet": ("nats-server",),
        "openxr": ("test",),
    },
}
"""Each file of `locks/`, and the distributions whose packages it has: their folders, each with its extras."""

BARE_PROGRAMS = (
    *("awk", "bash", "cat", "dirname", "env", "head", "mount"),
    *("sed", "sh", "sleep", "true", "umount", "unshare"),
)
BARE_VARIABLES = re.compile(r"HOME|TMPDIR|PIP_\w+|SSL_CERT_\w+|\w+_CA_BUNDLE|\w+_PROXY", re.I)
"""What a bare machine has on its path besides Python, and what pip may need of this one's environment."""

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.stop_on_first_error = True


def python(session: nox.Session, *words: str) -> None:
    """Run Python of the environment that nox is in."""
    session.run(sys.executable, *words, external=True)


def pytest(session: nox.Session, *words: str) -> None:
    """Run tests; what stands behind `--` on the command line comes last."""
    python(session, "-m", "pytest", "-q", *words, *session.posargs)


def marked(session: nox.Session, mark: str, *words: str) -> None:
    """Run tests with a mark, by default from its files alone: each worker would import four times as many."""
    files = [path for path in sorted(ROOT.glob("tests/**/test_*.py")) if f"mark.{mark}" in path.read_text("utf-8")]
    chosen = [] if session.posargs else [str(path.relative_to(ROOT)) for path in files]
    pytest(session, *words, "-m", f"{mark} and not slow", "--durations=10", *chosen)


def workers(more: int) -> str:
    """How many tests run at a time: so many more than there are processors."""
    return str((os.cpu_count() or 1) + more)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format, who may import whom, and how large the product may be: seconds."""
    python(session, "-m", "ruff", "check", ".")
    python(session, "-m", "ruff", "format", "--check", ".")
    session.run(str(Path(sys.executable).with_name("lint-imports")), external=True)
    python(session, "-m", "tools.verification.gates")


@nox.session
def types(session: nox.Session) -> None:
    """Types."""
    python(session, "-m", "mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """The ordinary tests, or those of a room: `nox -s tests -- tests/product/wire`."""
    pytest(session, "-n", "auto")


@nox.session
def installed(session: nox.Session) -> None:
    """Those of the ordinary tests that `bare` skips, because they need something that can be installed.

    Those of service, links and deployment come too, as `bare` may run on another interpreter. Most of them wait.
    """
    pytest(session, "-n", workers(4), "--dist", "worksteal", "-m", f"(installed or both) and {ORDINARY}")


@nox.session
def long(session: nox.Session) -> None:
    """Tests that take seconds to a minute each. Many of them wait."""
    marked(session, "long", "-n", workers(3), "--dist", "worksteal")


@nox.session
def alone(session: nox.Session) -> None:
    """Tests that must have the machine to themselves, one after the other."""
    marked(session, "alone")


@nox.session
def docs(session: nox.Session) -> None:
    """What pages say: links, commands, figures, examples."""
    pytest(
        session,
        "-n",
        "auto",
        "tests/docs",
        "tests/examples",
        "tests/unity",
        "tests/lab/errata",
        "tests/product/service/test_readme.py",
    )


@nox.session
def site(session: nox.Session) -> None:
    """The site, in `.nox/site`: needs the packages of the extra `site`."""
    python(session, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", "-b", "html", ".", ".nox/site")


@nox.session
def bare(session: nox.Session) -> None:
    """README's second command, word for word, in a copy of the checkout, with hardly another program on the path."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
    [command] = [line for block in blocks[:2] for line in block.splitlines() if "pytest" in line]
    kept = {name: value for name, value in os.environ.items() if BARE_VARIABLES.fullmatch(name)}
    with tempfile.TemporaryDirectory() as folder:
        path, checkout = Path(folder, "bin"), Path(folder, "eyestream")
        path.mkdir()
        (path / "python3").symlink_to(newest := newest_python())
        session.log(f"README's command runs on {newest}")
        for program in BARE_PROGRAMS:
            (path / program).symlink_to(shutil.which(program) or session.error(f"{program} is not here either"))
        fresh(checkout)
        words = [str(path / "bash"), "-euo", "pipefail", "-xc", command]
        kept |= {"PATH": str(path), "PYTEST_XDIST_AUTO_NUM_WORKERS": workers(1)}  # some tests wait
        with session.chdir(checkout):
            session.run(*words, env=kept, include_outer_env=False, external=True)


def newest_python() -> Path:
    """The newest interpreter from this one's version on: on the path, of pyenv, or this one itself."""
    folders = [Path(folder) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    folders += Path.home().glob(".pyenv/versions/*/bin")
    found = {sys.version_info[:2]: Path(sys.executable).resolve()}
    for file in (file for folder in folders for file in folder.glob("python3.*")):
        name = re.fullmatch(r"python3\.(\d+)", file.name)
        if name is None or (3, int(name[1])) in found:
            continue
        # A shim of pyenv may have no interpreter behind it, and Debian's own may lack what makes an environment.
        words = "import ensurepip, sys; print(sys.executable, *sys.version_info[:2])"
        asked = subprocess.run([file, "-c", words], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            where, *version = asked.stdout.split()
            found.setdefault((int(version[0]), int(version[1])), Path(where).resolve())
    return found[max(found)]


def fresh(folder: Path) -> None:
    """Copy what git knows, or would take, into `folder`, with the recordings beside it where there are any."""
    git = ["git", "-C", str(ROOT), "-c", "safe.directory=*"]
    listed = [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    if (recordings := ROOT.parent / "shared").is_dir():
        (folder.parent / "shared").symlink_to(recordings.resolve())


@nox.session(venv_backend="virtualenv")
def lock(session: nox.Session) -> None:
    """Write `locks/` again. Versions stay as they are where they can; `nox -s lock -- --upgrade` takes the newest."""
    session.install("uv")
    options = ["--universal", "--generate-hashes", "--no-header", "--no-annotate", "--quiet", *session.posargs]
    with tempfile.TemporaryDirectory() as folder:
        for name, distributions in LOCKS.items():
            file, words = ROOT / "locks" / f"{name}.txt", declared(distributions)
            asked = Path(folder, "asked.txt")
            asked.write_text("\n".join(words), encoding="utf-8")
            known = ["--constraints", "locks/sidecar.txt"] if name != "sidecar" else []
            session.run("uv", "pip", "compile", str(asked), *known, *options, "--output-file", str(file))
            said = "".join(f"# {line}\n" for line in ("Made by `nox -s lock` from", *words))
            file.write_text(f"{said}{file.read_text(encoding='utf-8')}", encoding="utf-8")


def declared(distributions: dict[str, tuple[str, ...]]) -> list[str]:
    """What the `pyproject.toml` of each distribution asks for with its extras, in its own words, sorted."""
    found: set[str] = set()
    for folder, extras in distributions.items():
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        asked = [
            *project["dependencies"],
            *(word for extra in extras for word in project["optional-dependencies"][extra]),
        ]
        for word in asked:
            own = re.fullmatch(r"eyestream\[(.*)\]", word)
            if own:
                found.update(declared({".": tuple(own[1].split(","))}))
            elif not word.startswith("eyestream=="):
                found.add(word)
    return sorted(found)
