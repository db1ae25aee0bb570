"""Names that others may read in the place of a ledger's id, which is a secret: checksums are keyed with it."""

import hashlib

from eyestream.streams import StreamKey


def ledger_name(ledger_id: bytes) -> str:
    """A name for the ledger with this id, which says nothing of the id."""
    return hashlib.blake2b(ledger_id, digest_size=16, person=b"owner").hexdigest()


def client_id(ledger_id: bytes, link: str) -> str:
    """Client id of a link of the ledger's sidecar: the same after a restart, and known to nobody but the broker.

    Who connects with the id of another takes its place. A restart does so with the link of the life before, which the
    broker may hold for alive; an application must not be able to, whatever it reads. So the id is keyed with that of
    the ledger. Of 22 characters, as MQTT 3.1.1 (3.1.3.1) lets a broker refuse more than 23.
    """
    return hashlib.blake2b(link.encode(), key=ledger_id, digest_size=11, person=b"client id").hexdigest()


def wearer_number(ledger: str, device: str, handle: str) -> int:
    """The number, from 1 to 2^32 - 1, under which a ledger knows a wearer of a device; it does not tell the handle.

    `ledger` is the name of the first ledger that the device was in: the number moves with the device. Of 1,024 handles
    two have one number, and so one budget, once in 8,000 devices.
    """
    digest = hashlib.blake2b(f"{device} {handle}".encode(), key=bytes.fromhex(ledger), digest_size=16, person=b"wearer")
    return int.from_bytes(digest.digest(), "little") % (2**32 - 1) + 1


def odometer_ledger(ledger: str, key: StreamKey) -> str:
    """A name, at one stream, of the ledger with the name `ledger`: no two streams show that they share a ledger."""
    key_bytes = bytes.fromhex(ledger)
    return hashlib.blake2b(str(key).encode(), key=key_bytes, digest_size=16, person=b"odometer").hexdigest()


def odometer_start(ledger_id: bytes, key: StreamKey) -> int:
    """The number from which the odometer of a stream counts, below 2^62: who has not the id cannot tell it."""
    digest = hashlib.blake2b(str(key).encode(), key=ledger_id, digest_size=8, person=b"odometer start").digest()
    return int.from_bytes(digest, "little") >> 2


def presence_key(ledger_id: bytes) -> bytes:
    """The key, of 32 bytes, with which a sidecar proves that it has the ledger; it serves nothing else."""
    return hashlib.blake2b(key=ledger_id, digest_size=32, person=b"presence key").digest()


def presence_proof(key: bytes, nonce: str, sidecar: str) -> str:
    """32 hexadecimal digits which only somebody with `key` can make, for this question and this name.

    `sidecar` is a name, so that no two pairs make the same text.
    """
    return hashlib.blake2b(f"{sidecar} {nonce}".encode(), key=key, digest_size=16, person=b"presence").hexdigest()
