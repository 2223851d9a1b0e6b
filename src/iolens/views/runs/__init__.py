"""What views of many application runs share: titles, names of projects, axes, classes of processes."""
