"""Arrays that a release works in begin where a cache line does."""

import numpy as np
import pytest

from eyestream.core.frame import aligned_empty, repeat_column


@pytest.mark.parametrize("kind", [np.float64, np.intp, np.bool_, np.int16])
def test_an_array_begins_at_a_cache_line_and_shares_no_byte(kind: type[np.generic]) -> None:
    made = [aligned_empty((48, n), kind) for n in (1, 32, 64, 128, 129)]
    for array in made:
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous
        assert array.dtype == kind
    for value, array in enumerate(made):
        array[:] = value % 2
    assert all((array == value % 2).all() for value, array in enumerate(made))


def test_a_column_is_repeated() -> None:
    column = np.array([[1.0], [2.0]])
    np.testing.assert_array_equal(repeat_column(column, 3), [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
