"""Requirements files: *.txt, *.in, and the *.lock files of pip-compile and uv pip compile. -r and -c are followed."""

import dataclasses
import os
import posixpath
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stele import files
from stele.environments.lockfiles.source import DEEPEST, Lines, Source, parse_requirement, with_name
from stele.errors import SteleError

INCLUDE = re.compile(r"(?:(-[rc])[\s=]*|(--requirement|--constraint)(?:\s+|\s*=\s*))(\S.*)")
LOCAL = re.compile(r"-e\b|--editable\b|\.|file:|(?!-)[^\s@:;]*/")
STATED_PYTHON = r"^#.*?(?:pip-compile with Python |--python-version[ =])(\d+\.\d+)"
VCS = re.compile(r"\w+\+\w+://|https?://")
HASH = re.compile(r"\s--hash[=\s]\s*(\S+)")
VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")  # as in pip: a token is often kept out of the file
SHOWN = re.compile(r"[=<>~!]=|[<>]|://|^\s*(?:-[rc]|--requirement|--constraint)\b", re.M)
SHORT = {"-i": "--index-url", "-f": "--find-links"}
WITH_VALUE = (
    "--index-url",
    "--extra-index-url",
    "--find-links",
    "--trusted-host",
    "--no-binary",
    "--only-binary",
)
ALONE = ("--no-index", "--pre")
IGNORED = ("--prefer-binary", "--require-hashes", "--use-feature")  # hashes are always required


def read_requirements(source: Source, content: str) -> Lines:
    """Return the requirements of a file and of those that it includes. Constraints and options go into the notes."""
    requirements: Lines = []
    for number, line in logical_lines(content):
        include = INCLUDE.fullmatch(line)
        if include:
            included = read_included(source, include[3], line, number)
            required = (include[1] or include[2]) in ("-r", "--requirement")
            (requirements if required else source.notes.constraints).extend(included)
        elif LOCAL.match(line):
            requirements += local_package(source, line, number)
        elif line.startswith("-"):
            read_options(source, line, number)
        else:
            lines = source.requirement(with_variables(without_hashes(line)), number)
            for requirement in lines:
                source.origin(Requirement(requirement).name, hashes=HASH.findall(line))
            requirements += lines
    return requirements


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


def without_hashes(line: str) -> str:
    return HASH.sub("", line)


def with_variables(line: str) -> str:
    """Return the line with the values of ${VARIABLES} that are set."""
    return VARIABLE.sub(lambda match: os.environ.get(match[1]) or match[0], line)


def stated_python(content: str) -> str | None:
    """Return "==3.11.*" if a comment of pip-compile or uv says that the file is for Python 3.11, else None."""
    version = re.search(STATED_PYTHON, content, re.M)
    return f"=={version[1]}.*" if version else None


def local_package(source: Source, line: str, number: int) -> Lines:
    """Return nothing for a package in a local folder, and the package of ``-e git+URL``."""
    target = re.sub(r"^(-e|--editable)[\s=]*", "", line)
    if VCS.match(target):
        if not (source.allow_vcs or source.lenient):
            raise source.error("is installed from a URL. Pass --allow-vcs to allow this.", line, number)
        return source.requirement(with_variables(target), number)
    if not (source.skip_local or source.lenient):
        raise source.error("is a local or editable package. Remove it and pass --with-project.", line, number)
    source.leave_out(line, number)
    return []


def read_options(source: Source, line: str, number: int) -> None:
    """Note the options in a line. Raises SteleError for one that is unknown, or that has no value."""
    for name, value in options_of(with_variables(line)):
        if name in WITH_VALUE and value:
            value = find_links(source, value, line, number) if name == "--find-links" else value
            source.notes.options.append(f"{name} {value}")
        elif name in ALONE and not value:
            source.notes.options.append(name)
        elif name == "--prefer-binary":
            problem = "is ignored: uv has no such option."
            source.notes.messages.append(str(source.error(problem, line, number)))
        elif name not in IGNORED and not source.lenient:
            advice = "Remove it. To use a different index, set UV_INDEX or UV_DEFAULT_INDEX for uv."
            problem = f"is an installer option, which is not supported. {advice}"
            raise source.error(problem, line, number)


def options_of(line: str) -> Iterator[tuple[str, str]]:
    """Yield each option with its value, which may be empty: ``--name=value``, ``--name value``, ``-ivalue``."""
    try:
        words = shlex.split(line)
    except ValueError:  # a quotation without its end
        words = line.split()
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word[:2] in SHORT:
            name, value = SHORT[word[:2]], word[2:].removeprefix("=")
        if not value and not equals and words and not words[0].startswith("-"):
            value = words.pop(0)
        yield name, value


def find_links(source: Source, value: str, line: str, number: int) -> str:
    """Return the URL of a page or a folder. A folder is relative to the file, or to the current one, as in pip."""
    if "://" in value:
        return value
    beside = source.base / posixpath.dirname(source.file) / value
    path = next((path for path in (beside, Path(value)) if path.exists()), None)
    if path is None and not source.lenient:
        raise source.error("names a folder that does not exist. Create it, or remove the line.", line, number)
    if source.revision is not None:
        problem = f"is read from the working tree, also for revision {source.revision!r}."
        source.notes.messages.append(str(source.error(problem, line, number)))
    return files.absolute(path or beside).resolve().as_uri()


def read_included(source: Source, reference: str, line: str, number: int | None = None) -> Lines:
    """Return the requirements of a file that -r, -c or a setup.cfg names."""
    path = posixpath.normpath(posixpath.join(source.folder, reference))
    readable = "://" not in reference and not posixpath.isabs(reference) and reference.isprintable()
    if source.sibling is None or not readable:
        raise source.error("cannot be followed. Name a file by a relative path.", line, number)
    if source.depth >= DEEPEST:
        raise source.error("is nested too deeply, or the files include each other. Remove the line.", line, number)
    try:
        content = source.sibling(path)
    except OSError as error:
        raise source.error(f"names a file that cannot be read: {error.strerror}.", line, number) from None
    except SteleError as error:
        raise source.error(f"names a file that cannot be read: {error}", line, number) from None
    file = posixpath.normpath(posixpath.join(posixpath.dirname(source.file), reference))
    source.notes.included.setdefault(file, "-c" if line.startswith(("-c", "--c")) else "-r")
    nested = dataclasses.replace(source, file=file, folder=posixpath.dirname(path), depth=source.depth + 1)
    return read_requirements(nested, content)


def is_requirements(content: str, names: re.Pattern[str]) -> bool:
    """Return whether every line could be one of a requirements file, and one of them shows that it is one.

    That is a line with an include, a version or a URL, or with one of these ``names``: a list of words is none.
    """
    if not SHOWN.search(content) and not any(names.fullmatch(line.strip()) for line in content.splitlines()):
        return False
    shown = False
    for _, line in logical_lines(content):
        if INCLUDE.fullmatch(line):
            shown = True
        elif LOCAL.match(line):
            continue
        elif line.startswith("-"):
            if any(name not in (*WITH_VALUE, *ALONE, *IGNORED) for name, _ in options_of(line)):
                return False
        else:
            try:
                requirement = parse_requirement(with_name(without_hashes(line)))
            except (ValueError, RecursionError):
                return False
            named = names.fullmatch(canonicalize_name(requirement.name))
            shown = shown or bool(requirement.specifier or requirement.url or named)
    return shown
