"""Makes eyestream/data/calibrations/kaleido/kaleido-r2.npz, of public settings: python -m tools.make.make_kaleido"""

from eyestream.rim.files import DATA, calibrations
from eyestream_lab.kaleido import Settings
from eyestream_lab.kaleido_live.tables import calibration_of

if __name__ == "__main__":
    calibrations.save(calibration_of(Settings(), 100.0), DATA / "calibrations" / "kaleido" / "kaleido-r2.npz")
