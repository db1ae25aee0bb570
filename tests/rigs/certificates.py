"""Certificates for tests, good and bad, made on the spot."""

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Authority", "Certificate"]

_PEM = serialization.Encoding.PEM


@dataclass(frozen=True)
class Certificate:
    """Files of a certificate and its key."""

    pem: Path
    key: Path


class Authority:
    """Signs certificates; its own stands in `pem`."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.pem = folder / f"{name}.pem"
        self.pem.write_bytes(self._sign(self._name, self._key, authority=True, host=None, days=1).public_bytes(_PEM))

    def issue(self, name: str, *, host: str | None = None, days: int = 1, file: str | None = None) -> Certificate:
        """A certificate for `name`; `host` makes it a broker's. `days` below 0: it expired so long ago."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self._write(self._sign(subject, key, authority=False, host=host, days=days), key, file or name)

    def self_signed(self, host: str) -> Certificate:
        """A broker's certificate that nobody but itself vouches for."""
        own = Authority(self._folder, "self-signed-ca")
        return self._write(own._sign(own._name, own._key, authority=False, host=host, days=1), own._key, "self-signed")

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, authority: bool, host: str | None, days: int
    ) -> x509.Certificate:
        day = datetime.timedelta(days=1)
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * day)
            .not_valid_after(now + days * day)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        if authority:  # without these and those of the issuer Python 3.13 refuses a chain
            no = dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False)
            usage = x509.KeyUsage(
                False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False, **no
            )
            builder = builder.add_extension(usage, critical=True)
        else:
            issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
            builder = builder.add_extension(issuer, critical=False)
        if host is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, name: str) -> Certificate:
        made = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        made.pem.write_bytes(certificate.public_bytes(_PEM))
        made.key.touch(0o600)
        made.key.write_bytes(key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        return made
