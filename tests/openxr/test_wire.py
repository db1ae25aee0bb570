"""Messages and pages of any bytes: read as they were written, or refused."""

import contextlib
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eyestream.errors import PayloadError
from eyestream_openxr.wire import MOST_SAMPLES, PAGE_BYTES, SAMPLE, Page, packed, read_page, samples
from tests.openxr.machine import LAYER

SAMPLES = st.lists(
    st.tuples(st.integers(0, 2**62), st.floats(width=32), st.floats(width=32)), min_size=1, max_size=MOST_SAMPLES
)


def test_numbers_are_those_of_the_layer() -> None:
    header = (LAYER / "wire.h").read_text(encoding="utf-8")
    assert f"#define WIRE_MOST {MOST_SAMPLES}u" in header
    assert re.findall(r"sizeof\(struct wire_(\w+)\) == (\d+)", header) == [
        ("sample", str(SAMPLE.itemsize)),
        ("page", str(PAGE_BYTES)),
    ]


@given(SAMPLES)
def test_messages_come_back(rows: list[tuple[int, float, float]]) -> None:
    table = np.array(rows, SAMPLE)
    assert samples(packed(table)).tobytes() == table.tobytes()


@given(st.one_of(st.binary(max_size=600), SAMPLES.map(lambda rows: packed(np.array(rows, SAMPLE)))), st.data())
def test_a_message_of_any_bytes_is_read_or_refused(message: bytes, data: st.DataObject) -> None:
    spoilt = bytearray(message)
    for _ in range(data.draw(st.integers(0, 3)) if spoilt else 0):
        spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
    spoilt = spoilt[: data.draw(st.integers(0, len(spoilt)))]
    with contextlib.suppress(PayloadError):
        assert 1 <= len(samples(bytes(spoilt))) <= MOST_SAMPLES


@given(st.binary(max_size=2 * PAGE_BYTES))
def test_a_page_of_any_bytes_is_read_or_is_none(said: bytes) -> None:
    page = read_page(said)
    assert page is None or isinstance(page, Page)


@given(st.integers(1, 2**62), st.integers(0, 2**30), st.integers(0, PAGE_BYTES - 5))
def test_a_page_comes_back_unless_it_is_cut_or_half_written(at: int, turn: int, where: int) -> None:
    page = Page(at, at, at, 1.5, -2.5)
    said = page.packed(2 * turn)
    assert read_page(said) == page
    assert read_page(said[: where + 4]) is None
    assert read_page(page.packed(2 * turn + 1)) is None
    assert read_page(said[:8] + (2 * turn + 2).to_bytes(4, "little") + said[12:]) is None
