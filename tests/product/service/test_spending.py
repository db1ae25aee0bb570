"""What is reserved and held is left out of what was spent, at what each chunk cost."""

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.release.stream import ChunkCounters
from eyestream.core.reservation import Request
from eyestream.rim.sidecar.spending import Spending
from eyestream.streams import StreamKey
from tests.rigs.memory_ledger import MemoryLedger

KEY = StreamKey("d0", "features")
CHARGES = (Charge.of("1"), Charge.of("0.5"), Charge.of("0.25"))


def request(chunk: int, *, unreleased: bool = False) -> Request:
    return Request(KEY, 1, 4 * chunk, 4 * chunk + 3, 4, CHARGES[0], later=CHARGES[1:], unreleased=unreleased)


async def test_a_chunk_of_a_baseline_holds_nothing_and_one_of_a_later_level_what_that_costs() -> None:
    ledger, counters = MemoryLedger(Ceilings.of(lifetime=4.0, levels=3)), ChunkCounters()
    spending = Spending(ledger, {KEY: counters})

    def spent() -> float:
        odometer = spending.spent("d0")
        return 0.0 if odometer is None else odometer.epsilon / 10**12

    await spending.reserve([request(0, unreleased=True), request(1)], 0)
    assert spent() == 0.0
    counters.withheld["baseline"] += 1
    assert spent() == 0.0
    counters.released += 1
    assert spent() == 1.0
    await spending.reserve([request(2)], 0)  # up to 2 on level 0, and to 3 on level 1
    await spending.reserve([request(3)], 0)
    assert spent() == 1.0
    odometer = ledger.odometer("d0")
    assert odometer is not None
    assert odometer.epsilon == CHARGES[0].epsilon * 2 + CHARGES[1].epsilon, "control: the ledger knows of both"
    counters.released += 1
    assert spent() == 2.0
    counters.dropped["mechanism"] += 1
    assert spent() == 2.5
