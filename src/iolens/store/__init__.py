"""Tables on disk or object storage, counters to intervals, engines."""
