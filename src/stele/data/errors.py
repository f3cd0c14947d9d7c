"""The errors of data files."""

from stele.errors import SteleError


class DataError(SteleError):
    """A data file is unsafe, damaged or of another kind than expected, or the cache cannot be written."""


class DataUnavailable(DataError):
    """The real data is not available at the moment; ``load`` then uses synthetic data."""
