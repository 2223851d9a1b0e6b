"""Application runs, by their Darshan logs."""
