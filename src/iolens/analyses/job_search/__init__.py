"""Jobs of a window that anything is known of: records, logs, job_stats, counters of nodes."""
