"""Load: many Runs, environments, launches and releases. Each row has its figures and their limits.

The limits are in seconds of processor time, so that they hold on a busy machine, too.
"""

import json
import os
from pathlib import Path

from damaged import RUN, TABLE, make_run
from harness import GATE
from toy import HERE, wheel

MIB = 2**20
RUNS, RUNS_SECONDS = 10_000, 5.0
RUNS_MEMORY = 16 * MIB  # how much more memory 10,000 Runs may need than 100
ENVIRONMENTS, ENVIRONMENTS_SECONDS = 500, 5.0
LAUNCHES, RESUME_SECONDS = 5_000, 2.0
RELEASES, SLOW_RELEASE = 300, 200
NIGHT, NIGHTS = "4h", 10
SIMULATION = Path(__file__).with_name("simulated_nightly.py")


def limit(project, what, value, most, unit):
    """Record a figure, and a problem if it is larger than its limit."""
    project.figures.append(f"{what} {value:.1f} {unit} (limit {most:g})")
    project.require(value <= most, f"{what} takes {value:.1f} {unit}, more than {most:g}")


def runs(project):
    """A store of 10,000 Runs is listed and reported."""
    path = make_run(project)
    few = write_runs(project, path, 100)
    many = write_runs(project, path, RUNS)
    for name, before, after in zip(("table --steps", "table"), few, many, strict=True):
        limit(project, name, after.processor, RUNS_SECONDS, "s")
        limit(project, f"memory of {name}", (after.memory - before.memory) / MIB, RUNS_MEMORY / MIB, "MiB more")
    project.kept = f"{len(list(path.parent.iterdir()))} Runs"


def write_runs(project, path, count):
    """Write ``count`` Runs, and return the results of the two commands that read them."""
    for number in range(count):
        run = {**RUN, "when": f"2026-01-02T03:04:05.{number:06}+00:00", "environment": f"old-{number % 50}"}
        path.with_name(f"{number:06}.json").write_text(json.dumps({"schema": 1, "run": run}))
    return [project.proceed(project.observe(project.run(*command), 0), 0) for command in (TABLE, ("table",))]


def environments(project):
    """500 environments are described."""
    for number in range(ENVIRONMENTS):
        project.describe(f"environment-{number:03}")
    result = project.observe(project.run("env", "list"), 0)
    limit(project, "env list", result.processor, ENVIRONMENTS_SECONDS, "s")
    gate = project.proceed(project.run(*GATE), 0)
    limit(project, "a gate", gate.processor, 60.0, "s")


def launches(project):
    """A gate with a record of 5,000 launches is resumed."""
    project.run(*GATE)
    (path,) = project.work.glob(".stele/gates/*.jsonl")
    header, *entries = path.read_text().splitlines()
    passes = [json.loads(entry) for entry in entries]
    per_pass = len(passes[0]["runs"])
    with path.open("w") as file:
        file.write(header + "\n")
        for number in range(LAUNCHES // per_pass):
            file.write(json.dumps(undecided(passes[0], number)) + "\n")
    before = project.launches()
    result = project.observe(project.run(*GATE, "--resume"), 0, 3)
    limit(project, "the resumed gate", result.processor, RESUME_SECONDS, "s")
    project.proceed(project.run(*GATE, "--resume"), 0, 3)
    project.keep(before)


def undecided(entry, number):
    """Return an entry for a later pass, in which NEW is alternately far slower and far faster than OLD.

    The 5,000 launches together used the budget, so a resumed gate only has to read and to judge them.
    """
    factor = 1.5 if number % 2 else 1 / 1.5
    copy = {**entry, "key": [*entry["key"][:-1], number], "took": 0.2}
    copy["runs"] = {
        arm: {
            **run,
            "when": f"2026-01-02T03:04:05.{number:06}+00:00 {arm}",
            "steps": {
                **run["steps"],
                "seconds": [value * (factor if arm == "new" else 1) for value in run["steps"]["seconds"]],
            },
        }
        for arm, run in entry["runs"].items()
    }
    return copy


def nightly(project):
    """A nightly run follows 300 releases, in simulated time."""
    describe_releases(project)
    (project.work / "simulated_nightly.py").write_bytes(SIMULATION.read_bytes())
    command, results = (str(RELEASES), str(SLOW_RELEASE), NIGHT), []
    while not results or (results[-1].code and len(results) < NIGHTS):
        results.append(project.observe(project.run(*command, module="simulated_nightly"), 0, 1, 3))
    project.figures.append(f"{len(results)} nights of {NIGHT} in {sum(result.seconds for result in results):.0f} s")
    found = any(f" at toy-1.{SLOW_RELEASE}," in result.output for result in results)
    project.require(found, "the slower release is not reported")
    project.proceed(project.run(*command, module="simulated_nightly"), 0)


def describe_releases(project):
    """Describe an environment whose package has 300 releases in a folder of wheels."""
    (project.descriptions / "toy.toml").write_text(
        f'label = "Toy"\nframework = "toy"\nimports = ["toy"]\npython = "{HERE}"\n'
        '[requirements]\n"toy" = "the framework"\n'
    )
    for number in range(1, RELEASES + 1):
        wheel(project.wheels, "toy", f"1.{number}")
        moment = 1_600_000_000 + 86_400 * number
        os.utime(project.wheels / f"toy-1.{number}-py3-none-any.whl", (moment, moment))


FAULTS = (runs, environments, launches, nightly)
