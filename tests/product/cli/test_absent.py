"""Libraries that a machine need not have: what works without them, and what says which one is missing."""

import subprocess
import sys
from pathlib import Path

WITHOUT = """
import sys
for name in ("cryptography", "pyfftw"):
    sys.modules[name] = None
from pathlib import Path
from eyestream.cli.main import main
"""

CHECK = """
from eyestream.ops.check_host import configuration_findings
from eyestream.rim import config
main(["init", sys.argv[1], "--mechanism", "cfpa"])
path = Path(sys.argv[1], "sidecar.toml")
path.write_text(path.read_text().replace("# k = 1 ", "k = 65 #").replace("cfpa-64", "cfpa-128"))
print(*configuration_findings(config.load(path), path).findings, sep="\\n")
"""


def without(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_deployment_needs_an_extra_and_says_which(tmp_path: Path) -> None:
    done = without("main(sys.argv[1:])", "deploy", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.endswith("library that is not installed: pip install 'eyestream[deploy]'\n")


def test_check_says_what_transforms_where_fftw_is_not_installed(tmp_path: Path) -> None:
    done = without(CHECK, str(tmp_path / "own"))
    assert done.returncode == 0, done.stderr
    assert "numpy computes the coefficients of features (pyFFTW is not installed)" in done.stdout
