"""Application runs as Darshan logs tell them: runs with their jobs and projects, strategies, one run in detail."""
