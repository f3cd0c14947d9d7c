"""The plugin in another repository: it does nothing unless it is used, and works beside other plugins."""

import textwrap

import pytest

from stele.measuring import lock
from tests.support.suites import MODEL, SUITE


@pytest.mark.slow
def test_the_plugin_imports_nothing_heavy_if_it_is_not_used(repository):
    (repository.folder / "test_modules.py").write_text(
        textwrap.dedent("""
            import sys

            def test_modules():
                assert not {"numpy", "scipy", "rich", "stele", "stele_worker"} & set(sys.modules)
        """)
    )
    done = repository()
    assert "1 passed" in done.stdout, done.stdout


@pytest.mark.slow
def test_every_fixture_and_marker_starts_with_stele(repository):
    done = repository("--fixtures", "--markers")
    fixtures = [
        line for line in repository("--fixtures").stdout.splitlines() if "pytest_stele" in line and " -- " in line
    ]
    assert len(fixtures) > 5
    assert all(line.startswith("stele_") for line in fixtures)
    assert "@pytest.mark.stele_margin" in done.stdout
    assert "@pytest.mark.margin" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("-p", "no:xdist")])
def test_the_built_in_suite_runs_in_another_repository(repository, more):
    done = repository(*SUITE, "--benchmark-only", *more)
    assert "2 passed in" in done.stdout, done.stdout + done.stderr
    assert len(list((repository.folder / ".stele/runs").glob("*.json"))) == 2


@pytest.mark.slow
def test_the_built_in_suite_writes_to_the_root_when_it_runs_from_a_subfolder(repository):
    (repository.folder / "pytest.ini").write_text("[pytest]\n")
    (repository.folder / "deep").mkdir()
    done = repository(*SUITE, "--benchmark-only", cwd=repository.folder / "deep")
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert (repository.folder / ".stele/runs").is_dir()
    assert not (repository.folder / "deep/.stele").exists()


@pytest.mark.slow
def test_a_test_waits_while_another_measurement_runs(repository, monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    with lock.machine("stele gate a b", wait=True, say=print):
        done = repository(*SUITE, "-k", "inference", "--stele-no-wait")
    assert "Another measurement runs on this machine: stele gate a b (process" in done.stdout
    assert done.returncode == 1


@pytest.mark.slow
def test_a_model_is_measured_in_training_and_inference(repository):
    (repository.folder / "net.py").touch()
    done = repository(*MODEL, "--benchmark-only")
    assert "2 passed in" in done.stdout, done.stdout + done.stderr
    assert "stele: Scripted: 12 parameters; inputs 8x3 from the signature" in done.stdout
    assert "net.py:build train, batch 64 " in done.stdout
    names = sorted(path.name for path in (repository.folder / ".stele/runs").glob("*.json"))
    assert [name.partition("-")[2] for name in names] == [
        "steady-net.py_build-infer.json",
        "steady-net.py_build-train.json",
    ]
