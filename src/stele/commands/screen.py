"""Print lines whose status has a colour, if the output is a terminal that shows colours. NO_COLOR switches them off."""

import re
import sys
from collections.abc import Iterable

STYLES = {
    "bold green": ("PASS", "IMPROVED", "ready", "good"),
    "bold red": ("REGRESSED", "BROKEN", "MISSING", "broken", "bad"),
    "bold yellow": ("INCONCLUSIVE", "missing", "skip"),
}
STYLE = {word: style for style, words in STYLES.items() for word in words}
STATUS = re.compile(rf"(?<![\w-])({'|'.join(STYLE)})(?![\w-])")  # the first one of a line


def print_lines(lines: Iterable[str]) -> None:
    """Print each line. In a terminal, the first status of a line has its colour."""
    if sys.stdout is None or not sys.stdout.isatty():
        print("\n".join(lines), flush=True)
        return
    from rich.console import Console  # imported here because it is slow to import
    from rich.text import Text

    console = Console(soft_wrap=True)
    for line in lines:
        text = Text(line)
        if match := STATUS.search(line):
            text.stylize(STYLE[match[0]], *match.span())
        console.print(text)
