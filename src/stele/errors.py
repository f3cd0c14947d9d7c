"""The one error that users see."""


class SteleError(Exception):
    """Something that the user can act on; the doors print it without a traceback."""
