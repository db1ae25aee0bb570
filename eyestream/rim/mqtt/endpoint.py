"""One broker as an address to connect to: URL, credentials and TLS, checked before the first attempt.

What goes wrong with TLS is said in words that name the remedy. OpenSSL's words name only the fault.
"""

import os
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path

from eyestream.errors import ConfigError
from eyestream.rim.config import BrokerSettings


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
    if stat.S_IMODE(mode) & 0o077 and hasattr(os, "geteuid"):  # Windows shows no rights in a mode
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


_NO_TLS = "it does not speak TLS at this port: name its TLS port, or write mqtt:// for a link without encryption"

_OURS = "it refuses our client certificate: give one (cert_file, key_file) that is valid and of its authority"
_AUTHORITY = "no authority known here has signed its certificate: give its ca.pem (ca_file, --ca-file)"

_CERTIFICATES = {
    2: _AUTHORITY,
    9: "its certificate is not valid yet: correct the clock, here or there",
    10: "its certificate has expired: renew it there, or correct the clock here",
    18: _AUTHORITY,
    19: _AUTHORITY,
    20: _AUTHORITY,
    21: _AUTHORITY,
    62: "its certificate is for another name: connect by the name that it is for",
    64: "its certificate is for another address: connect by the name that it is for",
}
"""By X509_V_ERR_... of OpenSSL, which are the same in all its versions."""

_REASONS = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a client certificate: give cert_file and key_file",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it refuses the handshake: it may want a client certificate (cert_file, key_file)",
    "TLSV1_ALERT_UNKNOWN_CA": _OURS,
    "TLSV1_ALERT_DECRYPT_ERROR": _OURS,
    "SSLV3_ALERT_BAD_CERTIFICATE": _OURS,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": _OURS,
    "SSLV3_ALERT_CERTIFICATE_REVOKED": _OURS,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _OURS,
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
    "PACKET_LENGTH_TOO_LONG": _NO_TLS,
    "UNSUPPORTED_PROTOCOL": "it speaks no TLS 1.2 or later: renew the broker",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks no TLS 1.2 or later: renew the broker",
}


def tls_fault(error: OSError) -> str:
    """Why there is no TLS, and what to do; OpenSSL's own words come last, in brackets."""
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _CERTIFICATES.get(error.verify_code, "its certificate is refused: make it again")
        return f"{known} ({error.verify_message.rstrip('.')})"
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        words = (error.reason or "TLS").replace("_", " ").lower()
        return f"{_REASONS.get(error.reason or '', 'TLS fails: look into the log of the broker')} ({words})"
    return "it hangs up during the handshake of TLS: name its TLS port, or write mqtt:// for a link without encryption"


def trusting_anybody() -> ssl.SSLContext:
    """For a handshake that asks whether somebody speaks TLS, and says nothing after it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
