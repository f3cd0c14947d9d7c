"""What is said of a command line that cannot be parsed: one message, with the nearest name, and where the help is."""

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import Any

from stele.text import printable, sentence, unknown_message, without_passwords

# messages of argparse
CHOICE = re.compile(r"argument (.+?): invalid choice: (.+?) \(choose from (.+)\)", re.S)
VALUE = re.compile(r"argument (-\S+): expected (one|at least one) argument")
ARGUMENT = re.compile(r"argument (\S+): (.+)", re.S)
COMMANDS = ("COMMAND", "VERB")
NEAR = 0.75  # of an option: of less similar ones, another is seldom meant


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
        similar = difflib.get_close_matches(option, names, n=1, cutoff=NEAR)
        return f"unknown option {option}" + (f". Did you mean {similar[0]}?" if similar else "")

    def error(self, message: str) -> Any:
        """Print the message and end with exit code 2. The usage of all options would hide the message."""
        choice = CHOICE.fullmatch(message)
        if choice is not None:
            value, *names = (word.strip("'\"") for word in (choice[2], *choice[3].split(", ")))
            if choice[1].startswith("-"):
                message = unknown_message("value", value, names, of=f"for {choice[1]}")
            else:
                message = unknown_message("command" if choice[1] in COMMANDS else choice[1].lower(), value, names)
        elif value_of := VALUE.fullmatch(message):
            message = f"{value_of[1]} needs a value. Write one that starts with - as {value_of[1]}=VALUE"
        elif argument := ARGUMENT.fullmatch(message):
            message = argument[2] if argument[2].startswith(argument[1]) else f"{argument[1]}: {argument[2]}"
        text = printable(without_passwords(sentence(message)))
        self.exit(2, f"{self.prog}: {text}\nAll options are listed by: {self.prog} --help\n")
