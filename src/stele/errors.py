"""The errors that users see."""


class SteleError(Exception):
    """An error that the user can act on. The command line and the plugin print it without a traceback."""


class DataError(SteleError):
    """A data file is unsafe, damaged or of another kind than expected, or the cache cannot be written."""


class DataUnavailable(DataError):
    """The real data is not available at the moment; ``load`` then uses synthetic data."""
