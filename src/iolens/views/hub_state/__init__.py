"""The hub for people: its writer, and every agent that pushes samples."""
