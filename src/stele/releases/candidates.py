"""What a bisection chooses from: the releases from one to another, or the way from one lock to another."""

from stele import environments
from stele.environments import Environment, builds
from stele.errors import SteleError
from stele.releases import frameworks, ledger


def released(framework: str, good: str, bad: str) -> dict[str, Environment]:
    """The releases from ``good`` to ``bad``, such as 0.9.2, by tag. Raises SteleError, with the nearest, if one is
    none."""
    frameworks.row(framework)
    ends = [end if end.startswith(f"{framework}-") else ledger.tag(framework, end) for end in (good, bad)]
    tags = [ends[0], *ledger.span("..".join(ends))]
    return {tag: frameworks.environment(tag, ledger.content(tag)) for tag in tags}


def pinned(framework: str, good: str, bad: str) -> dict[str, Environment]:
    """From the lock of ``good`` to that of ``bad``, both requirements, one more package of the latter at a time.

    Raises SteleError where they do not resolve, or do to the same.
    """
    row = frameworks.row(framework)
    packages, wanted = (locked(row, text, framework) for text in (good, bad))
    differing = [name for name in {**packages, **wanted} if packages.get(name) != wanted.get(name)]
    if not differing:
        raise SteleError(f"{good} and {bad} resolve to the same packages.")
    rows = {"all as in GOOD": exactly(row, packages)}
    # what others depend on comes before them: the framework itself is the last
    for name in sorted(differing, key=lambda name: (name == frameworks.package(row), name)):
        step = f"{name} {packages.pop(name, 'none')} to {wanted.get(name, 'none')}"
        packages |= {name: wanted[name]} if name in wanted else {}
        rows[step] = exactly(row, packages)
    return rows


def locked(row: Environment, text: str, framework: str) -> dict[str, str]:
    """Every package that requirements resolve to, with its version."""
    if not any(sign in text for sign in "=<>"):
        text = f"{frameworks.package(row)}=={text.removeprefix(framework + '-')}"
    found = environments.load(f"{row.name}@{text}")
    builds.resolve(found, builds.interpreter_of(found))
    return environments.locked(found)


def exactly(row: Environment, packages: dict[str, str]) -> Environment:
    text = " ".join(f"{name}=={version}" for name, version in packages.items())
    return environments.load(f"{row.name}@{text}")
