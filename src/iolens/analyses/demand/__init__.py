"""What a file system is asked for at its busiest: percentiles over ticks, and bytes written by day; for plans."""
