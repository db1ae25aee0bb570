"""One second of gaze, against the listing of all gaze and all outputs of a small world."""

import itertools

import numpy as np
import pytest

from eyestream_lab.correlation.chains import MarkovClass
from eyestream_lab.correlation.emissions import laplace, response
from eyestream_lab.correlation.profile import profile
from tests.lab.correlation.small_worlds import stay_or_move
from tests.lab.correlation.windows import Windows, exact_second, touched_loss


@pytest.mark.parametrize(
    ("stay", "seconds", "hop", "epsilon", "chunks"), [(0.8, 2, 1, 1.0, 5), (0.6, 2, 1, 3.0, 5), (0.9, 3, 2, 1.0, 4)]
)
def test_small_worlds(stay, seconds, hop, epsilon, chunks):
    windows = Windows(MarkovClass.exact(stay_or_move(stay, 2)), seconds, hop)
    emission = laplace(windows.contents.mean(axis=1), 1 / epsilon)
    emissions = [emission] * chunks
    found = profile(windows.chain(), emissions)
    for second in range(seconds + (chunks - 1) * hop):
        truth = exact_second(windows, emission, chunks, second)
        assert truth <= touched_loss(found, emissions, windows.touched(second, chunks)) <= found.plain_sum


def test_a_second_costs_more_than_the_chunks_that_it_touches():
    """Neither epsilon of a chunk nor the sum over touched chunks bounds a second: the ends are needed."""
    windows = Windows(MarkovClass.exact(stay_or_move(0.95, 2)), 2, 2)
    emission = response(1.0, np.array([[False, False, False, True], [True, False, False, False]]))
    second = 4
    assert len(windows.touched(second, 5)) == 1
    truth = exact_second(windows, emission, 5, second)
    found = profile(windows.chain(), [emission] * 5)
    assert truth > 1.5 * emission.loss
    assert truth <= touched_loss(found, [emission] * 5, windows.touched(second, 5))


def test_the_chain_of_windows_is_that_of_its_gaze():
    windows = Windows(MarkovClass.exact(np.array([[0.9, 0.1], [0.3, 0.7]])), 3, 2)
    chain = windows.chain()
    np.testing.assert_allclose(chain.first_lowest @ chain.lowest, chain.first_lowest)
    gaze = np.array(list(itertools.product((0, 1), repeat=5)))
    joint = np.zeros((8, 8))
    np.add.at(joint, (gaze[:, :3] @ [4, 2, 1], gaze[:, 2:] @ [4, 2, 1]), windows.likelihood(gaze))
    np.testing.assert_allclose(chain.first_lowest[:, None] * chain.lowest, joint)


def test_touched_chunks_are_those_whose_window_holds_the_second():
    windows = Windows(MarkovClass.exact(stay_or_move(0.8, 2)), 3, 2)
    for second in range(9):
        holding = [chunk for chunk in range(4) if 2 * chunk <= second < 2 * chunk + 3]
        assert list(windows.touched(second, 4)) == holding
