"""Studies (SPEC N4-N8): small plans of measurements, run point by point, interrupted, resumed and moved."""
