"""Makes eyestream/data/calibrations/kaleido/kaleido-r2.npz, of public settings: python -m tools.make.make_kaleido"""

from eyestream.privacy.kaleido import Settings
from eyestream.privacy.mechanisms.kaleido.tables import calibration_of
from eyestream.rim.files import calibrations
from eyestream.rim.files.package_data import DATA

if __name__ == "__main__":
    calibrations.save(calibration_of(Settings(), 100.0), DATA / "calibrations" / "kaleido" / "kaleido-r2.npz")
