"""Block devices of any Linux host: diskstats, iostat, collectd."""
