"""A sidecar out of its configuration: calibration, mechanism, ledger, and whether they fit one another."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eyestream.errors import ConfigError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.charge import EPSILON_UNITS, Ceilings, ceiling_units, charge_units
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import build
from eyestream.privacy.noise import Noise, SecureNoise
from eyestream.rim.config import Settings
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.ledger import Ledger, create_ledger
from eyestream.rim.sidecar.sidecar import Sidecar

__all__ = ["assemble", "fitting_calibration", "mechanism_of", "new_ledger"]


def fitting_calibration(settings: Settings) -> Calibration:
    """The calibration that the configuration names.

    Raises
    ------
    CalibrationError
        There is none, or it was made for another stream.
    """
    calibration = calibrations.load(settings.privacy.calibration)
    calibration.check_stream(settings.stream.names, settings.stream.rate_hz)
    return calibration


def new_ledger(settings: Settings, created: int) -> None:
    """Create the ledger that the configuration names; `created` is in seconds since 1970.

    Raises
    ------
    LedgerError
        It exists already, or cannot be written.
    CalibrationError
        The chunk length is unknown: the calibration does not fit.
    """
    chunk = fitting_calibration(settings).n
    create_ledger(settings.sidecar.ledger, chunk=chunk, window=settings.budget.window_chunks, created=created)


def mechanism_of(settings: Settings, noise: Noise) -> Mechanism:
    """The mechanism that the configuration asks for.

    Raises
    ------
    ConfigError
        Epsilon or k cannot be used, or the mechanism has no such option.
    CalibrationError
        As `fitting_calibration`.
    """
    calibration, privacy = fitting_calibration(settings), settings.privacy
    options = {key: getattr(privacy, key) for key in ("k", "shrink", "clip", "smooth")}
    return build(calibration, privacy.epsilon, noise=noise, **options)


@contextmanager
def assemble(settings: Settings, today: Callable[[], int]) -> Iterator[Sidecar]:
    """A sidecar that is ready to run, with its ledger open.

    Parameters
    ----------
    settings
        The configuration.
    today
        Days since 1970, UTC.

    Raises
    ------
    ConfigError
        Epsilon, k, a ceiling or a broker's settings cannot be used.
    CalibrationError
        As `fitting_calibration`.
    LedgerError
        There is no ledger, or it cannot be used.
    """
    budget = settings.budget
    mechanism = mechanism_of(settings, SecureNoise())
    for key in ("window_epsilon", "session_epsilon", "day_epsilon"):
        if ceiling_units(getattr(budget, key)) < charge_units(mechanism.epsilon):
            least = f"{charge_units(mechanism.epsilon) / EPSILON_UNITS:.15g}"
            raise ConfigError(f"[budget] {key}: expected at least the epsilon of one chunk as it is booked, {least}")
    ceilings = Ceilings.of(budget.window_chunks, budget.window_epsilon, budget.session_epsilon, budget.day_epsilon)
    with Ledger(settings.sidecar.ledger, chunk=mechanism.n, ceilings=ceilings) as ledger:
        yield Sidecar(settings, mechanism, ledger, today=today)
