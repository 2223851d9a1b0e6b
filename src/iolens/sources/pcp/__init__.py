"""Archives of Performance Co-Pilot: block devices of any Linux host, and Lustre as `iolens export pcp` serves it."""
