"""The broker configurations that we ship, as a deployment of two brokers with logins and certificates."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

from eyestream.ops.deployment.layout import acl_text, conf_text
from eyestream.rim.config import BrokerSettings
from tests.rigs.certificates import Authority
from tests.rigs.mosquitto import Mosquitto

__all__ = ["PASSWORDS", "Deployment", "HardBroker"]

PORT = 8883
"""Of the private broker for other machines, where it is laid out."""
PASSWORDS = {
    "tracker": "of the tracker",
    "sidecar": "of the sidecar",
    "application": "of an application",
    "gatekeeper": "of the gatekeeper",
}


class HardBroker(Mosquitto):
    """One of the two, with its files in `folder`: paths and port replaced, nothing else."""

    def __init__(self, folder: Path, name: str, users: tuple[str, ...]) -> None:
        super().__init__(folder)
        self._configuration = folder / f"{name}.conf"
        self.socket = folder / f"{name}.sock"
        self.acl = folder / f"{name}.acl"
        self.passwords = folder / f"{name}.passwd"
        self.url = f"unix://{self.socket}"
        self.tls_url = f"mqtts://localhost:{self.port}"
        text = conf_text(name, PORT if name == "private" else None)
        for there, here in (
            (f"/etc/eyestream/{name}/", f"{folder}/"),
            ("/etc/eyestream/certificates/", f"{folder}/"),
            (f"/run/eyestream-{name}/", f"{folder}/"),
            ("/var/lib/eyestream-private/", f"{folder}/"),
            (f"listener {PORT}", f"listener {self.port} 127.0.0.1"),
            ("log_dest stderr", f"log_dest file {self.log}"),
        ):
            text = text.replace(there, here)
        self.write(text)
        self.acl.write_text(acl_text(name))
        self.passwords.touch(0o600)
        for user in users:
            self.add_user(user, PASSWORDS[user])

    def text(self) -> str:
        """The configuration."""
        return self._configuration.read_text()

    def write(self, text: str) -> None:
        """Replace the configuration."""
        root = "user root\n" if os.geteuid() == 0 and "\nuser root" not in text else ""
        self._configuration.write_text(f"{text}\n{root}")

    def add_user(self, name: str, password: str) -> None:
        """Add a login."""
        subprocess.run(["mosquitto_passwd", "-b", self.passwords, name, password], check=True, capture_output=True)

    def reload(self) -> None:
        """Let it read its ACL and passwords anew."""
        assert self._process is not None
        self._process.send_signal(1)

    def knock(self) -> None:
        """Raise OSError when it does not listen on its Unix socket."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self.socket))

    def stop(self, *, kill: bool = False) -> None:
        """Stop it, and leave no socket."""
        super().stop(kill=kill)
        self.socket.unlink(missing_ok=True)


class Deployment:
    """Both brokers, as `eyestream deploy` lays them out, with an account for every role on both.

    That a role has no right on a broker must not hang on its having no account there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        broker = self.authority.issue("broker", host="localhost")
        for role, password in PASSWORDS.items():
            secret = folder / f"{role}.password"
            secret.touch(0o600)
            secret.write_text(password + "\n")
        for name in ("raw", "private"):
            (folder / name).mkdir()
        self.raw = HardBroker(folder / "raw", "raw", tuple(PASSWORDS))
        for file in (broker.pem, broker.key, self.authority.pem):
            shutil.copy(file, folder / "private" / file.name)
        self.private = HardBroker(folder / "private", "private", tuple(PASSWORDS))

    def start(self) -> None:
        """Start both."""
        self.raw.start()
        self.private.start()

    def stop(self) -> None:
        """Stop both."""
        self.raw.stop()
        self.private.stop()

    def login(self, role: str, url: str) -> BrokerSettings:
        """How `role` gets in at `url`."""
        ca = self.authority.pem if url.startswith("mqtts") else None
        return BrokerSettings(url, username=role, password_file=self.folder / f"{role}.password", ca_file=ca)
