"""How results of `calibration_stored` are shown."""
