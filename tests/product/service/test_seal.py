"""A ledger that is sealed on its disk: the same sums, the same damage, and nothing for who steals the file."""

import os
import re
import secrets
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Request
from eyestream.errors import ConfigError, LedgerError
from eyestream.ops.grants.record import GrantEntry, append
from eyestream.rim.ledger import seal as seals
from eyestream.rim.ledger.file import put
from eyestream.rim.ledger.guarded import accept, guarded
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.ledger.records import RECORD_BYTES as UNIT
from eyestream.rim.ledger.seal import Seal, SealedFile, seal_by
from eyestream.rim.sidecar.off import remember_pause
from eyestream.rim.sidecar.wearing import worn_beside
from eyestream.streams import StreamKey

ROOT = Path(__file__).resolve().parents[3]
DEVICE, STREAM, OWN_STREAM = "hmd-c0ffee4711", "features", "secret-stream"
WEARER, SESSION, ROW, DAY, CHARGE = 0xA1B2C3D4, 0x1122334455667788, 0x0102030405, 20_007, Charge.of("4.800001")
SEAL = Seal(b"k" * 32)

TOLD: dict[str, list[bytes]] = {
    "device": [DEVICE.encode()],
    "stream": [OWN_STREAM.encode()],
    "wearer": [struct.pack("<I", WEARER), str(WEARER).encode()],
    "session": [struct.pack("<Q", SESSION), str(SESSION).encode()],
    "row": [struct.pack("<Q", ROW + 160), str(ROW + 159).encode()],
    "day": [struct.pack("<I", DAY), str(DAY).encode()],
    "epsilon": [struct.pack("<Q", CHARGE.epsilon), str(CHARGE.epsilon).encode()],
}
"""What a ledger may tell, in the forms in which its records and its snapshot have it."""


def spend(ledger: Ledger, first: int, count: int, stream: str = OWN_STREAM) -> None:
    """Reserve `count` chunks, one after the other."""
    for i in range(first, first + count):
        row = ROW + 32 * i
        ledger.reserve([Request(StreamKey(DEVICE, stream), SESSION, row, row + 31, 32, CHARGE, wearer=WEARER)], DAY)


def made(path: Path, seal: Seal | None, chunks: int = 5) -> Path:
    """A ledger with spends in its snapshot and in its records."""
    create_ledger(path, created=1_700_000_000, seal=seal)
    for first, count in ((0, chunks), (chunks, chunks)):
        with OperatedLedger(path, ceilings=Ceilings(), seal=seal) as ledger:
            spend(ledger, first, count)
            if first == 0:
                ledger.begin_day_at(DAY)
    return path


def told(data: bytes) -> set[str]:
    """What somebody finds in the bytes."""
    return {what for what, forms in TOLD.items() if any(form in data for form in forms)}


def page() -> dict[str, tuple[str, str]]:
    """The table of the page: what is told of a plain ledger, and of a sealed one."""
    text = (ROOT / "docs" / "wearer.md").read_text()
    rows = re.findall(r"(?m)^\| (\w+)[^|]* \| (yes|no) \| (yes|no) \|$", text[text.index("## A stolen ledger") :])
    return {what: (plain, sealed) for what, plain, sealed in rows}


def test_a_stolen_file_tells_what_the_page_says_and_no_more(tmp_path: Path) -> None:
    plain, sealed = (made(tmp_path / name, seal).read_bytes() for name, seal in (("plain", None), ("sealed", SEAL)))
    says = page()
    assert told(plain) == {what for what, (yes, _) in says.items() if yes == "yes" and what in TOLD}
    assert told(sealed) == {what for what, (_, yes) in says.items() if yes == "yes" and what in TOLD} == set()
    assert set(TOLD) <= set(says)
    blocks = [sealed[i : i + 16] for i in range(UNIT, len(sealed), 16)]
    assert len(set(blocks)) == len(blocks), "no two parts look alike"
    assert sealed[:8] == b"EYESEALD"
    assert says["size"] == ("yes", "yes")


