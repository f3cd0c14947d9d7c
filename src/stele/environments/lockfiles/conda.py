"""Conda: load environment.yml and read its packages. Those that only conda has are left out."""

import re
from typing import Any

import yaml

from stele.environments.lockfiles.names import RENAMED
from stele.environments.lockfiles.requirements import read_requirements
from stele.environments.lockfiles.source import DEEPEST, Lines, Source, Table

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
NAME = re.compile(r"(?:.*[-_.])?(?:env|environment|conda)(?:[-_.].*)?\.ya?ml", re.I)
CONDA_LINE = re.compile(r"(?:\S+::)?([A-Za-z0-9_.-]+) ?([=!<>~].*|(?<= )[\d*].*)?")
CONDA_VERSION = re.compile(r"(==?|) ?((?:\d+!)?[^=<>!~, ]+)(?:[= ](\S+))?")


def read_conda(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages of an environment.yml that PyPI has, and its Python version."""
    lines: Lines = []
    python = ""
    for item in source.get(data, "dependencies", list):
        if isinstance(item, dict):
            parts = source.items(item, "pip", str)
            for part in parts:
                if len(part.splitlines()) > 1:
                    raise source.error("has several lines. Write one package in each item.", part)
            lines += read_requirements(source, "\n".join(parts))
            continue
        line = source.get({"dependencies": item}, "dependencies", str).strip()
        name, specifier = conda_package(source, line)
        if name == "python":
            python = specifier
        elif name:
            lines += source.requirement(name + specifier)
    return lines, python


def is_conda(name: str, data: Table) -> bool:
    """Return whether a YAML file has the packages of an environment: other files have dependencies, too."""
    items = data.get("dependencies")
    if not isinstance(items, list) or not any(isinstance(item, str) for item in items):
        return False
    if not all(isinstance(item, str) or (isinstance(item, dict) and item.keys() == {"pip"}) for item in items):
        return False
    return "channels" in data or NAME.fullmatch(name) is not None


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


class PlainLoader(yaml.SafeLoader):
    """A loader that refuses aliases and deep nesting: a short file with them can take all memory or many minutes."""

    def __init__(self, source: Source, content: str) -> None:
        super().__init__(content)
        self.source = source
        self.depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next value. Raises SteleError for an alias, and RecursionError if it is nested too deeply."""
        if self.check_event(yaml.AliasEvent):
            event = self.current_event
            number = event.start_mark.line + 1 if event.start_mark else None
            problem = f"the YAML alias '*{event.anchor}' is not supported. Write the value."
            raise self.source.error(problem, None, number)
        if self.depth == DEEPEST and self.check_event(yaml.CollectionStartEvent):
            raise RecursionError
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def load_yaml(source: Source, content: str) -> Any:
    """Return the content of a YAML file of one document. Raises SteleError or RecursionError where PlainLoader does."""
    loader = PlainLoader(source, content)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
