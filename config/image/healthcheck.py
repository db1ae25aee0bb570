"""Whether the sidecar of a container is healthy: by its page of health, where the configuration has `[metrics]`.

Run it with the path of the configuration. It ends with code 1 where the sidecar does not answer or is broken.
Without `[metrics]` there is no page: then the process alone tells, and the container ends with it.
"""

import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

SECONDS = 3.0


def fault(configuration: Path) -> str | None:
    """What is wrong; None: nothing."""
    port = tomllib.loads(configuration.read_text(encoding="utf-8")).get("metrics", {}).get("port")
    if port is None:
        return None
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=SECONDS):
            return None
    except urllib.error.HTTPError as error:
        return error.read(64).decode("ascii", "replace").strip()
    except OSError as error:
        return f"no answer: {error}"


if __name__ == "__main__":
    said = fault(Path(sys.argv[1]))
    if said is not None:
        sys.exit(said)
