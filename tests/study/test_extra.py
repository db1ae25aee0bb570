import os
from importlib.util import find_spec

import pytest


def test_the_study_can_be_tested_here():
    missing = [name for name in ("sklearn", "matplotlib", "joblib") if find_spec(name) is None]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"{', '.join(missing)} not installed: the study is not tested")
    assert not missing
