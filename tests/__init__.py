"""Tests; a folder for each room. A test imports eyestream, eyestream.testing and helpers of its own folder."""

import os

# Before numpy is there: matrices are small here and there is a worker for each core, so that threads of the linear
# algebra would wait for one another most of the time. Commands that tests start inherit it.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
