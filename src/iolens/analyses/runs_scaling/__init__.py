"""The runs of one project or program by their size: performance, and strong or weak scaling."""
