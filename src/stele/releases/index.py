"""Read the releases of a package, and their dates, from the package index.

STELE_INDEX is the address of an index other than pypi.org that serves ``/pypi/<package>/json``, or a folder of wheels.
The dates of a folder's releases are those of its files.
"""

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from stele import config, schema
from stele.errors import SteleError

PYPI = "https://pypi.org"
TIMEOUT = 30.0  # seconds
MAX_BYTES = 2**27  # of a response; TensorFlow's has 20 MB


class IndexUnavailable(SteleError):
    """The index did not give a usable response. The caller may use the releases that are recorded already."""


class File(TypedDict, total=False):
    """What the index may say about a file of a release."""

    requires_python: str | None


class Upload(File):
    """What the index must say about a file of a release."""

    packagetype: str
    yanked: bool
    upload_time_iso_8601: str


class Response(TypedDict):
    """The answer of the index, as far as Stele reads it."""

    releases: dict[str, list[Upload]]


class Release(NamedTuple):
    """``date`` is the upload of the first file: ISO 8601, UTC. ``python`` is Requires-Python, "" if unknown."""

    package: str
    version: str
    date: str
    python: str = ""


def releases(package: str, *, prereleases: bool = False) -> list[Release]:
    """Return the releases of a package that have a wheel and are not yanked, the oldest upload first.

    Raises IndexUnavailable if the index gives no usable response, and SteleError if it does not have the package.
    """
    location = config.current().index or PYPI
    if not (Path(location).is_dir() or "://" in location):
        raise SteleError(f"STELE_INDEX={location} is neither a folder nor a URL. Correct it, or unset it.")
    if Path(location).is_dir():
        available = releases_in_folder(package, Path(location))
    else:
        available = releases_in_index(package, location)
    selected = (release for release in available if prereleases or not Version(release.version).is_prerelease)
    return sorted(selected, key=lambda release: (release.date, Version(release.version)))


def releases_in_folder(package: str, folder: Path) -> list[Release]:
    """Return the releases of a package in a folder of wheels, with the time of the oldest file of each.

    Raises SteleError if it has none.
    """
    dates: dict[str, float] = {}
    for wheel in folder.glob("*.whl"):
        try:
            name, version, _, _ = parse_wheel_filename(wheel.name)
        except InvalidWheelFilename:
            continue
        if name == canonicalize_name(package):
            uploaded = wheel.stat().st_mtime
            dates[str(version)] = min(uploaded, dates.get(str(version), uploaded))
    if not dates:
        raise SteleError(f"{folder} has no wheel of {package!r}. STELE_INDEX names this folder.")
    return [Release(package, version, iso_date(seconds)) for version, seconds in dates.items()]


def iso_date(seconds: float) -> str:
    """Return a time in seconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def releases_in_index(package: str, index: str) -> list[Release]:
    """Return the releases of a package in the index at an address."""
    response = fetch(f"{index.rstrip('/')}/pypi/{package}/json", package)
    try:
        releases = schema.convert(response, Response)["releases"]
        return list(parse(package, releases.items()))
    except (ValueError, OverflowError) as error:  # of an impossible date
        raise IndexUnavailable(f"{index} did not return a list of releases of {package}: {error}.") from None


def fetch(url: str, package: str) -> Any:
    """Return the JSON at ``url``. Raises SteleError for status 404, and IndexUnavailable for other errors."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            return schema.parse(response.read(MAX_BYTES))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise SteleError(f"The package index has no package {package!r}: {url}") from None
        raise IndexUnavailable(f"{url} returned status {error.code} {error.reason}.") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise IndexUnavailable(f"{url} did not respond with JSON: {error}.") from None


def parse(package: str, releases: Iterable[tuple[str, list[Upload]]]) -> Iterable[Release]:
    """Yield the releases that have a valid version and a wheel that is not yanked."""
    for version, files in releases:
        wheels = [file for file in files if file["packagetype"] == "bdist_wheel" and not file["yanked"]]
        try:
            name = str(Version(version))
        except ValueError:
            continue
        if wheels:
            uploaded = min(file["upload_time_iso_8601"] for file in wheels)
            date = datetime.fromisoformat(uploaded.replace("Z", "+00:00")).astimezone(timezone.utc)
            python = wheels[0].get("requires_python") or ""
            yield Release(package, name, date.isoformat(timespec="seconds"), python)
