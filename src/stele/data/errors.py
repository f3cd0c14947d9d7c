"""What can go wrong with data."""

from stele.errors import SteleError


class DataError(SteleError):
    """A data file is hostile, damaged or not what its name says, or the cache cannot be written."""


class DataUnavailable(DataError):
    """The real data cannot be had just now; ``load`` falls back to synthetic data."""
