"""Names that others may read in the place of a ledger's id, which is a secret: checksums are keyed with it."""

import hashlib

__all__ = ["client_id", "ledger_name", "presence_key", "presence_proof"]


def ledger_name(ledger_id: bytes) -> str:
    """A name for the ledger with this id, which says nothing of the id."""
    return hashlib.blake2b(ledger_id, digest_size=16, person=b"owner").hexdigest()


def client_id(ledger_id: bytes, link: str) -> str:
    """What a broker knows a link of the ledger's sidecar by: the same after a restart, and known to nobody else.

    Who connects with the id of another takes its place. A restart does so with the link of the life before, which the
    broker may hold for alive; an application must not be able to, whatever it reads. So the id is keyed with that of
    the ledger. Of 22 characters, as MQTT 3.1.1 (3.1.3.1) lets a broker refuse more than 23.
    """
    return hashlib.blake2b(link.encode(), key=ledger_id, digest_size=11, person=b"client id").hexdigest()


def presence_key(ledger_id: bytes) -> bytes:
    """The key, of 32 bytes, with which a sidecar proves that it has the ledger; it serves nothing else."""
    return hashlib.blake2b(key=ledger_id, digest_size=32, person=b"presence key").digest()


def presence_proof(key: bytes, nonce: str, sidecar: str) -> str:
    """32 hexadecimal digits which only somebody with `key` can make, for this question and this name.

    `sidecar` is a name, so that no two pairs make the same text.
    """
    return hashlib.blake2b(f"{sidecar} {nonce}".encode(), key=key, digest_size=16, person=b"presence").hexdigest()
