"""The Debian package and the image: their scripts, and the check of health that the image has."""

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "config" / "image" / "healthcheck.py"


@contextmanager
def page(status: int, word: str) -> Iterator[int]:
    """A page of health; gives its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/healthz"
            self.send_response(status)
            self.end_headers()
            self.wfile.write(f"{word}\n".encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def checked(folder: Path, text: str) -> tuple[int, str]:
    path = folder / "sidecar.toml"
    path.write_text(text)
    done = subprocess.run([sys.executable, CHECK, path], capture_output=True, text=True, check=False, timeout=30)
    return done.returncode, done.stderr.strip()


@pytest.mark.parametrize(("status", "word", "code"), [(200, "ok", 0), (200, "day", 0), (503, "raw_link", 1)])
def test_a_container_is_as_healthy_as_its_sidecar(tmp_path: Path, status: int, word: str, code: int) -> None:
    with page(status, word) as port:
        found, said = checked(tmp_path, f"[metrics]\nport = {port}\n")
    assert (found, said) == (code, word if code else "")
    assert checked(tmp_path, f"[metrics]\nport = {port}\n")[0] == 1, "nobody answers any more"
    assert checked(tmp_path, "[sidecar]\n") == (0, "")


def test_the_scripts_of_the_package_can_be_read_and_its_fields_are_there() -> None:
    for script in (ROOT / "config" / "package.sh", *(ROOT / "config" / "debian").glob("p*")):
        subprocess.run(["sh", "-n", script], check=True, timeout=30)
    fields = [line.split(":")[0] for line in (ROOT / "config" / "debian" / "control").read_text().splitlines()]
    assert {"Package", "Version", "Architecture", "Maintainer", "Depends", "Description"} <= set(fields)
    named = (ROOT / "Containerfile").read_text()
    assert "COPY config/image/healthcheck.py /opt/eyestream/healthcheck.py" in named
    done = subprocess.run(
        ["sh", ROOT / "config" / "package.sh"], capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, done.stderr) == (2, "sh config/package.sh deb | image\n")
