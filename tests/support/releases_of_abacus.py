"""The history of a framework that does not exist: eight releases, of which the fifth is slower by a fifth."""

from pathlib import Path

from stele import environments
from stele.releases import frameworks, history, ledger, trend
from stele.releases.index import Release
from stele.report import releases as pages

TAGS = [f"abacus-1.{number}" for number in range(1, 9)]
CELLS = ("gru train tuned", "gru infer tuned")
METRICS = ("step", "host_memory")


def record(add_environment, monkeypatch, folder, *, name="abacus"):
    """Write the ledger and the numbers of all releases to the current folder. Otava is not available."""
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setattr(trend, "otava_changes", lambda lines: None)
    (folder / "home").mkdir()
    add_environment(name)
    path = environments.folders()[1] / f"{name}.toml"
    path.write_text(path.read_text() + f'[requirements]\n"{name}" = "the framework"\n')
    environments.described.cache_clear()
    releases = [Release(name, f"1.{number}", f"2024-01-0{number}T00:00:00+00:00") for number in range(1, 9)]
    ledger.add(name, frameworks.environment_of(name), releases)
    for number, tag in enumerate(TAGS):
        save(tag, 0.01 if number < 4 else 0.012, with_interval=number > 0)


def save(tag, seconds, *, with_interval):
    values = {"step": seconds, "host_memory": 3e8}
    ranges = {"step": (0.99 * seconds, 1.02 * seconds)} if with_interval else {}
    history.save(
        tag,
        history.current_place(),
        {metric: dict.fromkeys(CELLS, value) for metric, value in values.items()},
        ranges={metric: dict.fromkeys(CELLS, pair) for metric, pair in ranges.items()},
    )


def write_site(folder: Path) -> Path:
    pages.write_site(folder, history.publish())
    return folder
