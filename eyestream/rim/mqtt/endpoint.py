"""One broker as an address to connect to: URL, credentials and TLS, checked before the first attempt."""

import os
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path

from eyestream.errors import ConfigError
from eyestream.rim.config import BrokerSettings

__all__ = ["Endpoint", "secret_in", "tls_context"]


@dataclass(frozen=True)
class Endpoint:
    """Where to connect and how to log in.

    `host` is a path when `unix` is set. The password is read from its file once, never from argv nor environment.
    `version` of MQTT is "5", "3.1.1", or "auto" for the latest that the broker speaks.
    """

    host: str
    port: int
    unix: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    version: str = "auto"

    def __str__(self) -> str:
        return self.host if self.unix else f"{self.host}:{self.port}"

    @classmethod
    def of(cls, settings: BrokerSettings) -> "Endpoint":
        """Check `settings` and read the files they name.

        Raises
        ------
        ConfigError
            The URL is not one of mqtt://host[:port], mqtts://host[:port] or unix:///path; a file cannot be read; a
            password or key file can be read by others; certificate options without mqtts.
        """
        scheme, host, port = settings.place
        named = (settings.ca_file, settings.cert_file, settings.key_file)
        if scheme != "mqtts" and any(named):
            raise ConfigError(f"{settings.url}: ca_file, cert_file and key_file need a URL that begins with mqtts://")
        return cls(
            host=host,
            port=port,
            unix=scheme == "unix",
            username=settings.username,
            password=None if settings.password_file is None else secret_in(Path(settings.password_file)),
            tls=tls_context(settings) if scheme == "mqtts" else None,
            version=settings.version,
        )


def _private(path: Path) -> None:
    """Refuse a secret that others on this machine can read."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"{path}: others can read or write this secret; chmod go= {path}")


def secret_in(path: Path) -> str:
    """First line of a password file."""
    _private(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path}: cannot be read as a password file") from None
    if not lines or not lines[0]:
        raise ConfigError(f"{path}: expected a password on the first line")
    return lines[0]


def tls_context(settings: BrokerSettings) -> ssl.SSLContext:
    """TLS 1.2 or later; the broker's certificate and host name are checked, always."""
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError):
        raise ConfigError(f"{settings.ca_file}: cannot be read as a PEM file of certificates") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.cert_file is not None and settings.key_file is not None:
        _private(Path(settings.key_file))
        try:
            context.load_cert_chain(settings.cert_file, settings.key_file)
        except (OSError, ssl.SSLError):
            raise ConfigError(f"{settings.cert_file}: cannot be read as the certificate of its key_file") from None
    return context
