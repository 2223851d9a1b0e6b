from pathlib import Path

LOGS = Path(__file__).parent / "logs"  # of IOR: four runs with what IOR said of each, and some of other users
