"""Keeps one comment on a pull request up to date with the reports of a gate, for action.yml."""

import json
import os
import subprocess
import sys
from pathlib import Path

from workflow import annotate, gh, run_url, shortened

MARKER = "<!-- stele gate: {} -->"  # of the input ``name``: a pull request may have several gates
COMMENTS = """
query($owner: String!, $name: String!, $number: Int!, $endCursor: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    comments(first: 100, after: $endCursor) {
      nodes { databaseId body viewerDidAuthor }
      pageInfo { hasNextPage endCursor }
    }
  } }
}
"""
NODES = ".data.repository.pullRequest.comments.nodes[]"
VERDICTS = (0, 1, 3)  # exit codes that the reports explain
MEANING = {0: "No pin of a framework differs.", 2: "The gate did not run.", 4: "The gate had an error."}


def main() -> int:
    """Write or update the comment. Always return 0: a token without permission is not a verdict."""
    if not os.environ["PULL_REQUEST"]:
        print("This run belongs to no pull request, so there is no comment to write.")
        return 0
    try:
        update(os.environ["GITHUB_REPOSITORY"], os.environ["PULL_REQUEST"])
    except (subprocess.CalledProcessError, OSError) as error:
        annotate(
            "warning",
            f"The comment was not written ({error}). It needs: permissions: pull-requests: write. "
            "Runs for a fork have no such permission; read the summary of the run.",
        )
    return 0


def update(repository: str, number: str) -> None:
    marker = MARKER.format(os.environ["INPUT_NAME"])
    code, pages = int(os.environ["CODE"] or 4), reports(Path(os.environ["INPUT_REPORTS"]))
    identifier = own_comment(repository, number, marker)
    if identifier is None and code == 0 and not pages:
        return  # nothing was gated, and nothing earlier has to be corrected
    text = pages or MEANING.get(code, f"The gate ended with exit code {code} and without a report.")
    if pages and code not in VERDICTS:
        text = f"**Exit code {code}.** Not all that changed has a verdict. This is not a pass.\n\n{text}"
    link = f"[Run and report]({run_url()})"
    body = json.dumps({"body": shortened(f"{marker}\n{text}\n\n{link}\n", link)})
    if identifier is None:
        gh("api", f"repos/{repository}/issues/{number}/comments", "--input", "-", text=body)
    else:
        path = f"repos/{repository}/issues/comments/{identifier}"
        gh("api", "--method", "PATCH", path, "--input", "-", text=body)


def reports(folder: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("gate*.md")))


def own_comment(repository: str, number: str, marker: str) -> int | None:
    """Return the first comment that this workflow wrote for this gate. Somebody else's is never changed."""
    owner, _, name = repository.partition("/")
    variables = ["-F", f"owner={owner}", "-F", f"name={name}", "-F", f"number={number}"]
    command = ["graphql", "--paginate", *variables, "-f", f"query={COMMENTS}", "--jq", NODES]
    nodes = map(json.loads, gh("api", *command).splitlines())
    own = (node for node in nodes if node["viewerDidAuthor"] and node["body"].startswith(marker))
    return next((node["databaseId"] for node in own), None)


if __name__ == "__main__":
    sys.exit(main())
