"""Releases: read a framework's releases from the package index, measure them, and find steps and regressions.

The ledger is a git repository in which asv finds the releases. Does not import ``report`` or ``commands``.
"""
