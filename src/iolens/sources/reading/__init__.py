"""Reading anything safely: bounded openers, numbers, times and ticks, JSON, HDF5 and SQL, for every source."""
