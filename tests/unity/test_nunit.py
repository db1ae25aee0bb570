"""The package's own tests, which Unity's test runner shows, run by NUnit of Debian."""

import re
from pathlib import Path

import pytest

from tests.unity.compiling import compiled, nunit_framework, run_nunit, sources_of


@pytest.mark.needs("mono", "nunit")
def test_the_tests_of_the_package_pass(core: Path) -> None:
    tests = compiled(core.parent, "Eyestream.Tests.dll", sources_of("Eyestream.Tests"), [core, nunit_framework()])
    said = re.search(r"Tests run: (\d+), Errors: 0, Failures: 0, .*Skipped: 0", run_nunit(tests), re.S)
    assert said is not None
    assert int(said[1]) >= 30
