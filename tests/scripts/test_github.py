"""The scripts of action.yml and of the nightly workflow, with programs that replace ``gh`` and ``stele``."""

import json
import os
import subprocess
import sys

import pytest

from tests.support import github

HOSTILE = '$(touch planted) `touch planted` "; touch planted; " ${{ secrets.X }}'


@pytest.fixture
def programs(tmp_path):
    """A folder with a scripted ``gh``, a python, and the ``stele`` beside it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (tmp_path / "github.json").write_text(json.dumps(github.EMPTY))
    write_program(folder / "gh", f'exec "{sys.executable}" "{github.__file__}" "{tmp_path / "github.json"}" "$@"')
    (folder / "python").symlink_to(sys.executable)
    return folder


def write_program(path, line):
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


@pytest.fixture
def script(programs, tmp_path):
    """script(name, *arguments, **variables) -> the finished process, in a checkout with a workflow's variables."""
    (tmp_path / "checkout").mkdir()

    def script(name, *arguments, **variables):
        for kind in ("output", "summary"):
            (tmp_path / kind).write_text("")
        defaults = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "GITHUB_REPOSITORY": "owner/name",
            "INPUT_INCONCLUSIVE": "fail",
            "INPUT_REPORTS": str(tmp_path / "reports"),
            "INPUT_NAME": "gate",
            "PULL_REQUEST": "7",
        }
        command = [str(programs / "python"), str(github.SCRIPTS / f"{name}.py"), *map(str, arguments)]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("INPUT_")}
        return subprocess.run(
            command,
            cwd=tmp_path / "checkout",
            env={**inherited, **defaults, **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return script


@pytest.fixture
def state(tmp_path):
    """state(**new) -> what the scripted GitHub contains, after the change."""

    def state(**new):
        path = tmp_path / "github.json"
        content = {**json.loads(path.read_text()), **new}
        path.write_text(json.dumps(content))
        return content

    return state


# the gate


@pytest.fixture
def gate(script, programs, tmp_path):
    """gate(code, **inputs) -> (the arguments of stele or None, the outputs, the process)."""

    def gate(code=0, **inputs):
        arguments = tmp_path / "arguments"
        arguments.unlink(missing_ok=True)
        lines = [
            f'if [ "$1" = report ]; then echo "$@" > "{tmp_path / "report"}"; exit 4; fi',
            f'for each in "$@"; do printf "%s\\n" "$each"; done > "{arguments}"',
            "mkdir -p .stele/gates && touch .stele/gates/new.jsonl",
            'for each in "$@"; do case "$each" in --markdown=*) echo "# Verdict" > "${each#*=}";; esac; done',
            f"echo '::error::from the gate'; exit {code}",
        ]
        write_program(programs / "stele", "\n".join(lines))
        process = script("gate", **{f"INPUT_{name.upper()}": text for name, text in inputs.items()})
        pairs = (line.split("=") for line in (tmp_path / "output").read_text().splitlines())
        typed = arguments.read_text().splitlines() if arguments.exists() else None
        return typed, dict(pairs), process

    return gate


def shown(typed):
    """Return the arguments without the files of the reports."""
    return [text for text in typed if not text.startswith(("--json", "--markdown", "--junit"))]


def test_a_framework_is_pinned_to_both_versions(gate):
    typed, outputs, _ = gate(framework="torch", old="2.12.0", new="2.13.0", options="--task=gru\n\n  --budget=5m\n")
    assert shown(typed) == ["gate", "torch==2.12.0", "torch==2.13.0", "--task=gru", "--budget=5m"]
    assert outputs == {"code": "0", "exit": "0"}


def test_a_model_is_gated_with_requirements(gate):
    typed, _, _ = gate(model="net:build", old="torch==2.12.0", new="torch==2.13.0")
    assert shown(typed) == ["gate", "torch==2.12.0", "torch==2.13.0", "--model=net:build"]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4])
def test_the_action_exits_like_the_gate(gate, code):
    assert gate(code, old="a", new="b")[1] == {"code": str(code), "exit": str(code)}


def test_an_inconclusive_gate_can_be_neutral(gate):
    _, outputs, process = gate(3, old="a", new="b", inconclusive="neutral")
    assert outputs == {"code": "3", "exit": "0"}
    assert "::warning::INCONCLUSIVE" in process.stdout
    assert gate(1, old="a", new="b", inconclusive="neutral")[1]["exit"] == "1"


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({}, "Set the inputs old and new, or changed: main."),
        ({"old": "a"}, "Set the inputs old and new"),
        ({"changed": "main", "old": "a", "new": "b"}, "Leave out framework, old and new."),
        ({"old": "--help", "new": "b"}, "'--help' starts with a dash."),
        ({"changed": "--upload-pack=touch"}, "starts with a dash"),
        ({"old": "a", "new": "b", "inconclusive": "maybe"}, "Choose from: fail, neutral."),
        ({"changed": "nothing"}, "git cannot fetch the branch 'nothing'"),
    ],
)
def test_inputs_that_do_not_fit_are_a_usage_error(gate, inputs, message):
    typed, outputs, process = gate(**inputs)
    assert typed is None
    assert outputs == {"code": "2", "exit": "2"}
    assert message in process.stdout.partition("::error::")[2]


