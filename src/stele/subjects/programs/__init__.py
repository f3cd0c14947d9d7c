"""The programs of the user that can be judged: a module for each kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stele.subjects.programs.asv import Asv
from stele.subjects.programs.base import Program, ProgramFacts
from stele.subjects.programs.command import Command
from stele.subjects.programs.function import Function
from stele.subjects.programs.tests import Tests

__all__ = ["Asv", "Command", "Function", "Program", "ProgramFacts", "Tests", "of_header"]

KINDS: dict[str, type[Program]] = {each.kind: each for each in (Tests, Function, Command, Asv)}


def of_header(facts: Mapping[str, Any]) -> Program:
    """Return the program of a record, as far as its name and its verdicts need it."""
    selected = tuple(facts.get("selected", ()))
    return KINDS[facts["kind"]](tuple(facts["arguments"]), Path(), accept=facts.get("accept"), selected=selected)
