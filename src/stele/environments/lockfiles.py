"""Read the packages that a lock file, a requirements file or a pyproject.toml names. Nothing in it is executed.

    requirements                *.txt, and *.lock files of pip-compile and uv pip compile; -r and -c are followed
    pylock                      pylock.toml and pylock.<name>.toml (PEP 751)
    uv, poetry, pdm, pipfile    the lock files of these programs, without optional groups and extras
    conda                       environment.yml; packages that only conda has are left out
    pyproject                   the dependencies of a project

The project itself and packages in local folders are left out. Markers are kept for uv, which evaluates them.
"""

import ast
import dataclasses
import json
import posixpath
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import platform_tags
from packaging.utils import canonicalize_name, canonicalize_version, parse_wheel_filename

from stele.errors import SteleError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUFFIXES = (".txt", ".lock", ".toml", ".yml", ".yaml")
KINDS = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "pdm.lock": "pdm",
    "Pipfile.lock": "pipfile",
    "pyproject.toml": "pyproject",
    "pylock.toml": "pylock",
}
CONTENTS = (  # a kind, and a pattern that only its files contain; the first match decides
    ("pipfile", r"\A\s*\{"),
    ("pylock", r"^\[\[packages\]\]"),
    ("pdm", r"^lock_version\s*="),
    ("poetry", r"^python-versions\s*="),
    ("uv", r"^\[\[package\]\]"),
    ("pyproject", r"^\[(project|tool|build-system|dependency-groups)\b"),
)
# what a repository calls its files of packages, beside KINDS
CONVENTIONAL = r"pylock\..+\.toml|(.*[-_.])?(requirements|constraints)([-_.].*)?\.txt|environment.*\.ya?ml"
ADVICE = "Regenerate the file with the program that wrote it"
MOST_CONDITIONS = 16  # ways to need a package; a package with more is required unconditionally
DEEPEST = 20  # collections of a YAML file in one another, and files that include one another with -r

RENAMED = {  # conda's name: PyPI's name
    "pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch", "torchtriton": "triton",
    "pyg": "torch-geometric", "pytorch-scatter": "torch-scatter", "pytorch-sparse": "torch-sparse",
    "tensorflow-cpu": "tensorflow", "tensorflow-gpu": "tensorflow", "opencv": "opencv-python",
    "py-opencv": "opencv-python", "matplotlib-base": "matplotlib", "seaborn-base": "seaborn",
    "dask-core": "dask", "pytables": "tables", "msgpack-python": "msgpack", "brotli-python": "brotli",
    "brotlipy": "brotli", "python-tzdata": "tzdata", "python-xxhash": "xxhash", "python-graphviz": "graphviz",
    "python-flatbuffers": "flatbuffers", "pyarrow-core": "pyarrow", "py-xgboost": "xgboost",
}  # fmt: skip
CONDA_ONLY = re.compile(
    r"_.*|lib(?!rosa$|sass$|cst$).*|lib|cuda(-.+|toolkit)?|cudnn|nccl|cutensor|magma.*|mkl.*|blas.*|openblas.*"
    r"|nomkl|tbb|intel-openmp|llvm-openmp|openmpi|mpich|mpi|ucx|openssl|ca-certificates|certifi-win32|ld_impl.*"
    r"|binutils.*|gcc.*|gxx.*|gfortran.*|clang.*|compilers|c-compiler|cxx-compiler|make|cmake|sysroot.*|kernel.*"
    r"|python_abi|pytorch-(cuda|mutex)|tensorflow-base|numpy-base|tzdata|bzip2|zlib.*|xz.*|zstd|lz4-c|snappy|lerc"
    r"|readline|ncurses|sqlite|tk|expat|icu|gettext|glib.*|gmp|mpfr|mpc|gnutls|nettle|lame|x264|aom|svt-av1|dav1d"
    r"|openh264|openjpeg|jpeg|giflib|lcms2|freetype|fontconfig|harfbuzz|cairo|pango|pixman|ffmpeg|graphviz|hdf5"
    r"|krb5|c-ares|nspr|nss|curl|git|pandoc|nodejs|yaml|abseil-cpp|re2|orc|arrow-cpp|aws-.*|s2n|gflags|glog|xorg-.*"
    r"|qt.*-main|conda|mamba|micromamba"
)
CONDA_LINE = re.compile(r"(?:\S+::)?([A-Za-z0-9_.-]+) ?([=!<>~].*|(?<= )[\d*].*)?")
CONDA_VERSION = re.compile(r"(==?|) ?((?:\d+!)?[^=<>!~, ]+)(?:[= ](\S+))?")

