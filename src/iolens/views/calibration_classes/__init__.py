"""How results of `calibration_classes` are shown."""
