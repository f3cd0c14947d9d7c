"""The base class of all errors that users see."""


class SteleError(Exception):
    """An error that the user can act on. The command line and the plugin print it without a traceback."""