Value = TypeVar("Value", str, list[Any], dict[str, Any])
Node = TypeVar("Node", bound=Hashable)
Table = dict[str, Any]
Lines = list[str]
Edges = list[tuple[str, str]]  # (package, marker)
Conditions = frozenset[frozenset[str]]  # alternatives; each is a set of markers that must all hold


class Locked(NamedTuple):
    """PEP 508 lines, the Python versions that the file states, its kind, and the lines of its -c files."""

    requirements: tuple[str, ...]
    python: str | None
    kind: str
    constraints: tuple[str, ...] = ()


def is_lockfile(text: str) -> bool:
    """Return whether an argument names a file that ``read`` reads, also as FILE@REVISION. Only the name counts."""
    parts = text.split("@")
    names = ["@".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return any(PurePath(name).suffix in SUFFIXES and not re.search(r"[=<>~!]=", name) for name in names)


def is_conventional(path: str) -> bool:
    """Return whether a file of a repository holds its packages, by its name or its folder requirements/."""
    name, folder = PurePath(path).name, PurePath(path).parent.name
    in_folder = folder == "requirements" and name.endswith(".txt")
    return in_folder or name in KINDS or re.fullmatch(CONVENTIONAL, name) is not None


def read(
    name: str, content: str, sibling: Callable[[str], str] | None = None, *, allow_vcs: bool = False
) -> Locked:
    """Return the packages in the file called ``name``.

    ``sibling`` returns the text of a file by its path relative to the folder of ``name``; -r and -c need it. Raises
    SteleError, with the name and the line, if the content is not understood or names no package, if it has installer
    options, if it pins one package twice, or if it has a URL and ``allow_vcs`` is not set.
    """
    locked = parse(Source(name, sibling, allow_vcs), content)
    if not locked.requirements:
        raise SteleError(
            f"{name} names no package. Name a file that lists the framework, such as torch==2.13.0."
        )
    check_pins(name, [*locked.requirements, *locked.constraints])
    return locked


def exact_pins(name: str, content: str, sibling: Callable[[str], str] | None = None) -> dict[str, str]:
    """Return the exact pins that apply on this machine by canonical name. Installer options and URLs are skipped."""
    locked = parse(Source(name, sibling, lenient=True), content)
    lines = [*locked.requirements, *locked.constraints]
    applicable = [line for line in lines if pinned_version(line) and applies(Requirement(line))]
    check_pins(name, [line.partition(";")[0] for line in applicable])
    return {canonicalize_name(Requirement(line).name): pinned_version(line) or "" for line in applicable}


def pinned_version(requirement: str) -> str | None:
    """Return "2.13.0" of "torch==2.13.0", or None for a range or a URL."""
    parts = Requirement(requirement).specifier
    versions = [part.version for part in parts if part.operator in ("==", "===")]
    return next((version for version in versions if not version.endswith(".*")), None)


def applies(requirement: Requirement) -> bool:
    """Return whether the marker holds for the interpreter of this process; True if that cannot be evaluated."""
    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    except ValueError:
        return True


def check_pins(name: str, lines: Iterable[str]) -> None:
    """Raise SteleError, with both lines, if a package has two different pins under the same marker."""
    seen: dict[tuple[str, str], str] = {}
    for line in lines:
        requirement, version = Requirement(line), pinned_version(line)
        if version is None:
            continue
        earlier = seen.setdefault((canonicalize_name(requirement.name), str(requirement.marker)), line)
        if canonicalize_version(pinned_version(earlier) or "") != canonicalize_version(version):
            raise SteleError(
                f"{name} pins {requirement.name} twice: {earlier!r} and {line!r}. Keep one of them."
            )


@dataclasses.dataclass(frozen=True)
class Source:
    """The file being read, and what it may contain."""

    file: str
    sibling: Callable[[str], str] | None = None
    allow_vcs: bool = False
    lenient: bool = False  # skip installer options and URLs instead of refusing them
    folder: str = ""  # of an included file, relative to the folder of the first file
    depth: int = 0  # of the -r and -c that lead to this file

    def error(self, problem: str, line: str | None = None, number: int | None = None) -> SteleError:
        """Return an error with the file, the line and the problem."""
        place = self.file if number is None else f"{self.file}, line {number}"
        return SteleError(f"{place}: {problem}" if line is None else f"{place}: {shorten(line)} {problem}")

    def get(self, table: Table, key: str, kind: type[Value]) -> Value:
        """Return a value of a table, or an empty one if there is none. Raises SteleError if its type is different."""
        value = table.get(key)
        if value is not None and not isinstance(value, kind):
            actual = type(value).__name__
            raise self.error(f"{shorten(key)} must be of type {kind.__name__}, but it is {actual}. {ADVICE}.")
        return kind() if value is None else value

    def items(self, table: Table, key: str, kind: type[Value]) -> list[Value]:
        """Return a list of values of one type, empty if there is none."""
        return [self.get({key: item}, key, kind) for item in self.get(table, key, list)]

    def requirement(self, line: str, number: int | None = None) -> Lines:
        """Return the normalized requirement as a list, which is empty if it is skipped."""
        try:
            requirement = Requirement(with_name(" ".join(line.split())))
            platforms = wheel_platforms(requirement.url or "")
        except (ValueError, RecursionError):
            raise self.error("is not a requirement such as torch==2.13.0.", line, number) from None
        if requirement.url and self.lenient:
            return []
        if requirement.url and not self.allow_vcs:
            raise self.error("is installed from a URL. Pass --allow-vcs to allow this.", line, number)
        if platforms and platforms.isdisjoint({"any", *platform_tags()}):
            problem = (
                f"is a wheel for {' and '.join(sorted(platforms))}, not for this machine. Pin the release."
            )
            raise self.error(problem, line, number)
        return [str(requirement)]

    def pin(
        self, name: str, version: str, marker: str = "", *, url: str = "", groups: Iterable[str] = ()
    ) -> Lines:
        """Return the requirement of one locked package as a list, which is empty if only an extra needs it."""
        needed = main_marker(marker, groups)
        text = f"{name} @ {url}" if url else f"{name}=={version}" if version else name
        return [] if needed is None else self.requirement(f"{text} ; {needed}" if needed else text)


def shorten(line: str) -> str:
    """Return the quoted start of a line."""
    return repr(line if len(line) <= 120 else line[:117] + "...")


def wheel_platforms(url: str) -> set[str]:
    """Return the platforms of the wheel at a URL, empty if it is not a wheel. Raises ValueError if it is not valid."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    return {tag.platform for tag in parse_wheel_filename(name)[3]} if name.endswith(".whl") else set()


def parse(source: Source, content: str) -> Locked:
    """Return the packages in a file, which may be none."""
    kind = kind_of(source.file, content)
    if kind == "requirements":
        requirements, constraints = read_requirements(source, content)
        version = re.search(
            r"^#.*?(?:pip-compile with Python |--python-version[ =])(\d+\.\d+)", content, re.M
        )
        return Locked(
            unique(requirements), f"=={version[1]}.*" if version else None, kind, unique(constraints)
        )
    try:
        requirements, python = READERS[kind](source, load(source, kind, content))
        # any patch release of a Python serves: the packages are built for the minor release
        python = re.sub(r"==\s*(\d+\.\d+)(\.\d+)?\s*(?=,|$)", r"==\1.*", python)
        return Locked(unique(requirements), str(SpecifierSet(python)) or None, kind)
    except (ValueError, RecursionError) as error:
        raise source.error(f"cannot be understood: {shorten(str(error))}. {ADVICE}.") from None


def unique(lines: Lines) -> tuple[str, ...]:
    """Return the lines without repetitions."""
    return tuple(dict.fromkeys(lines))


def kind_of(name: str, content: str) -> str:
    """Return the kind of a file by its name or, if the name leaves it open, by its content."""
    path = PurePath(name)
    if path.name in KINDS:
        return KINDS[path.name]
    if path.suffix in (".lock", ".toml"):
        kinds = [kind for kind, pattern in CONTENTS if re.search(pattern, content, re.M)]
        return [*kinds, "pylock" if path.suffix == ".toml" else "requirements"][0]
    if path.suffix not in SUFFIXES:
        raise SteleError(f"{name} is not a supported lock file. Supported: {', '.join(KINDS)}, *.txt, *.yml.")
    return "requirements" if path.suffix == ".txt" else "conda"


def load(source: Source, kind: str, content: str) -> Table:
    """Return the content of a TOML, JSON or YAML file. Raises SteleError, with the place, if it is not valid."""
    try:
        if kind == "conda":
            data = load_yaml(source, content)
        else:
            data = json.loads(content) if kind == "pipfile" else tomllib.loads(content)
    # the constructors of YAML raise more than YAMLError, for instance KeyError for "!!bool perhaps"
    except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise source.error(f"cannot be parsed: {' '.join(str(error).split())[:300]}. {ADVICE}.") from None
    except RecursionError:
        raise source.error(f"cannot be parsed: it is nested too deeply. {ADVICE}.") from None
    return source.get({"the content": data}, "the content", dict)


def load_yaml(source: Source, content: str) -> Any:
    """Return the content of a YAML file.

    Aliases and deep nesting are refused, because a short file with them can take all memory or many minutes.
    """
    depth = 0
    for event in yaml.parse(content, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            number = event.start_mark.line + 1 if event.start_mark else None
            raise source.error(
                f"the YAML alias '*{event.anchor}' is not supported. Write the value.", None, number
            )
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise RecursionError
    return yaml.safe_load(content)


# requirements

INCLUDE = re.compile(r"(?:(-[rc])[\s=]*|(--requirement|--constraint)(?:\s+|\s*=\s*))(\S.*)")


def read_requirements(source: Source, content: str) -> tuple[Lines, Lines]:
    """Return the requirements and the constraints of a requirements file and of the files that it includes."""
    requirements: Lines = []
    constraints: Lines = []
    for number, line in logical_lines(content):
        include = INCLUDE.fullmatch(line)
        if include:
            more = included(source, include[3], line, number)
            constraints += more[1]
            (requirements if include[1] == "-r" or include[2] == "--requirement" else constraints).extend(
                more[0]
            )
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


def with_name(line: str) -> str:
    """Return "name @ URL" for a bare URL, with the name in the name of the wheel or after #egg=."""
    if not re.match(r"[A-Za-z+]+://", line):
        return line
    name = re.search(r"/([\w.]+)-[^/]+\.whl\b|[#&]egg=([\w.-]+)", line)
    return f"{name[1] or name[2]} @ {line}" if name else line


def refuse_option(source: Source, line: str, number: int) -> None:
    """Raise SteleError for a line that is an installer option or a local path."""
    if source.lenient:
        return
    if re.match(r"-e|--editable|[./]", line):
        raise source.error("is a local or editable package. Remove it and pass --with-project.", line, number)
    advice = "Remove it. To use a different index, set UV_INDEX or UV_DEFAULT_INDEX for uv."
    raise source.error(f"is an installer option, which is not supported. {advice}", line, number)


def included(source: Source, reference: str, line: str, number: int) -> tuple[Lines, Lines]:
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


# markers


def main_marker(marker: str, groups: Iterable[str] = ()) -> str | None:
    """Return the marker for an installation with these groups and without extras.

    It is empty if it always holds, and None if it never does.
    """
    if not re.search(r"\b(extras?|dependency_groups)\b", marker):
        return marker
    try:
        value = decide(ast.parse(marker.strip(), mode="eval").body, set(groups))
    except (SyntaxError, MemoryError):
        return marker  # the requirement with it is refused, with a message
    if isinstance(value, bool):
        return "" if value else None
    return ast.unparse(value)


def decide(node: ast.expr, groups: set[str]) -> ast.expr | bool:
    """Return a marker with every condition on extras and groups decided. A marker is a Python expression."""
    if isinstance(node, ast.BoolOp):
        decisive = isinstance(node.op, ast.Or)
        values = [decide(value, groups) for value in node.values]
        rest = [value for value in values if not isinstance(value, bool)]
        if decisive in values:
            return decisive
        return ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0] if rest else not decisive
    words = set(re.findall(r"\w[\w.-]*", ast.unparse(node)))
    if not words & {"extra", "extras", "dependency_groups"} or not isinstance(node, ast.Compare):
        return node
    holds = "dependency_groups" in words and bool(words & groups)
    return holds is not isinstance(node.ops[0], (ast.NotEq, ast.NotIn))


