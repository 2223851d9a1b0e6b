"""The Lustre Monitoring Tool and its heirs: databases, `ltop` recordings, HDF5 files of pytokio."""
