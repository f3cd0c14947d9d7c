"""Programs that replace ``gh`` and ``stele`` in the tests of the scripts in .github/scripts.

The scripted ``gh`` keeps comments and issues in a JSON file, refuses what it does not know, and writes every call.
"""

import json
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / ".github/scripts"
EMPTY = {"calls": [], "comments": [], "issues": [], "fails": False}


def option(arguments, name):
    return arguments[arguments.index(name) + 1]


def main(path, *arguments):
    state = json.loads(Path(path).read_text())
    state["calls"].append(list(arguments))
    try:
        if state["fails"]:
            sys.exit("HTTP 403: Resource not accessible by integration")
        answer(state, arguments)
    finally:
        Path(path).write_text(json.dumps(state))


def answer(state, arguments):
    match arguments:
        case ["api", "graphql", *_]:
            for comment in state["comments"]:
                print(json.dumps(comment))
        case ["api", "--method", "PATCH", endpoint, "--input", "-"]:
            number = int(endpoint.rpartition("/")[2])
            [comment] = [each for each in state["comments"] if each["databaseId"] == number]
            comment["body"] = json.load(sys.stdin)["body"]
        case ["api", _, "--input", "-"]:
            body = json.load(sys.stdin)["body"]
            number = len(state["comments"]) + 1
            state["comments"].append({"databaseId": number, "body": body, "viewerDidAuthor": True})
        case ["label", "create", *_]:
            pass
        case ["issue", "list", *_]:
            print(json.dumps(state["issues"][::-1]))
        case ["issue", "create", *_]:
            number = len(state["issues"]) + 1
            new = {
                "number": number,
                "state": "OPEN",
                "stateReason": "",
                "title": option(arguments, "--title"),
            }
            state["issues"].append({**new, "body": sys.stdin.read()})
        case ["issue", verb, number, *_]:
            change(state["issues"][int(number) - 1], verb, arguments)
        case _:
            sys.exit(f"unknown: {arguments}")


def change(issue, verb, arguments):
    match verb:
        case "close":
            issue.update(state="CLOSED", stateReason="COMPLETED")
        case "reopen":
            issue.update(state="OPEN", stateReason="REOPENED")
        case "edit":
            issue.update(title=option(arguments, "--title"), body=sys.stdin.read())
        case _:
            sys.exit(f"unknown: {verb}")


if __name__ == "__main__":
    main(*sys.argv[1:])
