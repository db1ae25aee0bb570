"""Logins and certificates of a deployment, made on the spot.

Raises
------
ConfigError
    The extra `deploy` is not installed.
"""

import base64
import datetime
import hashlib
import ipaddress
import secrets
from typing import NamedTuple

from eyestream.errors import ConfigError

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise ConfigError("certificates need a library that is not installed: pip install 'eyestream[deploy]'") from None

_ROUNDS = 101
"""Iterations that `mosquitto_passwd` uses; enough for 192 random bits."""

AUTHORITY_DAYS, CERTIFICATE_DAYS = 3650, 825
_PEM = serialization.Encoding.PEM


def new_password() -> str:
    """192 random bits as text."""
    return secrets.token_urlsafe(24)


def password_line(name: str, password: str) -> str:
    """A line of mosquitto's password_file: ``$7$``, PBKDF2 with HMAC-SHA512, 12 bytes of salt (mosquitto 2.0)."""
    salt = secrets.token_bytes(12)
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ROUNDS)
    return f"{name}:$7${_ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}\n"


class CertificateAndKey(NamedTuple):
    """A certificate and its key, as PEM."""

    pem: bytes
    key: bytes


def new_authority(now: datetime.datetime) -> CertificateAndKey:
    """The authority that signs the certificates of this deployment, and of no other."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"eyestream {secrets.token_hex(4)}")])
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, name, key, now, AUTHORITY_DAYS).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    builder = builder.add_extension(_key_usage(signs=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return _pair(builder, key, key)


def new_certificate(authority: CertificateAndKey, host: str, now: datetime.datetime) -> CertificateAndKey:
    """A broker's certificate for the name or address `host`; ValueError when `authority` is not a pair."""
    issuer = x509.load_pem_x509_certificate(authority.pem)
    signer = serialization.load_pem_private_key(authority.key, None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise ValueError("expected a key on an elliptic curve")
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")]), issuer.subject, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative_name(host)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return _pair(builder, key, signer)


def days_left(pem: bytes, now: datetime.datetime) -> int:
    """Whole days for which a certificate is valid from `now` on; ValueError when `pem` is no certificate."""
    return (x509.load_pem_x509_certificate(pem).not_valid_after_utc - now).days


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
    days: int = CERTIFICATE_DAYS,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))  # other machines' clocks may be behind
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    denied = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **denied)


def _pair(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> CertificateAndKey:
    secret = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return CertificateAndKey(builder.sign(signer, hashes.SHA256()).public_bytes(_PEM), secret)