def conditions(
    roots: Iterable[Node], edges: Callable[[Node], Iterable[tuple[Node, str]]]
) -> dict[Node, Conditions]:
    """Return under which markers each node is needed, for a graph whose edges (target, marker) have markers."""
    always: Conditions = frozenset([frozenset()])
    needed = dict.fromkeys(roots, always)
    queue = list(needed)
    while queue:
        node = queue.pop()
        for target, marker in edges(node):
            earlier = needed.get(target, frozenset())
            paths = earlier | {path | {marker} if marker else path for path in needed[node]}
            least = frozenset(path for path in paths if not any(other < path for other in paths))
            needed[target] = least if len(least) <= MOST_CONDITIONS else always
            if needed[target] != earlier:
                queue.append(target)
    return needed


def marker_of(paths: Conditions) -> str:
    """Return the conditions as one marker, empty if one of them always holds."""
    return any_of(
        " and ".join(f"({marker})" for marker in sorted(path)) for path in sorted(paths, key=sorted)
    )


def any_of(markers: Iterable[str]) -> str:
    """Return the disjunction of markers, empty if one is empty or if there are none."""
    markers = list(markers)
    if len(markers) < 2 or not all(markers):
        return "" if "" in markers else "".join(markers)
    return " or ".join(f"({marker})" for marker in markers)


