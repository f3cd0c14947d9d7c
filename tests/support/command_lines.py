"""Command lines as the options that a command receives."""

from stele import __main__ as entry_point
from stele.commands import options


def parse(*words):
    """Return the options of a command."""
    arguments = entry_point.parser().parse_args(words)
    return options.from_arguments(arguments.options, arguments)
