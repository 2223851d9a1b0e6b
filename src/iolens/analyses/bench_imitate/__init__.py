"""How near runs of IOR come to the job they imitate."""
