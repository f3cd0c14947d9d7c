"""What can be judged: the kinds of subjects, and the one that a record has.

``base`` says what every subject gives. Nothing here imports or runs the user's code: that happens in the worker alone,
which receives specs and paths as text.
"""

from collections.abc import Mapping
from typing import Any

from stele.subjects import programs
from stele.subjects.base import Cell, Comparison, InBoth, InOld, Subject
from stele.subjects.model.spec import Model, ModelRequest
from stele.subjects.programs import Program
from stele.subjects.tasks import Tasks

__all__ = ["Cell", "Comparison", "InBoth", "InOld", "Model", "ModelRequest", "Program", "Subject", "Tasks", "of_header"]


def of_header(header: Mapping[str, Any]) -> Subject:
    """Return the subject of a record, as far as its name and its verdicts need it."""
    if header.get("program") is not None:
        return programs.of_header(header["program"])
    if header.get("model") is not None:
        return Model.of_request(header["model"])
    return Tasks(tuple(dict.fromkeys(task for task, _ in header["cells"])))