@pytest.mark.parametrize("seal", [None, SEAL], ids=["plain", "sealed"])
def test_files_beside_a_ledger_tell_what_the_page_says_and_no_more(tmp_path: Path, seal: Seal | None) -> None:
    """All that lies beside the ledger after a life with a second place, a pause and a grant is named on the page."""
    path = made(tmp_path / "ledger", seal)
    place = tmp_path / "elsewhere" / "second"
    place.parent.mkdir()
    with Ledger(path, ceilings=Ceilings(), seal=seal) as ledger:
        accept(ledger, path, place)
        with guarded(ledger, path, place) as life:
            requests = [
                Request(StreamKey(DEVICE, OWN_STREAM), SESSION, ROW + 5000, ROW + 5031, 32, CHARGE, wearer=WEARER)
            ]
            life.reserve(requests, DAY)
    remember_pause(path)
    put(worn_beside(path), f"{DEVICE} 7\n".encode())
    append(path, GrantEntry(1_795_000_000, "granted", "game", OWN_STREAM, ("blink_rate",)))
    text = (ROOT / "docs" / "wearer.md").read_text()
    beside = {file.name: told(file.read_bytes()) for file in tmp_path.iterdir() if file.is_file() and file != path}
    assert beside == {
        "ledger.lives": set(),
        "ledger.paused": set(),
        "ledger.worn": {"device"},
        "ledger.grants": {"stream"},
    }
    assert told(place.read_bytes()) == set()
    unsealed = text[text.index("**What is not sealed.**") :].split("\n\n", 1)[0]
    assert all(name in unsealed for name in beside)
    assert {path.with_name(name).stat().st_mode & 0o077 for name in beside} == {0}


def test_no_two_lives_and_no_two_copies_share_a_cipher(tmp_path: Path) -> None:
    path = made(tmp_path / "ledger", SEAL)
    files = [path.read_bytes()]
    for name in "ab":  # two copies, opened apart, that take different slots at the same places
        copy = tmp_path / name
        copy.write_bytes(files[0])
        copy.chmod(0o600)
        with Ledger(copy, ceilings=Ceilings(), seal=SEAL) as ledger:
            spend(ledger, 20, 2, stream=f"stream-{name}")
        files.append(copy.read_bytes())
    assert len({data[:UNIT] for data in files}) == 3
    for one, other in pairwise(files):
        blocks = {one[i : i + 16] for i in range(UNIT, len(one), 16)}
        assert not blocks & {other[i : i + 16] for i in range(UNIT, len(other), 16)}


def sums(path: Path, seal: Seal | None) -> object:
    """All that a reader of the ledger learns, or that it is refused."""
    try:
        reading = read_ledger(path, seal)
    except LedgerError:
        return "refused"
    return dict(reading.odometers), (reading.days.last, reading.days.ahead), dict(reading.streams)


@pytest.mark.parametrize("kind", ["cut", "flipped"])
def test_damage_counts_as_in_a_plain_ledger(tmp_path: Path, kind: str) -> None:
    """Both files end with the same records; each is damaged at the same place."""
    paths, counted = (made(tmp_path / "plain", None), made(tmp_path / "sealed", SEAL)), 0
    plain, sealed = (path.read_bytes() for path in paths)
    assert sums(paths[0], None) == sums(paths[1], SEAL)
    for back in range(0, 3 * UNIT, 5):
        for path, data in zip(paths, (plain, sealed), strict=True):
            end = bytearray(data[: len(data) - back] if kind == "cut" else data)
            if kind == "flipped":
                end[-1 - back] ^= 0x40
            path.write_bytes(end)
        one, other = sums(paths[0], None), sums(paths[1], SEAL)
        assert one == other
        counted += one != "refused"
    assert counted > 5


def test_a_torn_end_is_closed_and_the_ledger_goes_on(tmp_path: Path) -> None:
    path = made(tmp_path / "ledger", SEAL)
    before = read_ledger(path, SEAL).odometers[DEVICE]
    path.write_bytes(path.read_bytes()[:-23])
    for first in (100, 200):
        with Ledger(path, ceilings=Ceilings(), seal=SEAL) as ledger:
            spend(ledger, first, 2, stream="other")
    after = read_ledger(path, SEAL).odometers[DEVICE]
    assert after.unreadable == 1
    assert after.epsilon == before.epsilon + 4 * CHARGE.epsilon


def test_another_key_no_key_or_a_short_one_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    path = made(tmp_path / "ledger", SEAL)
    data = path.read_bytes()
    for wrong, words in ((Seal(b"x" * 32), "sealed with another key"), (None, "is sealed; use --config")):
        with pytest.raises(LedgerError, match=words) as caught:
            read_ledger(path, wrong)
        assert "--new" not in str(caught.value), "a wrong key is no reason to forget what was spent"
        with pytest.raises(LedgerError, match=words):
            Ledger(path, ceilings=Ceilings(), seal=wrong)
    assert path.read_bytes() == data
    key = tmp_path / "key"
    with pytest.raises(ConfigError, match="cannot be read"):
        seal_by(key)
    key.write_bytes(b"short")
    key.chmod(0o600)
    with pytest.raises(ConfigError, match="at least 32"):
        seal_by(key)
    key.write_bytes(secrets.token_bytes(32))
    key.chmod(0o640)
    with pytest.raises(ConfigError, match="others can read"):
        seal_by(key)


