"""Results of IOR, fio and mdtest."""
