"""Keeps one open issue for each release that is slower, from the report of ``stele nightly --json``.

An issue ends when none of its lines is raised any more. If asv moves a step to a neighbouring release, the issue moves,
too. An issue that a person closed as not planned stays closed.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from workflow import annotate, gh, run_url, shortened

LABEL = "stele-regression"
BEGIN, END = "<!-- stele regression ", " -->"
FIELDS = "number,state,stateReason,body"


class Regression(NamedTuple):
    """The lines of a machine that rose at a release, and a message for each."""

    machine: str
    release: str
    messages: dict[str, str]  # by line

    @property
    def key(self) -> tuple[str, str]:
        return self.machine, self.release

    @property
    def title(self) -> str:
        return f"{self.release} is worse on {self.machine}"

    @property
    def body(self) -> str:
        content = {"machine": self.machine, "release": self.release, "lines": sorted(self.messages)}
        marker = BEGIN + json.dumps(content).replace("-->", "--\\u003e") + END
        items = "\n".join(f"- {message}" for message in self.messages.values())
        text = (
            f"{marker}\n{items}\n\nFound by the [nightly run]({run_url()}). Confirm it with `stele gate`, and find the "
            "cause with `stele bisect`.\n\nThis issue is closed when no line is raised any more. To accept the "
            "regression, close the issue as not planned.\n"
        )
        return shortened(text, "There are more lines; see the report of the run.")


class Issue(NamedTuple):
    """An issue that this script opened."""

    number: int
    state: str  # OPEN or CLOSED
    reason: str  # why it was closed: COMPLETED or NOT_PLANNED
    machine: str
    release: str
    lines: frozenset[str]

    @property
    def key(self) -> tuple[str, str]:
        return self.machine, self.release


def main(path: str) -> int:
    """Open, move, reopen and close issues. Return 0, or 1 if GitHub refused."""
    try:
        update(regressions(json.loads(Path(path).read_text(encoding="utf-8"))["rises"]), issues())
    except subprocess.CalledProcessError as error:
        annotate("error", f"The issues were not updated ({error}). This needs: permissions: issues: write.")
        return 1
    return 0


def regressions(rises: Iterable[dict[str, Any]]) -> list[Regression]:
    """Return the rises by machine and release."""
    found: dict[tuple[str, str], Regression] = {}
    for rise in rises:
        key = rise["machine"], rise["release"]
        found.setdefault(key, Regression(*key, {})).messages[rise["line"]] = rise["message"]
    return list(found.values())


def issues() -> list[Issue]:
    """Return the issues of this script, the newest first."""
    gh("label", "create", LABEL, "--force", "--color", "B60205", "--description", "Found by stele nightly")
    listed = gh("issue", "list", "--label", LABEL, "--state", "all", "--limit", "1000", "--json", FIELDS)
    return [issue for entry in json.loads(listed) if (issue := parse(entry)) is not None]


def parse(entry: dict[str, Any]) -> Issue | None:
    """Return the issue, or None if its marker is missing or was changed by somebody."""
    try:
        content = json.loads(entry["body"].partition(BEGIN)[2].partition(END)[0])
        lines = frozenset(content["lines"])
        state = entry["number"], entry["state"], entry["stateReason"]
        return Issue(*state, content["machine"], content["release"], lines)
    except (ValueError, KeyError, TypeError):
        return None


def update(found: list[Regression], existing: list[Issue]) -> None:
    """Make the issues agree with the regressions."""
    by_key = {issue.key: issue for issue in reversed(existing)}  # the newest of several
    keys = {regression.key for regression in found}
    gone = [issue for issue in existing if issue.state == "OPEN" and issue.key not in keys]
    for regression in found:
        issue = by_key.get(regression.key) or moved(regression, gone)
        if issue in gone:
            gone.remove(issue)
        report(regression, issue)
    for issue in gone:
        gh("issue", "close", str(issue.number), "--comment", f"No line is raised any more: {run_url()}")


def moved(regression: Regression, gone: list[Issue]) -> Issue | None:
    """Return an open issue with one of these lines, whose release is not the start of the step any more."""
    same = (issue for issue in gone if issue.machine == regression.machine)
    return next((issue for issue in same if issue.lines & set(regression.messages)), None)


def report(regression: Regression, issue: Issue | None) -> None:
    """Open an issue, or bring the one that exists up to date."""
    text = ("--title", regression.title, "--body-file", "-")
    if issue is None:
        gh("issue", "create", *text, "--label", LABEL, text=regression.body)
        return
    if issue.state == "CLOSED" and issue.reason == "NOT_PLANNED":
        return
    if issue.state == "CLOSED":
        gh("issue", "reopen", str(issue.number), "--comment", f"The regression is back: {run_url()}")
    if issue.key != regression.key or issue.lines != set(regression.messages) or issue.state == "CLOSED":
        gh("issue", "edit", str(issue.number), *text, text=regression.body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
