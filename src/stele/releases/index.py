"""The package index: which releases a package has, and since when.

STELE_INDEX names another than pypi.org that answers ``/pypi/<package>/json``, or a folder of wheels, whose dates are
those of the files.
"""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from stele.errors import SteleError

PYPI = "https://pypi.org"
TIMEOUT = 30.0  # seconds
LARGEST = 2**27  # bytes; TensorFlow's page has 20 MB


class IndexUnavailable(SteleError):
    """No answer: what was known before may still do."""


class Release(NamedTuple):
    """``date`` is when its first file was uploaded: ISO 8601, UTC. ``python`` are the versions that it is for."""

    package: str
    version: str
    date: str
    python: str = ""


def releases(package: str, *, prereleases: bool = False) -> list[Release]:
    """The releases of a package that can be had as a wheel, the oldest upload first; without those that were yanked.

    Raises IndexUnavailable where nobody answers, and SteleError where the index does not know the package.
    """
    place = os.environ.get("STELE_INDEX") or PYPI
    found = of_folder(package, Path(place)) if Path(place).is_dir() else of_index(package, place)
    kept = (release for release in found if prereleases or not Version(release.version).is_prerelease)
    return sorted(kept, key=lambda release: (release.date, Version(release.version)))


def of_folder(package: str, folder: Path) -> list[Release]:
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
        raise SteleError(f"{folder} has no wheel of {package!r}.")
    return [Release(package, version, moment(seconds)) for version, seconds in dates.items()]


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def of_index(package: str, place: str) -> list[Release]:
    answer = asked(f"{place.rstrip('/')}/pypi/{package}/json", package)
    try:
        return list(parsed(package, answer["releases"].items()))
    except (KeyError, TypeError, AttributeError) as error:
        raise IndexUnavailable(
            f"{place} answered something else than releases of {package}: {error!r}."
        ) from None


def asked(url: str, package: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            return json.loads(response.read(LARGEST))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise SteleError(f"The package index does not know {package!r}: {url}") from None
        raise IndexUnavailable(f"{url} answers {error.code} {error.reason}.") from None
    except (OSError, ValueError) as error:
        raise IndexUnavailable(f"{url} does not answer: {error}.") from None


def parsed(package: str, releases: Iterable[tuple[str, list[dict[str, Any]]]]) -> Iterable[Release]:
    """Those with a wheel that was not yanked; what is called by no version is none."""
    for version, files in releases:
        wheels = [file for file in files if file["packagetype"] == "bdist_wheel" and not file["yanked"]]
        try:
            name = str(Version(version))
        except InvalidVersion:
            continue
        if wheels:
            first = min(file["upload_time_iso_8601"] for file in wheels)
            date = datetime.fromisoformat(first.replace("Z", "+00:00")).astimezone(timezone.utc)
            python = wheels[0].get("requires_python") or ""
            yield Release(package, name, date.isoformat(timespec="seconds"), python)
