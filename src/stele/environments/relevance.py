"""In which order packages that differ are shown: those that most often change what a model computes come first."""

import json
import subprocess
from collections.abc import Collection, Iterable

from packaging.utils import canonicalize_name

from stele.environments import builds, probe
from stele.environments.environment import MODULE, Environment
from stele.environments.packages import Difference
from stele.errors import SteleError

# libraries that compute for a framework, beside those that --changed gates
COMPANIONS = ("numpy", "scipy", "ml-dtypes", "triton", "opt-einsum", "tf-keras")
COMPILED = ("nvidia-", "jax-cuda", "intel-", "mkl", "onednn")  # libraries of a device or a processor
TIMEOUT = 60.0  # seconds for an interpreter to read the requirements

REQUIREMENTS = """
import json, re, sys
from importlib.metadata import PackageNotFoundError, requires
found = set()
for name in sys.argv[1:]:
    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        continue
    found.update(re.match(r"[\\w.-]+", line).group() for line in lines if "extra ==" not in line)
print()
print(json.dumps(sorted(found)))
"""


def by_relevance(pairs: Iterable[Difference], frameworks: Collection[str], needed: Collection[str]) -> list[Difference]:
    """Return the packages in order: frameworks and their companions, then those ``needed``, then the others.

    Of each kind, those with another major version come first.
    """

    def key(pair: Difference) -> tuple[int, bool, str]:
        if pair.name in (*frameworks, *COMPANIONS) or pair.name.startswith(COMPILED):
            rank = 0
        else:
            rank = 1 if pair.name in needed else 2
        return rank, major(pair.old) == major(pair.new), pair.name

    return sorted(pairs, key=key)


def major(version: str | None) -> str | None:
    return version and version.partition(".")[0]


def needed_by(names: Iterable[str], environment: Environment) -> set[str]:
    """Return the packages that these need directly, as the environment's interpreter knows. Empty if it does not."""
    try:
        interpreter, *arguments = builds.command(environment)
        if tuple(arguments) != MODULE:
            return set()
        done = probe.run([interpreter, "-I", "-c", REQUIREMENTS, *sorted(names)], timeout=TIMEOUT)
        return {canonicalize_name(name) for name in json.loads(done.stdout.splitlines()[-1])}
    except (SteleError, OSError, ValueError, LookupError, subprocess.SubprocessError):
        return set()
