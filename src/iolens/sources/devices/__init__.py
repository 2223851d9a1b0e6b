"""Block devices of any Linux host: diskstats, iostat, PCP archives, collectd."""
