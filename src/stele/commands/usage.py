"""What is said of a command line that cannot be parsed: one message, with the nearest name, and where the help is."""

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import Any

from stele.text import printable, sentence, unknown_message, without_passwords

CHOICE = re.compile(r"argument (.+?): invalid choice: (.+?) \(choose from (.+)\)", re.S)  # of argparse


class Parser(argparse.ArgumentParser):
    """A parser of a command, whose subcommands are parsed by others of this class."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Let a subcommand itself refuse what it does not know, because only it has its options."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self.describe(unknown))
        return options, unknown

    def describe(self, unknown: Sequence[str]) -> str:
        """Return the message for arguments that the command does not know. Values may follow an option."""
        option = next((word.partition("=")[0] for word in unknown if word.startswith("-")), None)
        if option is None:
            return f"unexpected argument {unknown[0]!r}"
        names = [name for action in self._actions for name in action.option_strings]
        similar = difflib.get_close_matches(option, names, n=1)
        return f"unknown option {option}" + (f". Did you mean {similar[0]}?" if similar else "")

    def error(self, message: str) -> Any:
        """Print the message and end with exit code 2. The usage of all options would hide the message."""
        choice = CHOICE.fullmatch(message)
        if choice is not None:
            value, *names = (word.strip("'\"") for word in (choice[2], *choice[3].split(", ")))
            kind = f"value of {choice[1]}" if choice[1].startswith("-") else "command"
            message = unknown_message(kind, value, names)
        text = printable(without_passwords(sentence(message)))
        self.exit(2, f"{self.prog}: {text}\nAll options are listed by: {self.prog} --help\n")
