"""The text of a lock file: requirements with the hashes that are allowed for them, as uv writes them."""

import re
from collections.abc import Collection, Iterator, Mapping

from packaging.utils import canonicalize_name

from stele.errors import SteleError


def without_hashes(requirements: str) -> str:
    """Return the text of a lock file without hashes."""
    return "".join(f"{entry[0]}\n" for entry in entries(requirements))


def keep_allowed(requirements: str, allowed: Mapping[str, Collection[str]]) -> str:
    """Return the text of a lock file with only those hashes of a package that are allowed for it.

    Of a package that is not in ``allowed``, all are. Raises SteleError if none of a package is left: then the index has
    other files than the user's lock file.
    """
    if not allowed:
        return requirements
    lines = []
    for first, *hashes in entries(requirements):
        name = canonicalize_name(re.split(r"[\s=@\[;]", first)[0]) if first[:1].isalnum() else ""
        sha256 = {digest for digest in allowed.get(name, ()) if digest.startswith("sha256:")}
        chosen = [line for line in hashes if not sha256 or line.strip().removeprefix("--hash=") in sha256]
        if hashes and not chosen:
            raise SteleError(
                f"{first}: the package index has other files than the lock file, none with a hash that it allows. Lock "
                "again, or name the index that the file was locked with: UV_DEFAULT_INDEX."
            )
        lines.append(" \\\n".join([first, *chosen]))
    return "".join(f"{line}\n" for line in lines)


def entries(requirements: str) -> Iterator[list[str]]:
    """Yield the lines of each requirement, without the signs of continuation."""
    entry: list[str] = []
    for line in requirements.splitlines():
        entry.append(line.rstrip(" \\"))
        if not line.endswith("\\"):
            yield entry
            entry = []
