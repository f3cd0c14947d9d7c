"""The candidates of a bisection: the releases between two releases, or the steps between two lock files."""

import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from stele import environments
from stele.environments import Environment, arms, builds, lockfiles, revisions
from stele.environments.arms import Extras, Needs
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


class Pins(NamedTuple):
    """The packages of two lock files, between which a bisection changes one after the other."""

    good: dict[str, str]  # version by package
    bad: dict[str, str]
    last: str  # the package that changes last: those that it needs come before it
    load: Callable[[str], Environment]  # the environment of ``package==version`` for all packages

    @property
    def steps(self) -> dict[str, str]:
        """The packages that differ, by what changes: ``numpy 1.26.4 to 2.0.0``."""
        names = [name for name in {**self.good, **self.bad} if self.good.get(name) != self.bad.get(name)]
        in_order = sorted(names, key=lambda name: (name == self.last, name))
        return {f"{name} {self.good.get(name, 'none')} to {self.bad.get(name, 'none')}": name for name in in_order}

    def environment(self, steps: Iterable[str]) -> Environment:
        """Return the environment of GOOD in which only some packages are those of BAD."""
        changed = [self.steps[step] for step in steps]
        packages = {
            **{name: version for name, version in self.good.items() if name not in changed},
            **{name: self.bad[name] for name in changed if name in self.bad},
        }
        return self.load(" ".join(f"{name}=={version}" for name, version in packages.items()))

    def candidates(self) -> dict[str, Environment]:
        """Return environments that lead from GOOD to BAD, one package at a time."""
        steps = list(self.steps)
        return {
            "all as in GOOD": self.environment(()),
            **{step: self.environment(steps[: number + 1]) for number, step in enumerate(steps)},
        }


def pins_of_framework(framework: str, good: str, bad: str) -> Pins:
    """Return the pins to which two requirements resolve in the environment of a framework.

    Raises SteleError if they do not resolve, or resolve to the same packages.
    """
    environment = frameworks.environment_of(framework)
    packages, target = (locked_packages(environment, text, framework) for text in (good, bad))
    load = functools.partial(load_pins, environment)
    return checked(Pins(packages, target, frameworks.package(environment), load), good, bad)


def pins_of_code(package: str, good: str, bad: str, needs: Needs, extras: Extras) -> Pins:
    """Return the pins of two arms of the user's code, such as two lock files.

    Raises SteleError if they do not resolve, or resolve to the same packages.
    """

    def versions(text: str) -> dict[str, str]:
        is_version = not any(sign in text for sign in "=<>") and not names_file(text)
        arm = arms.load(f"{package}=={text}" if is_version else text, needs, extras)
        if arm.lock is None:
            raise SteleError(
                f"--pins needs requirements or lock files, and {text} is an environment that exists already."
            )
        builds.resolve(arm, builds.require_interpreter(arm), fresh=True)
        return environments.locked_versions(arm)

    alone = extras._replace(requirements=())  # all packages are in the pins
    load = functools.partial(arms.load, needs=needs, extras=alone)
    return checked(Pins(versions(good), versions(bad), package, load), good, bad)


def names_file(text: str) -> bool:
    return lockfiles.is_lockfile(str(revisions.split(text)[0]))


def checked(pins: Pins, good: str, bad: str) -> Pins:
    if not pins.steps:
        raise SteleError(f"{good} and {bad} resolve to the same packages.")
    return pins


def locked_packages(environment: Environment, text: str, framework: str) -> dict[str, str]:
    """Return the version of every package to which the requirements resolve."""
    if not any(sign in text for sign in "=<>"):
        text = f"{frameworks.package(environment)}=={text.removeprefix(framework + '-')}"
    pinned = environments.load(f"{environment.name}@{text}")
    builds.resolve(pinned, builds.require_interpreter(pinned), fresh=True)
    return environments.locked_versions(pinned)


def load_pins(environment: Environment, text: str) -> Environment:
    return environments.load(f"{environment.name}@{text}")
