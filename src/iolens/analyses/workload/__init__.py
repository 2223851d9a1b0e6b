"""What a file system is asked to do (paper S): bandwidth, sizes, arrivals, idle times, rhythm."""
