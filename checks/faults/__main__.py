"""Does Stele survive faults of workers, hosts, files and releases, and load?

    python -m checks faults [GROUP|GROUP.FAULT ...] [--list]

Plants each fault in a temporary project, with prepared workers in place of frameworks, and checks what happens: the
exit code, the message, what was kept, processes and temporary files that remain, and how the next run continues. The
results stay in .stele/faults. If there are results of all faults, writes docs/results/faults.md. Exit: 0 if every
fault passed or could not be planted on this machine; 1 if not.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import files
import harness
import host
import load
import page
import release
import worker

GROUPS = {"worker": worker, "host": host, "files": files, "load": load, "release": release}
RESULTS = Path(".stele/faults")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a group ({', '.join(GROUPS)}) or a fault")
    parser.add_argument("--list", action="store_true", help="list the faults; plant none")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if not select([name])]
    if unknown:
        parser.error(f"unknown fault {unknown[0]!r}. List all with --list.")
    selected = select(arguments.names)
    if arguments.list:
        print("\n".join(f"{group}.{fault.__name__}: {harness.title(fault)}" for group, fault in selected))
        return
    failed = [row for row in carry_out(selected) if row.status == "failed"]
    rows = list(load_rows())
    if len(rows) == len(select([])):
        page.write({group: harness.title(module) for group, module in GROUPS.items()}, rows)
    for row in failed:
        print(f"{row.group}.{row.fault}: {'; '.join(row.problems)}")
    sys.exit(1 if failed else 0)


def select(names):
    """Return (group, fault) for each fault in the named groups, or that is named; all without names."""
    return [
        (group, fault)
        for group, module in GROUPS.items()
        for fault in module.FAULTS
        if not names or group in names or f"{group}.{fault.__name__}" in names
    ]


def carry_out(selected):
    """Plant the faults one after the other. Print and save each row, and yield it."""
    with tempfile.TemporaryDirectory(prefix="faults-") as parent:
        for number, (group, fault) in enumerate(selected, 1):
            row = harness.carry_out(group, fault, Path(parent))
            print(f"{number} of {len(selected)}  {row.status:8} {group}.{row.fault}: {row.message}", flush=True)
            for problem in row.problems:
                print(f"    {problem}", flush=True)
            RESULTS.mkdir(parents=True, exist_ok=True)
            (RESULTS / f"{group}.{row.fault}.json").write_text(json.dumps(row._asdict(), indent=1) + "\n")
            yield row


def load_rows():
    """Yield the stored rows, in the order of the list."""
    for group, fault in select([]):
        path = RESULTS / f"{group}.{fault.__name__}.json"
        if path.exists():
            yield harness.Row(**json.loads(path.read_text()))


if __name__ == "__main__":
    main()
