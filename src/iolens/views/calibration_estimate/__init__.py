"""How results of `calibration_estimate` are shown."""
