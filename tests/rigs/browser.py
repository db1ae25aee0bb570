"""A real browser: Chromium, driven over the HTTP of its WebDriver (https://www.w3.org/TR/webdriver2/)."""

import base64
import contextlib
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

__all__ = ["Browser", "contrast", "luminance", "opened_browser"]

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server")


class Browser:
    """One window; every call raises where the driver refuses."""

    def __init__(self, driver: str, folder: Path) -> None:
        self._driver, self._path = driver, ""
        options = {"args": [*_FLAGS, f"--user-data-dir={folder}"]}
        wanted = {
            "timeouts": {"script": 240_000},
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._path = f"/session/{made['sessionId']}"

    def _call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._driver + self._path + path, data, headers, method=method)
        with _DIRECT.open(request, timeout=300) as answer:
            return json.load(answer)["value"]

    def show(self, width: int, height: int, scheme: str, motion: str = "no-preference") -> None:
        """Size of the window in pixels, `light` or `dark`, and whether motion is reduced."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._devtools("Emulation.setDeviceMetricsOverride", size)
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        self._devtools("Emulation.setEmulatedMedia", {"features": features})

    def _devtools(self, command: str, parameters: object) -> None:
        self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, address: str) -> None:
        """Go there."""
        self._call("POST", "/url", {"url": address})

    def run(self, script: str) -> Any:
        """What the script returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": []})

    def type(self, keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def barriers(self) -> list[str]:
        """What axe-core finds on the page, by the rules of WCAG 2 up to level AA: rule and place."""
        self.run(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
        return [
            f"{found['id']}: {node['target']}"
            for found in self.run(f"return axe.run({{runOnly: {json.dumps(rules)}}}).then(all => all.violations)")
            for node in found["nodes"]
        ]

    def complaints(self) -> list[str]:
        """What the browser's console has said since the last call."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def asked_for(self) -> set[str]:
        """Addresses that were requested since the last call, but those of the browser's own pages."""
        entries = self._call("POST", "/se/log", {"type": "performance"})
        sent = [json.loads(entry["message"])["message"] for entry in entries]
        urls = {one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"}
        return {url for url in urls if not url.startswith(("chrome://", "chrome-untrusted://"))}


@contextlib.contextmanager
def opened_browser(folder: Path) -> Iterator[Browser]:
    """A browser whose profile is in `folder`; it ends with the body."""
    program = shutil.which("chromedriver")
    assert program is not None, "chromedriver is not installed"
    driver = subprocess.Popen([program, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert driver.stdout is not None
    try:
        port = next(
            found[1] for line in driver.stdout if (found := re.search(r"started successfully on port (\d+)", line))
        )
        browser = Browser(f"http://127.0.0.1:{port}", folder)
        try:
            yield browser
        finally:
            browser._call("DELETE", "")
    finally:
        driver.terminate()
        driver.wait(timeout=10)
        driver.stdout.close()


def luminance(colour: str) -> float:
    """Relative luminance of ``rgb(r, g, b)`` (WCAG 2.2)."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Of two colours as the browser writes them, from 1 to 21 (WCAG 2.2)."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
