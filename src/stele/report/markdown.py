"""A report as Markdown for pull requests: the sentence, everything that is not PASS, and the rest folded."""

from collections.abc import Iterator, Sequence

from stele.report.content import Report, Table, Value, number_columns, shown
from stele.text import printable

# characters; GitHub refuses a comment of more than 65,536
LONGEST = 60_000
# of a table
MOST_ROWS = 60
# Markdown shows these as something else
MARKS = "\\|*_`<>[]~"


def escape(text: str) -> str:
    """Return text in which Markdown shows every character literally."""
    for sign in MARKS:
        text = text.replace(sign, f"\\{sign}")
    return text.replace("&", "&amp;")


def line(text: str) -> str:
    return escape(printable(text, keep=""))


def code(text: str) -> str:
    """Return a command as code. A backtick in it would end the code."""
    return f"`{printable(text, keep='').replace('`', '?')}`"


def render(report: Report) -> str:
    top = report.headline
    title = f"{top.status}: {top.title}" if top.status else top.title
    parts = [f"# {line(title)}", line(top.sentence), *bullets(report)]
    verdict_tables = [
        figure.table for section in report.sections if section.anchor == "verdicts" for figure in section.figures
    ]
    parts += [
        table(content, [row for row in content.rows if row[0] != "PASS"])
        for content in verdict_tables
        if has_others(content)
    ]
    parts += folded(report, sum(map(len, parts)))
    return "\n\n".join(part for part in parts if part) + "\n"


def bullets(report: Report) -> Iterator[str]:
    yield "\n".join(f"- {line(cause)}" for cause in report.headline.causes)
    yield "\n".join(
        f"- **Next:** {line(text)}" + (f" {code(command)}" if command else "")
        for text, command in report.headline.remedies
    )
    yield "\n".join(line(fact) for fact in report.facts)
    yield "\n".join(f"- {line(note)}" for note in report.notes)


def has_others(content: Table) -> bool:
    return any(row[0] != "PASS" for row in content.rows)


def folded(report: Report, length: int) -> Iterator[str]:
    """Yield the tables, each in a fold, until the page is as long as a comment may be."""
    for section in report.sections:
        for figure in section.figures:
            rows = figure.table.rows
            if section.anchor == "verdicts":
                rows = [row for row in rows if row[0] == "PASS"]
            if not rows:
                continue
            text = fold(figure.table, rows)
            length += len(text)
            if length > LONGEST:
                yield "More tables are in the HTML report and in its CSV files."
                return
            yield text


def fold(content: Table, rows: Sequence[Sequence[Value]]) -> str:
    title = line(content.title)
    if len(rows) > MOST_ROWS:
        return f"<details><summary>{title}</summary>\n\n{len(rows)} rows: see the HTML report.\n\n</details>"
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    return f"<details><summary>{title} ({count})</summary>\n\n{table(content, rows)}\n\n</details>"


def table(content: Table, rows: Sequence[Sequence[Value]]) -> str:
    """Return the columns that are not empty."""
    used = [column for column in range(len(content.head)) if any(shown(row[column]) for row in rows)]
    numbers = number_columns(content)
    lines = [
        [line(content.head[column]) for column in used],
        ["---:" if numbers[column] else "---" for column in used],
        *([line(shown(row[column])) for column in used] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