def inherited_markers(dependencies: dict[str, Edges]) -> dict[str, str]:
    """Return the marker of each package in a lock file that states markers only where a package is needed."""
    targets = {target for edges in dependencies.values() for target, _ in edges}
    roots = [name for name in dependencies if name not in targets]
    needed = conditions(roots, lambda name: dependencies.get(name, []))
    return {name: marker_of(needed[name]) if name in needed else "" for name in dependencies}


# lock files in TOML and JSON


def read_uv(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages that the members of a workspace need. Each package has the markers of its dependents."""
    packages = source.items(data, "package", dict)
    origins = [source.get(package, "source", dict) for package in packages]
    indices = defaultdict(list)
    for index, package in enumerate(packages):
        indices[source.get(package, "name", str)].append(index)

    def targets(edge: Table) -> Iterator[tuple[int, str]]:
        for index in indices[source.get(edge, "name", str)]:
            if all(edge[key] == packages[index].get(key) for key in ("version", "source") if key in edge):
                yield from ((index, extra) for extra in ("", *source.items(edge, "extra", str)))

    def edges(node: tuple[int, str]) -> Iterator[tuple[tuple[int, str], str]]:
        index, extra = node
        table = source.get(packages[index], "optional-dependencies", dict) if extra else packages[index]
        for edge in source.items(table, extra or "dependencies", dict):
            marker = main_marker(source.get(edge, "marker", str))
            yield from ((target, marker) for target in targets(edge) if marker is not None)

    roots = [(index, "") for index, origin in enumerate(origins) if origin.keys() & {"editable", "virtual"}]
    script = source.items(
        source.get(data, "manifest", dict), "requirements", dict
    )  # of a script with a lock file
    roots = roots or [target for entry in script for target in targets({"name": entry.get("name")})]
    needed = conditions(roots or [(index, "") for index in range(len(packages))], edges)
    lines: Lines = []
    for index, (package, origin) in enumerate(zip(packages, origins, strict=True)):
        if (index, "") in needed and not origin.keys() & {"editable", "virtual", "directory", "path"}:
            forks = any_of(source.items(package, "resolution-markers", str))
            markers = [f"({marker})" for marker in (marker_of(needed[index, ""]), forks) if marker]
            name, version = source.get(package, "name", str), source.get(package, "version", str)
            lines += source.pin(name, version, " and ".join(markers), url=uv_url(source, origin))
    return lines, source.get(data, "requires-python", str)


def uv_url(source: Source, origin: Table) -> str:
    """Return the URL of a package that does not come from an index, or an empty text."""
    url, _, commit = source.get(origin, "git", str).partition("#")
    return f"git+{url.partition('?')[0]}@{commit}" if url else source.get(origin, "url", str)


def read_pylock(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages of the default groups in a pylock.toml."""
    groups = source.items(data, "default-groups", str)
    lines: Lines = []
    for package in source.items(data, "packages", dict):
        vcs, archive = source.get(package, "vcs", dict), source.get(package, "archive", dict)
        url = source.get(vcs or archive, "url", str)
        if vcs and url:
            url = f"{source.get(vcs, 'type', str)}+{url}@{source.get(vcs, 'commit-id', str)}"
        if "directory" in package or ((vcs or archive) and not url):
            continue
        name, version = source.get(package, "name", str), source.get(package, "version", str)
        lines += source.pin(name, version, source.get(package, "marker", str), url=url, groups=groups)
    return lines, source.get(data, "requires-python", str)


def read_poetry(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages of the group main in a poetry.lock. Only its versions from 2.1 on state markers."""
    packages = [package for package in source.items(data, "package", dict) if is_main(source, package)]
    edges: dict[str, Edges] = {
        canonicalize_name(source.get(package, "name", str)): poetry_edges(source, package)
        for package in packages
    }
    inherited = inherited_markers(edges)
    states_markers = any("groups" in package for package in packages)
    lines: Lines = []
    for package in packages:
        name, version = source.get(package, "name", str), source.get(package, "version", str)
        markers = package.get("markers")
        table = markers if isinstance(markers, dict) else {"main": markers}
        marker = source.get(table, "main", str) if states_markers else inherited[canonicalize_name(name)]
        origin = source.get(package, "source", dict)
        if source.get(origin, "type", str) not in ("directory", "file"):
            lines += source.pin(name, version, marker, url=poetry_url(source, origin))
    python = source.get(source.get(data, "metadata", dict), "python-versions", str)
    return lines, poetry_specifier(python)


def is_main(source: Source, package: Table) -> bool:
    """Return whether a package of a poetry.lock belongs to the group main and to no extra."""
    groups = source.items(package, "groups", str) or [source.get(package, "category", str) or "main"]
    return "main" in groups and package.get("optional") is not True


def poetry_edges(source: Source, package: Table) -> Edges:
    """Return (name, marker) of each dependency. One of an extra has no marker: the lock file has it if it is used."""
    edges: Edges = []
    for name, value in source.get(package, "dependencies", dict).items():
        for item in value if isinstance(value, list) else [value]:
            table = item if isinstance(item, dict) else {}
            marker = "" if table.get("optional") else source.get(table, "markers", str)
            edges.append((canonicalize_name(name), marker))
    return edges


def poetry_url(source: Source, origin: Table) -> str:
    """Return the URL of a package that does not come from an index, or an empty text."""
    url, kind = source.get(origin, "url", str), source.get(origin, "type", str)
    if kind == "git":
        return f"git+{url}@{source.get(origin, 'resolved_reference', str)}"
    return url if kind == "url" else ""


def poetry_specifier(text: str) -> str:
    """Return Poetry's notation of versions as a PEP 440 specifier. Of alternatives (||), it is the last."""
    parts = [part.strip() for part in text.split("||")[-1].split(",")]
    return ",".join(poetry_clause(part) for part in parts if part not in ("", "*"))


def poetry_clause(part: str) -> str:
    """Return ">=3.10,<4" for "^3.10", ">=3.10,<3.11" for "~3.10", "==3.10" for "3.10"."""
    match = re.fullmatch(r"([\^~])\s*(\d{1,9}(?:\.\d{1,9})*)", part)
    if match is None:
        return f"=={part}" if part[0].isdigit() else part
    numbers = [int(number) for number in match[2].split(".")]
    first = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
    last = first if match[1] == "^" else min(1, len(numbers) - 1)
    upper = [*numbers[:last], numbers[last] + 1]
    return f">={match[2]},<{'.'.join(map(str, upper))}"


def read_pdm(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages of the group default in a pdm.lock."""
    packages = [
        package
        for package in source.items(data, "package", dict)
        if "default" in (source.items(package, "groups", str) or ["default"])
    ]
    edges: dict[str, Edges] = defaultdict(list)
    for package in packages:
        needs = [Requirement(line) for line in source.items(package, "dependencies", str)]
        edges[canonicalize_name(source.get(package, "name", str))] += [
            (canonicalize_name(need.name), str(need.marker or "")) for need in needs
        ]
    inherited = {} if any("groups" in package for package in packages) else inherited_markers(edges)
    lines: Lines = []
    for package in packages:
        name, version = source.get(package, "name", str), source.get(package, "version", str)
        git, url = source.get(package, "git", str), source.get(package, "url", str)
        url = f"git+{git}@{source.get(package, 'revision', str)}" if git else url
        if not package.keys() & {"path", "editable"}:
            marker = source.get(package, "marker", str) or inherited.get(canonicalize_name(name), "")
            lines += source.pin(name, version, marker, url=url)
    targets = source.items(source.get(data, "metadata", dict), "targets", dict)
    return lines, source.get(targets[0], "requires_python", str) if len(targets) == 1 else ""


def read_pipfile(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the default packages of a Pipfile.lock."""
    lines: Lines = []
    packages = source.get(data, "default", dict)
    for name in packages:
        package = source.get(packages, name, dict)
        if package.keys() & {"path", "editable"}:
            continue
        git, version = source.get(package, "git", str), source.get(package, "version", str)
        url = f"git+{git}@{source.get(package, 'ref', str)}" if git else source.get(package, "file", str)
        version = version.removeprefix("==").replace("*", "")
        lines += source.pin(name, version, source.get(package, "markers", str), url=url)
    requires = source.get(source.get(data, "_meta", dict), "requires", dict)
    full, short = (source.get(requires, key, str) for key in ("python_full_version", "python_version"))
    return lines, f"=={full}" if full else f"=={short}.*" if short else ""


def read_pyproject(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the dependencies of a project, in [project] or in [tool.poetry]."""
    project = source.get(data, "project", dict)
    lines: Lines = []
    for line in source.items(project, "dependencies", str):
        lines += source.requirement(line)
    poetry = source.get(source.get(source.get(data, "tool", dict), "poetry", dict), "dependencies", dict)
    for name, value in poetry.items():
        for item in value if isinstance(value, list) else [value]:
            lines += poetry_dependency(source, name, item) if name != "python" else []
    python = source.get(project, "requires-python", str)
    return lines, python or poetry_specifier(source.get(poetry, "python", str) if "python" in poetry else "")


def poetry_dependency(source: Source, name: str, value: Any) -> Lines:
    """Return the requirement of an entry in [tool.poetry.dependencies]."""
    table = source.get({name: {"version": value} if isinstance(value, str) else value}, name, dict)
    if table.get("optional") is True or "path" in table:
        return []
    extras, git = source.items(table, "extras", str), source.get(table, "git", str)
    reference = next((source.get(table, key, str) for key in ("rev", "tag", "branch") if key in table), "")
    url = f"git+{git}{'@' * bool(reference)}{reference}" if git else source.get(table, "url", str)
    text = name + (f"[{','.join(extras)}]" if extras else "")
    text += f" @ {url}" if url else poetry_specifier(source.get(table, "version", str))
    marker = source.get(table, "markers", str)
    return source.requirement(f"{text} ; {marker}" if marker else text)


# conda


def read_conda(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages of an environment.yml that PyPI has, and its Python version."""
    lines: Lines = []
    python = ""
    for item in source.get(data, "dependencies", list):
        if isinstance(item, dict):
            pip, constraints = read_requirements(source, "\n".join(source.items(item, "pip", str)))
            if constraints:
                raise source.error("-c in its pip section is not supported. Pin these packages in the file.")
            lines += pip
            continue
        line = source.get({"dependencies": item}, "dependencies", str).strip()
        name, specifier = conda_package(source, line)
        if name == "python":
            python = specifier
        elif name:
            lines += source.requirement(name + specifier)
    return lines, python


def conda_package(source: Source, line: str) -> tuple[str, str]:
    """Return the name on PyPI and the PEP 440 specifier. The name is empty if only conda has the package.

    A build without "py" in its name, such as h5eee18b_0, is not of a Python package.
    """
    match = CONDA_LINE.fullmatch(" ".join(line.split()))
    if match is None:
        raise source.error("is not a package such as pytorch=2.3.0.", line)
    name, rest = match[1].lower(), match[2] or ""
    exact = CONDA_VERSION.fullmatch(rest)
    operator, version, build = exact.groups("") if exact else ("", "", "")
    if name != "python" and (CONDA_ONLY.fullmatch(name) or (build and "py" not in build)):
        return "", ""
    # conda reads =2.3 as 2.3.*, and exports =2.3.0 for the release 2.3.0
    partial = operator == "=" and version.count(".") < 2 and not build and not version.endswith("*")
    specifier = f"=={version}{'.*' * partial}" if version.strip("*") else rest.strip("=* ")
    return RENAMED.get(name, name), specifier


READERS: dict[str, Callable[[Source, Table], tuple[Lines, str]]] = {
    "uv": read_uv,
    "pylock": read_pylock,
    "poetry": read_poetry,
    "pdm": read_pdm,
    "pipfile": read_pipfile,
    "pyproject": read_pyproject,
    "conda": read_conda,
}