@pytest.mark.parametrize("name", ["framework", "model", "old", "new", "options"])
def test_an_input_is_never_code(gate, tmp_path, name):
    typed, _, _ = gate(**{"old": "a", "new": "b", name: HOSTILE})
    assert any(HOSTILE in text for text in typed)
    assert not list(tmp_path.rglob("planted"))


def test_what_the_gate_prints_is_no_workflow_command(gate):
    _, _, process = gate(old="a", new="b")
    before, _, after = process.stdout.partition("::error::from the gate")
    token = before.rpartition("::stop-commands::")[2].strip()
    assert len(token) == 32 and f"::{token}::" in after


def test_the_report_is_in_the_summary_of_the_run(gate, tmp_path):
    gate(old="a", new="b")
    assert (tmp_path / "summary").read_text() == "# Verdict\n"


def test_a_page_shows_the_record_of_this_gate_and_its_failure_is_no_verdict(gate, tmp_path):
    (tmp_path / "checkout/.stele/gates").mkdir(parents=True)
    (tmp_path / "checkout/.stele/gates/earlier.jsonl").touch()
    _, outputs, _ = gate(old="a", new="b")
    assert (
        tmp_path / "report"
    ).read_text() == f"report .stele/gates/new.jsonl --html={tmp_path / 'reports/gate.html'}\n"
    assert outputs == {"code": "0", "exit": "0"}


def git(folder, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("depth", [["--depth=1"], []])
def test_the_base_of_a_pull_request_is_fetched_into_a_shallow_checkout(gate, tmp_path, depth):
    origin, checkout = tmp_path / "origin", tmp_path / "checkout"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(origin))
    for branch in ("main", "upgrade"):
        git(origin, "checkout", "--quiet", "-B", branch)
        git(origin, "commit", "--quiet", "--allow-empty", "-m", branch)
    checkout.rmdir()
    git(tmp_path, "clone", "--quiet", *depth, "--branch=upgrade", origin.as_uri(), str(checkout))
    typed, outputs, process = gate(changed="main")
    assert (shown(typed), outputs["code"]) == (["gate", "--changed=origin/main"], "0"), process.stdout
    git(checkout, "rev-parse", "--verify", "origin/main^{commit}")
    typed, _, _ = gate(changed="HEAD")
    assert shown(typed) in (["gate", "--changed=HEAD"], ["gate", "--changed=origin/HEAD"])


# the comment


def write_report(tmp_path, text, name="gate.md"):
    (tmp_path / "reports").mkdir(exist_ok=True)
    (tmp_path / "reports" / name).write_text(text)


def test_one_comment_is_written_and_then_updated(script, state, tmp_path):
    for text in ("# PASS: a to b\n", "# REGRESSED: a to b\n"):
        write_report(tmp_path, text)
        assert script("comment", CODE="0").returncode == 0
    [comment] = state()["comments"]
    assert comment["body"].startswith("<!-- stele gate: gate -->\n# REGRESSED: a to b\n")
    assert "PASS" not in comment["body"]


def test_each_gate_of_a_pull_request_has_a_comment(script, state, tmp_path):
    write_report(tmp_path, "# PASS: a to b\n")
    for name in ("torch", "jax", "torch"):
        script("comment", CODE="0", INPUT_NAME=name)
    assert len(state()["comments"]) == 2


def test_the_comment_of_somebody_else_is_not_changed(script, state, tmp_path):
    text = "<!-- stele gate: gate -->\nmine"
    state(comments=[{"databaseId": 1, "body": text, "viewerDidAuthor": False}])
    write_report(tmp_path, "# PASS: a to b\n")
    script("comment", CODE="0")
    first, second = state()["comments"]
    assert first["body"] == text and "PASS" in second["body"]


def test_an_upgrade_that_was_taken_back_corrects_the_comment(script, state, tmp_path):
    script("comment", CODE="0")
    assert state()["comments"] == []  # nothing was gated
    write_report(tmp_path, "# REGRESSED: a to b\n")
    script("comment", CODE="1")
    (tmp_path / "reports/gate.md").unlink()
    script("comment", CODE="0")
    [comment] = state()["comments"]
    assert "No pin of a framework differs." in comment["body"]


@pytest.mark.parametrize("code", ["2", "4", "130", ""])
def test_a_report_beside_another_exit_code_is_no_pass(script, state, tmp_path, code):
    write_report(tmp_path, "# PASS: a to b\n")
    script("comment", CODE=code)
    first, _, rest = state()["comments"][0]["body"].partition("\n\n")
    assert first.endswith(f"**Exit code {code or 4}.** Not all that changed has a verdict. This is not a pass.")
    assert rest.startswith("# PASS")