def test_a_plain_ledger_is_sealed_as_it_is_opened_with_all_that_it_has(tmp_path: Path) -> None:
    path = made(tmp_path / "ledger", None)
    before = sums(path, None)
    with Ledger(path, ceilings=Ceilings(), seal=SEAL):
        pass
    assert sums(path, SEAL) == before
    assert told(path.read_bytes()) == set()


def test_a_second_place_and_commands_work_with_a_sealed_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["init", str(tmp_path / "conf")])
    config, key = tmp_path / "conf" / "sidecar.toml", tmp_path / "key"
    key.write_bytes(secrets.token_bytes(32))
    key.chmod(0o600)
    config.write_text(f'[sidecar]\nledger_key = "{key}"\nsecond_place = "../place"\n' + without_sidecar(config))
    ledger, seal = tmp_path / "conf" / "ledger", seal_by(key)
    device = next(line.split('"')[1] for line in config.read_text().splitlines() if line.startswith("id = "))
    main(["budget", "--config", str(config), "--accept"])
    assert ledger.read_bytes()[:8] == b"EYESEALD"
    old = ledger.read_bytes()
    request = Request(StreamKey(device, "features"), 1, 0, 63, 64, CHARGE)
    with (
        Ledger(ledger, ceilings=Ceilings(), seal=seal) as opened,
        guarded(opened, ledger, tmp_path / "place") as kept,
    ):
        kept.reserve([request], DAY)
    main(["budget", "--config", str(config)])
    assert "4.800001" in capsys.readouterr().out
    create_ledger(tmp_path / "other", created=0)
    with Ledger(tmp_path / "other", ceilings=Ceilings()) as other:
        name = ledger_name(other.header.ledger_id)
    main(["budget", "--config", str(config), "--export", device, str(tmp_path / "moved"), "--to", name])
    main(["budget", "--ledger", str(tmp_path / "other"), "--import", str(tmp_path / "moved")])
    assert read_ledger(tmp_path / "other").odometers[device].epsilon == CHARGE.epsilon
    ledger.write_bytes(old)
    with Ledger(ledger, ceilings=Ceilings(), seal=seal) as rolled, pytest.raises(LedgerError, match="older"):  # noqa: SIM117
        with guarded(rolled, ledger, tmp_path / "place"):
            pass
    with pytest.raises(SystemExit):
        main(["budget", "--ledger", str(ledger)])
    assert "is sealed; use --config" in capsys.readouterr().err


def without_sidecar(config: Path) -> str:
    """The file without its table [sidecar]."""
    return re.sub(r"(?ms)^\[sidecar\]\n.*?(?=^(#|\[))", "", config.read_text())


def _same_salt(self: Seal) -> SealedFile:
    salt = b"s" * 32
    return SealedFile(self._key, seals._MAGIC + salt + self._check(salt))


def _plain(self: SealedFile, data: bytes, place: int) -> bytes:
    return data


def _one_tweak(seal: Callable[[SealedFile, bytes, int], bytes]) -> Callable[[SealedFile, bytes, int], bytes]:
    def sealed(self: SealedFile, data: bytes, place: int) -> bytes:
        return b"".join(seal(self, data[i : i + UNIT], UNIT) for i in range(0, len(data), UNIT))

    return sealed


@pytest.mark.parametrize("what", ["salt", "plain", "tweak"])
def test_a_planted_wrong_seal_is_found(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if what == "salt":
        monkeypatch.setattr(Seal, "new_file", _same_salt)
        with pytest.raises(AssertionError):
            test_no_two_lives_and_no_two_copies_share_a_cipher(tmp_path)
        return
    wrong = _plain if what == "plain" else _one_tweak(SealedFile.seal)
    monkeypatch.setattr(SealedFile, "seal", wrong)
    monkeypatch.setattr(SealedFile, "open", _plain if what == "plain" else _one_tweak(SealedFile.open))
    with pytest.raises(AssertionError):
        test_a_stolen_file_tells_what_the_page_says_and_no_more(tmp_path)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
