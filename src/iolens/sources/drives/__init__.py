"""Wear and writes of single drives: isdct, smartctl, nvme."""
