"""What Lustre servers and clients print themselves: `/proc`, `/sys`, `lctl get_param`, `lfs df`."""