@pytest.mark.parametrize("code, text", [("2", "did not run"), ("", "had an error"), ("130", "exit code 130")])
def test_a_gate_without_a_report_is_not_silent(script, state, code, text):
    script("comment", CODE=code)
    assert text in state()["comments"][0]["body"]


def test_a_long_report_is_cut_at_a_line_and_links_to_the_rest(script, state, tmp_path):
    write_report(tmp_path, "# PASS\n" + "| é | a line |\n" * 20_000)
    script("comment", CODE="0")
    body = state()["comments"][0]["body"]
    assert len(body) < 65_536
    assert "| é | a line |\n\n[Run and report](" in body


def test_a_token_without_permission_is_a_warning(script, state, tmp_path):
    """Pull requests of forks have a token that can only read."""
    state(fails=True)
    write_report(tmp_path, "# PASS: a to b\n")
    process = script("comment", CODE="0")
    assert process.returncode == 0
    assert "::warning::The comment was not written" in process.stdout


def test_a_run_without_a_pull_request_has_no_comment(script, state):
    assert script("comment", CODE="0", PULL_REQUEST="").returncode == 0
    assert state()["calls"] == []


# the issues of a night


@pytest.fixture
def night(script, tmp_path, state):
    """night({release: lines}) -> the issues after a night that reports these rises."""

    def night(rises, machine="abacus"):
        entries = [
            {"machine": machine, "release": release, "line": line, "message": f"{line}: +20 % at {release}"}
            for release, lines in rises.items()
            for line in lines
        ]
        (tmp_path / "nightly.json").write_text(json.dumps({"schema": 1, "rises": entries}))
        state(calls=[])
        process = script("issues", tmp_path / "nightly.json")
        assert process.returncode == 0, process.stderr
        return state()["issues"]

    return night


def states(issues):
    return {issue["title"].partition(" ")[0]: issue["state"] for issue in issues}


def test_a_regression_opens_one_issue_however_many_nights_pass(night, state):
    for _ in range(3):
        issues = night({"jax-0.10.1": ["step of gru", "step of cnn"]})
    [issue] = issues
    assert issue["title"] == "jax-0.10.1 is worse on abacus"
    assert "step of gru: +20 % at jax-0.10.1\n- step of cnn" in issue["body"]
    assert [call[:2] for call in state()["calls"]] == [["label", "create"], ["issue", "list"]]


def test_an_issue_is_closed_when_the_regression_is_gone(night):
    night({"jax-0.10.1": ["step"], "torch-2.13.0": ["import"]})
    assert states(night({"torch-2.13.0": ["import"]})) == {"jax-0.10.1": "CLOSED", "torch-2.13.0": "OPEN"}


def test_an_issue_shows_the_lines_of_today(night):
    night({"jax-0.10.1": ["step"]})
    [issue] = night({"jax-0.10.1": ["step", "import"]})
    assert "- import" in issue["body"]
    [issue] = night({"jax-0.10.1": ["import"]})
    assert "- step" not in issue["body"] and issue["state"] == "OPEN"


def test_a_regression_that_is_back_reopens_its_issue(night):
    for rises in ({"jax-0.10.1": ["step"]}, {}, {"jax-0.10.1": ["step"]}):
        issues = night(rises)
    assert states(issues) == {"jax-0.10.1": "OPEN"} and len(issues) == 1


def test_an_issue_that_was_closed_as_not_planned_stays_closed(night, state):
    [issue] = night({"jax-0.10.1": ["step"]})
    state(issues=[{**issue, "state": "CLOSED", "stateReason": "NOT_PLANNED"}])
    assert states(night({"jax-0.10.1": ["step"]})) == {"jax-0.10.1": "CLOSED"}


def test_a_step_that_moves_to_a_neighbouring_release_keeps_its_issue(night):
    night({"jax-0.10.1": ["step"]})
    [issue] = night({"jax-0.10.2": ["step"]})
    assert (issue["title"], issue["state"]) == ("jax-0.10.2 is worse on abacus", "OPEN")
    assert len(night({"jax-0.10.2": ["step"]})) == 1


def test_machines_have_separate_issues(night):
    night({"jax-0.10.1": ["step"]})
    assert len(night({"jax-0.10.1": ["step"]}, machine="sundial")) == 2


def test_issues_of_people_are_left_alone(night, state):
    bodies = ["a report", "<!-- stele regression [] -->", '<!-- stele regression {"machine": 3} -->', ""]
    made = [
        {"number": number, "state": "OPEN", "stateReason": "", "title": "mine", "body": body}
        for number, body in enumerate(bodies, 1)
    ]
    state(issues=made)
    assert night({}) == made


def test_a_name_cannot_end_the_marker(night):
    for _ in range(2):
        issues = night({"a --> b": ["step --> x"]})
    assert len(issues) == 1


def test_github_that_refuses_is_an_error(script, state, tmp_path):
    state(fails=True)
    (tmp_path / "nightly.json").write_text('{"rises": []}')
    process = script("issues", tmp_path / "nightly.json")
    assert process.returncode == 1
    assert "permissions: issues: write" in process.stdout
