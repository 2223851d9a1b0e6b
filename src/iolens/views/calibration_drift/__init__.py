"""How results of `calibration_drift` are shown."""
