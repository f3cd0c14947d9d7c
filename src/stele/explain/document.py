"""The file of ``stele explain --json`` and ``stele gate --explain``: what was found, to be read again."""

from typing import Annotated, Any

import msgspec

from stele import schema
from stele.errors import SteleError
from stele.explain.comparison import Comparison
from stele.schema import about


class ExplanationFile(msgspec.Struct, frozen=True):
    """`stele gate --explain` writes the same beside its record, as `NAME.explanation.json`."""

    old: Annotated[str, about("the environment OLD")]
    new: Annotated[str, about("the environment NEW")]
    cells: Annotated[dict[str, Comparison], about("by cell, such as `cnn train`")]
    differs: Annotated[
        tuple[str, ...],
        about("what else differs: packages, flags, what was in force, versions, selected kernels and defaults"),
    ]


def read(content: Any, source: str) -> ExplanationFile:
    """Return the explanation in a file. Raises SteleError, which names the file, if it is not one."""
    try:
        return schema.of_document(content, ExplanationFile)
    except ValueError as error:
        raise SteleError(f"{source} is not an explanation: {error}.") from None
