"""`iolens serve`: the pages of a centre, its JSON API, and the door through which agents send their samples."""
