"""The candidates of a bisection: the releases between two releases, or the steps between two lock files."""

from collections.abc import Iterable

from stele import environments
from stele.environments import Environment, builds
from stele.errors import SteleError
from stele.releases import frameworks, index, ledger
from stele.text import unknown_message


def check(framework: str, *releases: str) -> None:
    """Raise SteleError, with the nearest name, if the framework is not followed, or the releases are no range of it."""
    frameworks.environment_of(framework)
    if releases:
        ledger.span("..".join(tags_of(framework, releases)))


def tags_of(framework: str, releases: Iterable[str]) -> list[str]:
    return [name if name.startswith(f"{framework}-") else ledger.tag(framework, name) for name in releases]


def select_releases(framework: str, good: str, bad: str) -> dict[str, Environment]:
    """Return the environments of the releases from ``good`` to ``bad``, such as 0.9.2, by tag.

    Raises SteleError, with the nearest name, if one of them is not a release.
    """
    frameworks.environment_of(framework)
    ends = tags_of(framework, (good, bad))
    tags = [ends[0], *ledger.span("..".join(ends))]
    return {tag: frameworks.release_environment(tag, ledger.content(tag)) for tag in tags}


def select_requirements(package: str, good: str, bad: str) -> list[str]:
    """Return ``package==version`` for the releases from ``good`` to ``bad``, the oldest first.

    Raises SteleError, with the nearest, if the index has no such release, or if BAD is not later than GOOD.
    """
    versions = [release.version for release in index.releases(package)]
    for version in (good, bad):
        if version not in versions:
            raise SteleError(unknown_message("release", version, versions))
    chosen = versions[versions.index(good) : versions.index(bad) + 1]
    if len(chosen) < 2:
        raise SteleError(f"{bad} is not later than {good}. Name the good release first.")
    return [f"{package}=={version}" for version in chosen]


def step_through_pins(framework: str, good: str, bad: str) -> dict[str, Environment]:
    """Return environments that lead from the lock of ``good`` to that of ``bad``, one package at a time.

    ``good`` and ``bad`` are requirements. Raises SteleError if they do not resolve, or resolve to the same packages.
    """
    environment = frameworks.environment_of(framework)
    packages, target = (locked_packages(environment, text, framework) for text in (good, bad))
    differing = [name for name in {**packages, **target} if packages.get(name) != target.get(name)]
    if not differing:
        raise SteleError(f"{good} and {bad} resolve to the same packages.")
    candidates = {"all as in GOOD": pin_all(environment, packages)}
    # dependencies change before the packages that need them: the framework itself is the last
    for name in sorted(differing, key=lambda name: (name == frameworks.package(environment), name)):
        step = f"{name} {packages.pop(name, 'none')} to {target.get(name, 'none')}"
        packages |= {name: target[name]} if name in target else {}
        candidates[step] = pin_all(environment, packages)
    return candidates


def locked_packages(environment: Environment, text: str, framework: str) -> dict[str, str]:
    """Return the version of every package to which the requirements resolve."""
    if not any(sign in text for sign in "=<>"):
        text = f"{frameworks.package(environment)}=={text.removeprefix(framework + '-')}"
    pinned = environments.load(f"{environment.name}@{text}")
    builds.resolve(pinned, builds.require_interpreter(pinned), fresh=True)
    return environments.locked_versions(pinned)


def pin_all(environment: Environment, packages: dict[str, str]) -> Environment:
    text = " ".join(f"{name}=={version}" for name, version in packages.items())
    return environments.load(f"{environment.name}@{text}")
