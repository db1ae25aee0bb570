"""Several mistakes of one file, found one after the other and said together."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from eyestream.errors import ConfigError, OperatorError


class MistakesError(ConfigError):
    """Several mistakes, a line each.

    Attributes
    ----------
    errors : one for each of them.
    """

    def __init__(self, errors: Sequence[OperatorError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = tuple(errors)


class Problems:
    """The mistakes that were found so far, in order."""

    def __init__(self) -> None:
        self.found: list[OperatorError] = []

    def __len__(self) -> int:
        return len(self.found)

    def add(self, line: str) -> None:
        """Note a mistake."""
        self.found.append(ConfigError(line))

    @contextmanager
    def gathered(self, where: str = "") -> Iterator[None]:
        """Note what the body refuses, with its place in front, and go on after the body."""
        try:
            yield
        except OperatorError as error:
            self.found += _placed(error, where)

    def refuse(self, where: str = "") -> None:
        """Raise what was found, if anything: the error itself where it is one, else `MistakesError`."""
        found = [placed for error in self.found for placed in _placed(error, where)]
        if len(found) == 1:
            raise found[0]
        if found:
            raise MistakesError(found)


def _placed(error: OperatorError, where: str) -> list[OperatorError]:
    """The same error, or each of several, with its place in front."""
    placed: list[OperatorError] = []
    for one in error.errors if isinstance(error, MistakesError) else (error,):
        placed.append(type(one)(f"{where}{one}") if where else one)
        placed[-1].__cause__ = one.__cause__
    return placed
