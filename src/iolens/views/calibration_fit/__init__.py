"""How results of `calibration_fit` are shown."""
