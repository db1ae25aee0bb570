"""What runs on recordings, never on live data: calibration, simulation, attacks and tables."""
