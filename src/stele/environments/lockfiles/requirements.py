"""Requirements files: *.txt, and the *.lock files of pip-compile and uv pip compile. -r and -c are followed."""

import dataclasses
import posixpath
import re
from collections.abc import Iterator

from stele.environments.lockfiles.source import DEEPEST, Lines, Source

INCLUDE = re.compile(r"(?:(-[rc])[\s=]*|(--requirement|--constraint)(?:\s+|\s*=\s*))(\S.*)")
STATED_PYTHON = r"^#.*?(?:pip-compile with Python |--python-version[ =])(\d+\.\d+)"


def read_requirements(source: Source, content: str) -> tuple[Lines, Lines]:
    """Return the requirements and the constraints of a requirements file and of the files that it includes."""
    requirements: Lines = []
    constraints: Lines = []
    for number, line in logical_lines(content):
        include = INCLUDE.fullmatch(line)
        if include:
            more = read_included(source, include[3], line, number)
            constraints += more[1]
            required = (include[1] or include[2]) in ("-r", "--requirement")
            (requirements if required else constraints).extend(more[0])
        elif line.startswith(("-", ".", "/")):
            refuse_option(source, line, number)
        else:
            requirements += source.requirement(re.sub(r"\s--hash[=\s]\s*\S+", "", line), number)
    return requirements, constraints


def logical_lines(content: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) with continued lines joined and without comments."""
    pending: Lines = []
    for number, line in enumerate(content.splitlines(), 1):
        comment = line.lstrip().startswith("#")
        pending.append(" " + line if comment else line.removesuffix("\\"))
        if comment or not line.endswith("\\"):
            text = re.sub(r"(^|\s)#.*", "", "".join(pending)).strip()
            start, pending = number - len(pending) + 1, []
            if text:
                yield start, text
    if "".join(pending).strip():
        yield number, "".join(pending).strip()


def stated_python(content: str) -> str | None:
    """Return "==3.11.*" if a comment of pip-compile or uv says that the file is for Python 3.11, else None."""
    version = re.search(STATED_PYTHON, content, re.M)
    return f"=={version[1]}.*" if version else None


def refuse_option(source: Source, line: str, number: int) -> None:
    """Raise SteleError for a line that is an installer option or a local path."""
    if source.lenient:
        return
    if re.match(r"-e|--editable|[./]", line):
        raise source.error("is a local or editable package. Remove it and pass --with-project.", line, number)
    advice = "Remove it. To use a different index, set UV_INDEX or UV_DEFAULT_INDEX for uv."
    raise source.error(f"is an installer option, which is not supported. {advice}", line, number)


def read_included(source: Source, reference: str, line: str, number: int) -> tuple[Lines, Lines]:
    """Return the requirements and constraints of a file that -r or -c names."""
    path = posixpath.normpath(posixpath.join(source.folder, reference))
    readable = "://" not in reference and not posixpath.isabs(reference) and reference.isprintable()
    if source.sibling is None or not readable:
        raise source.error("cannot be followed. Name a file by a relative path.", line, number)
    if source.depth >= DEEPEST:
        raise source.error(
            "is nested too deeply, or the files include each other. Remove the line.", line, number
        )
    try:
        content = source.sibling(path)
    except OSError as error:
        raise source.error(f"names a file that cannot be read: {error.strerror}.", line, number) from None
    file = posixpath.normpath(posixpath.join(posixpath.dirname(source.file), reference))
    nested = dataclasses.replace(source, file=file, folder=posixpath.dirname(path), depth=source.depth + 1)
    return read_requirements(nested, content)
