"""Hostile names: markup, newlines, escape sequences and shell commands in every name from outside."""

import json
import re
from xml.etree import ElementTree

from damaged import RUN, TABLE, make_run
from harness import GATE
from toy import describe_build

MARKUP = "<script>alert(1)</script>|[x](javascript:y)<!--"
CONTROL = "\x1b[31m\x07\x00\nforged: PASS\r"
SHELL = "$(touch executed);`touch executed`&touch executed"
HOSTILE = MARKUP + CONTROL + SHELL
REPORTS = ("--markdown", "report.md", "--json", "report.json", "--junit", "report.xml")


def check_reports(project, result):
    """Check that the terminal and the reports of a gate contain no hostile text as markup or control."""
    texts = {name: (project.work / name) for name in REPORTS[1::2]}
    content = {name: path.read_text(encoding="utf-8") for name, path in texts.items() if path.exists()}
    for name, text in {"the terminal": result.output, **content}.items():
        signs = sorted({letter for letter in text if not letter.isprintable() and letter not in "\n\t"})
        project.require(not signs, f"{name} contains control characters: {signs}")
        forged = [line for line in text.splitlines() if line.startswith("forged")]
        project.require(not forged, f"{name} contains a forged line: {forged[:1]}")
    markdown = content.get("report.md", "")
    project.require(not re.search(r"(?<!\\)<script|(?<!\\)<!--", markdown), "the Markdown page contains markup")
    for table in re.findall(r"(?:^\|.*\n?)+", markdown, re.MULTILINE):
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        project.require(len(columns) == 1, "a name adds columns to a Markdown table")
    if "report.xml" in content:
        ElementTree.fromstring(content["report.xml"])
    project.require(not list(project.folder.rglob("executed")), "a name was executed as a command")


def hostile_versions(project):
    """The worker reports a hostile version, and hostile flags."""
    facts = {"versions": {HOSTILE: HOSTILE}, "flags": {HOSTILE: HOSTILE}, "import_seconds": 0.5}
    project.tell("new", "facts", {"configure": facts})
    check_reports(project, project.observe(project.run(*GATE, *REPORTS), 0))
    project.resume()


def hostile_error(project):
    """The worker fails with a hostile message."""
    project.plant("hostile_error")
    check_reports(project, project.observe(project.run(*GATE, *REPORTS), 1, 3))
    project.resume()


def hostile_label(project):
    """The label of an environment is hostile, and so is the name of its file."""
    name = HOSTILE.replace("/", "").replace("\0", "")
    project.describe(name, label=HOSTILE.replace("\0", ""), worker="new")
    arguments = list(GATE)
    arguments[2] = name
    check_reports(project, project.observe(project.run(*arguments, *REPORTS), 0, 2))
    check_reports(project, project.observe(project.run("env", "list"), 0, 2))
    (project.descriptions / f"{name}.toml").unlink()
    project.proceed(project.run(*GATE), 0)


def hostile_requirement(project):
    """A requirement on the command line is hostile."""
    for text in (f"{MARKUP}==1", f"{SHELL}==1", f"torch=={MARKUP}", f"{CONTROL}==1".replace("\0", "")):
        arguments = list(GATE)
        arguments[2] = text
        check_reports(project, project.observe(project.run(*arguments, *REPORTS), 2))
    project.proceed(project.run(*GATE), 0)


def hostile_run(project):
    """The environment, the label and the versions of a Run are hostile."""
    path = make_run(project)
    names = {"environment": HOSTILE, "label": HOSTILE, "versions": {HOSTILE: HOSTILE}}
    path.write_text(json.dumps({"schema": 1, "run": {**RUN, **names}}))
    for command in (TABLE, ("table",)):
        result = project.observe(project.run(*command), 0, 2)
        project.require("<script" not in result.output, "the table contains markup")
        check_reports(project, result)
    project.proceed(project.run(*TABLE), 0)


def hostile_index(project):
    """A package index reports hostile versions and dates."""
    describe_build(project)
    for name in (
        "toy-1.0$(touch executed)-py3-none-any.whl",
        "toy-<script>-py3-none-any.whl",
        "toy-..-py3-none-any.whl",
    ):
        (project.wheels / name).touch()
    index = {"STELE_INDEX": str(project.wheels)}
    check_reports(project, project.observe(project.run("releases", "sync", "toy", **index), 0))
    check_reports(project, project.proceed(project.run("releases", "list", "toy"), 0))


def hostile_task_file(project):
    """The name and the module of a model are hostile."""
    for text in (f"{MARKUP}:Net", f"{SHELL}:Net", "../../outside.py:Net", f"net.py:{MARKUP}"):
        command = ("gate", "old", "new", "--model", text, "--budget", "1m", "--no-wait")
        check_reports(project, project.observe(project.run(*command, *REPORTS), 2))
    project.proceed(project.run(*GATE), 0)


FAULTS = (
    hostile_versions,
    hostile_error,
    hostile_label,
    hostile_requirement,
    hostile_run,
    hostile_index,
    hostile_task_file,
)
