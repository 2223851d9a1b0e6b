"""What one job did to each file system: bytes, RPCs by size, metadata operations, and findings.

Standard library only: the report is printed on compute nodes.
"""
