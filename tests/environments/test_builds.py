"""Building environments: from wheels in a folder, with the real uv and no network."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele import environments
from stele.environments import Environment, arms, builds, installer, libraries, packages
from stele.errors import SteleError
from stele.gate import preparation
from stele.measuring import content
from stele.subjects.model import spec
from tests.support.processes import alive, wait_until
from tests.support.wheels import use_alone, wheel

HERE = f"=={sys.version_info.major}.{sys.version_info.minor}.*"


@pytest.fixture(scope="module")
def uv_cache(tmp_path_factory):
    """One cache for all tests here, because uv queries every interpreter of this machine."""
    return tmp_path_factory.mktemp("uv")


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path, uv_cache):
    """Give each test separate caches, descriptions and a package index."""
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "descriptions").mkdir()
    monkeypatch.setenv("STELE_ENVIRONMENTS", str(tmp_path / "descriptions"))
    use_alone(monkeypatch, tmp_path / "wheels", uv_cache)
    environments.described.cache_clear()
    yield
    environments.described.cache_clear()


@pytest.fixture
def add_environment(tmp_path):
    """add_environment(name) -> an environment that needs the package toy 1.0, with a description and a lock file."""

    def add_environment(name="toy", source="", release="1.0"):
        wheel(tmp_path / "wheels", "toy", release, source)
        (tmp_path / "descriptions").mkdir(exist_ok=True)
        facts = f'label = "Toy"\nframework = "toy"\nimports = ["toy"]\npython = "{HERE}"\n'
        (tmp_path / "descriptions" / f"{name}.toml").write_text(
            facts + f'[requirements]\n"toy=={release}" = "the release"\n'
        )
        environments.described.cache_clear()
        assert entry_point.main(["env", "lock", name]) == 0
        return environments.load(name)

    return add_environment


def remaining(tmp_path):
    """Return the files in the folder of builds, without lock files."""
    return {path.name for path in (tmp_path / "cache" / "environments").iterdir() if path.suffix != ".guard"}


def test_an_environment_is_built_once(add_environment):
    toy = add_environment()
    assert environments.state(toy) == ("missing", "1.0", "not built. Build it with: stele env make toy")
    assert builds.make(toy) is True
    assert environments.state(toy) == ("ready", "1.0", "")
    assert builds.make(toy) is False
    subprocess.run([builds.python(toy), "-c", "import toy"], check=True)


def test_a_changed_lock_file_needs_a_new_build(add_environment):
    builds.make(add_environment())
    assert environments.state(add_environment(release="1.1")).status == "missing"


def test_two_environments_with_the_same_lock_file_share_a_build(add_environment):
    builds.make(add_environment("toy"))
    assert environments.state(add_environment("toy-again")).status == "ready"


def test_two_pythons_with_the_same_lock_file_share_no_build(add_environment):
    toy = add_environment()
    builds.make(toy)
    assert environments.state(dataclasses.replace(toy, python="==3.99.*")).status == "missing"


@pytest.mark.parametrize("moment", ["run_uv", "check_imports"])
def test_an_interruption_leaves_no_incomplete_build(add_environment, monkeypatch, tmp_path, moment):
    toy = add_environment()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(installer if moment == "run_uv" else builds, moment, interrupt)
        with pytest.raises(KeyboardInterrupt):
            builds.make(toy)
    assert remaining(tmp_path) == set()
    assert builds.make(toy) is True


def test_the_next_build_deletes_what_a_killed_build_left(add_environment, tmp_path):
    toy = add_environment()
    leftover = builds.folder(toy).with_suffix(".building")
    (leftover / "bin").mkdir(parents=True)
    assert environments.state(toy).status == "missing"
    assert builds.make(toy) is True
    assert remaining(tmp_path) == {builds.folder(toy).name}


@pytest.mark.slow
def test_the_import_of_a_build_ends_when_the_host_is_killed(add_environment, tmp_path):
    file = tmp_path / "importing"
    add_environment(source=f"import os, time\nopen({str(file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    host = subprocess.Popen([sys.executable, "-m", "stele", "env", "make", "toy"])
    wait_until(lambda: file.exists() and file.read_text(), 60)
    host.kill()
    host.wait()
    wait_until(lambda: not alive(int(file.read_text())))


@pytest.mark.slow
def test_two_builds_at_once_do_not_collide(add_environment):
    add_environment()
    command = [sys.executable, "-m", "stele", "env", "make", "toy"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = sorted(process.communicate()[0].split(",")[0] for process in processes)
    assert answers == ["toy: already built", "toy: built"]


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_build_that_is_stopped_leaves_no_process_and_no_incomplete_build(add_environment, tmp_path, ending):
    note = tmp_path / "pid"
    add_environment(source=f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    command = [sys.executable, "-m", "stele", "env", "make", "toy"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as building:
        wait_until(lambda: note.exists() and note.read_text(), seconds=60)
        building.send_signal(ending)
        assert "stele: interrupted" in building.communicate(timeout=30)[1]
    assert building.returncode == 130
    assert not alive(int(note.read_text()))
    assert remaining(tmp_path) == set()


@pytest.mark.slow
def test_a_build_whose_host_is_killed_leaves_no_process(add_environment, tmp_path):
    note = tmp_path / "pid"
    add_environment(source=f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    with subprocess.Popen([sys.executable, "-m", "stele", "env", "make", "toy"]) as building:
        wait_until(lambda: note.exists() and note.read_text(), seconds=60)
        building.kill()
    wait_until(lambda: not alive(int(note.read_text())))


def test_a_framework_that_hangs_at_its_import_is_not_built(add_environment, monkeypatch, tmp_path):
    monkeypatch.setattr(builds, "TIMEOUT", 0.2)
    with pytest.raises(SteleError, match=r"its import took more than 0\.2 s"):
        builds.make(add_environment(source="import time; time.sleep(600)"))
    assert remaining(tmp_path) == set()


def test_a_framework_whose_import_fails_is_not_built(add_environment, tmp_path):
    with pytest.raises(SteleError, match=r"'toy' was installed, but its import failed:(.|\n)*no such symbol"):
        builds.make(add_environment(source="raise ImportError('no such symbol')"))
    assert remaining(tmp_path) == set()


@pytest.mark.slow
def test_a_package_with_another_hash_than_the_lock_file_is_refused(add_environment, monkeypatch, tmp_path):
    builds.make(add_environment("other", release="0.9"))
    toy = add_environment()
    wheel(tmp_path / "wheels", "toy", "1.0", "tampered = True")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv of another machine"))
    with pytest.raises(SteleError, match="the hash of a package differs from the lock file"):
        builds.make(toy)
    assert remaining(tmp_path) == {builds.folder(environments.load("other")).name}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("toy==7", "there is no version toy==7 in the index. Check the number."),
        ("toy>=7", "there is no version toy>=7 in the index, only toy<=2.0. Choose one of these."),
        ("toy>1.0,<2.0", "there is no version toy>1.0,<2.0 in the index, only toy<=1.0 toy>=2.0. Choose"),
        ("toy==1.0 toyy==7", "there is no package toyy in the index. Check the spelling."),
        ("toy==1.0 other==1.0", "the requirements are in conflict."),
    ],
)
def test_a_requirement_that_selects_nothing_is_told_from_a_conflict(add_environment, tmp_path, text, cause):
    wheel(tmp_path / "wheels", "toy", "2.0")
    wheel(tmp_path / "wheels", "other", "1.0", requires=["toy>=2"])
    requirements = dict.fromkeys(text.split(), "typed")
    toy = dataclasses.replace(add_environment(), name=text, requirements=requirements)
    with pytest.raises(installer.Unsolvable) as error:
        builds.lock(toy, Path(sys.executable))
    assert str(error.value).startswith(f"Resolving '{text}': {cause}")


def test_a_requirement_that_cannot_be_resolved_shows_the_message_of_uv(add_environment, capsys):
    add_environment()
    environments.described.cache_clear()
    assert entry_point.main(["env", "make", "toy==7"]) == 2
    errors = capsys.readouterr().err
    assert "Resolving 'toy==7': there is no version toy==7" in errors
    assert "there is no version of toy==7" in errors
    assert "Traceback" not in errors


def test_a_requirement_from_the_command_line_is_resolved_and_built(add_environment, tmp_path):
    add_environment()
    wheel(tmp_path / "wheels", "toy", "1.5")
    environments.described.cache_clear()
    assert entry_point.main(["env", "make", "toy==1.5"]) == 0
    assert environments.state(environments.load("toy==1.5")) == ("ready", "1.5", "")
    assert environments.state(environments.load("toy")).status == "missing"


def test_a_build_without_a_network_is_an_error(add_environment, monkeypatch):
    toy = add_environment()
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_FIND_LINKS", "")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(SteleError, match=r"the package index did not answer\. Is there a network\?"):
        builds.make(toy)


def test_an_interpreter_that_does_not_work_is_an_error(add_environment, tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(SteleError, match="the interpreter does not work"):
        builds.make(add_environment(), fake)


def test_a_full_disk_has_a_distinct_message():
    output = "error: failed to write to file `/x/y`: No space left on device (os error 28)"
    assert installer.explain(output).startswith("the disk is full. Free some space, or set STELE_CACHE to")


def test_a_build_without_its_interpreter_is_broken_until_it_is_rebuilt(add_environment):
    toy = add_environment()
    builds.make(toy)
    builds.python(toy).unlink()
    builds.python(toy).symlink_to("/nowhere/python")
    assert environments.state(toy) == (
        "broken",
        "1.0",
        "its interpreter no longer exists. Rebuild it with: stele env make toy",
    )
    assert builds.make(toy) is True
    assert environments.state(toy).status == "ready"


def test_a_build_without_its_system_library_is_broken_until_it_is_rebuilt(add_environment):
    toy = add_environment()
    builds.make(toy)
    folder = builds.links_folder(builds.folder(toy))
    folder.mkdir(parents=True)
    (folder / "libtoy.so").symlink_to("/nowhere/libtoy.so")
    assert environments.state(toy).status == "broken"
    assert builds.make(toy) is True  # as the message of the state says
    assert environments.state(toy).status == "ready"


def test_after_a_failure_the_other_environments_are_built(add_environment, capsys):
    add_environment("good")
    add_environment("bad", source="raise ImportError", release="2.0")
    assert entry_point.main(["env", "make", "bad", "good"]) == 2
    assert environments.state(environments.load("good")).status == "ready"


def test_a_build_can_be_removed(add_environment, capsys, tmp_path):
    builds.make(add_environment())
    capsys.readouterr()
    assert entry_point.main(["env", "remove", "toy"]) == 0
    assert entry_point.main(["env", "remove", "toy"]) == 0
    assert capsys.readouterr().out == "toy: removed\ntoy: was not built\n"
    assert remaining(tmp_path) == set()


def test_the_list_is_printed_as_text_or_as_json(add_environment, capsys):
    builds.make(add_environment())
    capsys.readouterr()
    entry_point.main(["env", "list"])
    assert "toy" in capsys.readouterr().out
    entry_point.main(["env", "list", "--json"])
    facts = {fact["name"]: fact for fact in json.loads(capsys.readouterr().out)["environments"]}
    assert facts["toy"] == {
        "name": "toy",
        "framework": "toy",
        "status": "ready",
        "version": "1.0",
        "reason": "",
    }


def test_an_environment_of_the_host_is_not_built(capsys):
    assert entry_point.main(["env", "make", "jax"]) == 2
    assert "stele: 'jax' uses an interpreter that Stele has not built. See: stele env list" in capsys.readouterr().err


def test_a_built_interpreter_does_not_import_packages_of_the_host(add_environment, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "toy.py").write_text("raise SystemExit('the wrong toy')")
    assert builds.make(add_environment()) is True
    assert Path(os.environ["PYTHONPATH"]) == tmp_path


# a wheel as an arm


def test_a_wheel_is_installed_and_its_hash_names_the_environment(tmp_path):
    wheel(tmp_path / "wheels", "numpy", "1.0")
    (tmp_path / "net.py").write_text("")
    model = spec.parse("net.py:build", tmp_path, inputs=None)
    texts = []
    for source in ("SPEED = 1", "SPEED = 2"):
        wheel(tmp_path / "dist", "kernels", "1.5", source=source)
        arm = arms.load(str(tmp_path / "dist" / "kernels-1.5-py3-none-any.whl"), model.needs, arms.Extras())
        builds.make(arm)
        command = [builds.command(arm)[0], "-c", "import kernels; print(kernels.SPEED)"]
        texts.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    assert texts == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kernels-1.5-py3-none-any.whl", "There is no wheel .*kernels-1.5-py3-none-any.whl"),
        ("kernels.whl", "is not the name of a wheel"),
        (
            "kernels-1.5-cp311-cp311-macosx_11_0_arm64.whl",
            "a wheel for macosx_11_0_arm64, not for this machine",
        ),
    ],
)
def test_a_wheel_that_cannot_be_installed_is_refused(tmp_path, name, message):
    path = tmp_path / name
    if "none" not in name:
        path.write_bytes(b"")
    with pytest.raises(SteleError, match=message):
        arms.load(str(path), arms.TASKS, arms.Extras())


@pytest.mark.parametrize(("amd", "expected"), [(True, {"A": "1", "B": "2"}), (False, {"A": "1"})])
def test_a_worker_has_further_variables_on_a_processor_of_amd(monkeypatch, amd, expected):
    monkeypatch.setattr(libraries, "is_amd", lambda: amd)
    environment = Environment("mine", "Mine", "mine", variables={"A": "1"}, on_amd={"B": "2"})
    assert builds.variables_for(environment, None) == expected


@pytest.mark.parametrize("name", ["paddle", "paddle1", "chainer-ideep"])
def test_old_releases_of_mkl_use_fast_kernels_on_amd_except_as_shipped(monkeypatch, name):
    monkeypatch.setattr(libraries, "is_amd", lambda: True)
    described = environments.described()
    assert builds.variables_for(described[name], None)["MKL_DEBUG_CPU_TYPE"] == "5"
    if f"{name}-as-shipped" in described:
        assert "MKL_DEBUG_CPU_TYPE" not in builds.variables_for(described[f"{name}-as-shipped"], None)


# two arms


@pytest.mark.slow
def test_new_has_the_versions_of_old_where_its_requirements_allow_it(tmp_path):
    (tmp_path / "net.py").write_text("")
    model = spec.parse("net.py:build", tmp_path, inputs=None)
    for name, version in (("numpy", "1.0"), ("layers", "1.0"), ("toy", "1.0"), ("toy", "2.0")):
        wheel(tmp_path / "wheels", name, version, requires=["layers"] if name == "toy" else ())
    old = arms.load("toy==1.0", model.needs, arms.Extras())
    builds.make(old)
    wheel(tmp_path / "wheels", "layers", "2.0")
    versions = {}
    for text in ("toy==2.0", "toy==2.0 layers>=2"):
        new = builds.resolved_like(arms.load(text, model.needs, arms.Extras()), old)
        builds.make(new)
        versions[text] = packages.of_environment(new)
    assert (versions["toy==2.0"]["toy"], versions["toy==2.0"]["layers"]) == ("2.0", "1.0")
    assert versions["toy==2.0 layers>=2"]["layers"] == "2.0"


def test_a_gate_builds_the_environments_that_are_missing(add_environment, capsys):
    toy = add_environment()
    assert environments.state(toy).status == "missing"
    preparation.make(toy)
    assert environments.state(toy).status == "ready"
    assert "building toy ..." in capsys.readouterr().err


@pytest.fixture
def load(tmp_path):
    """load(text) -> an arm with a model, not built yet. ``toy`` requires ``layers``."""
    (tmp_path / "net.py").write_text("")
    model = spec.parse("net.py:build", tmp_path, inputs=None)
    for name, version in (
        ("numpy", "1.0"),
        ("layers", "1.0"),
        ("toy", "1.0"),
        ("toy", "2.0"),
        ("toy", "3.0rc1"),
    ):
        wheel(tmp_path / "wheels", name, version, requires=["layers"] if name == "toy" else ())

    def load(text, *more):
        if "\n" in text:
            (tmp_path / "requirements.txt").write_text(text)
        return arms.load(str(tmp_path / "requirements.txt") if "\n" in text else text, model.needs, arms.Extras(more))

    return load


def in_turn(load, tmp_path, old, new):
    """Return OLD and NEW, built one after the other."""
    first = load(old)
    builds.make(first, fresh=True)
    wheel(tmp_path / "wheels", "layers", "2.0")
    second = builds.resolved_like(load(new), first)
    builds.make(second, fresh=True)
    return first, second


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "version"),
    [
        ("toy<=1.0", "toy<=2.0", "2.0"),
        ("toy==1.0", "toy>=1.0", "2.0"),
        ("toy==1.0", "toy", "2.0"),
        ("toy==1.0", "Toy>=1.0", "2.0"),
        ("toy\n-c old.txt\n", "toy\n-c new.txt\n", "2.0"),
        ("toy\n-c old.txt\n", "toy\n", "2.0"),
        ("toy\n", "--pre\ntoy\n", "3.0rc1"),
    ],
)
def test_what_new_states_differently_is_never_taken_from_old(load, tmp_path, old, new, version):
    (tmp_path / "old.txt").write_text("toy==1.0\n")
    (tmp_path / "new.txt").write_text("toy<=2.0\n")
    first, second = in_turn(load, tmp_path, old, new)
    versions = packages.of_environment(second)
    assert (versions["toy"], versions["layers"]) == (version, "1.0")
    assert packages.of_environment(first)["toy"] != version
    packages.require_upgrade(first, second)


def test_what_is_upgraded_decides_which_lock_file_in_the_cache_is_used(load):
    old = load("toy==1.0", "layers==1.0")
    builds.make(old)
    new = load("toy>=1", "layers==1.0")
    other = dataclasses.replace(old, requirements={**old.requirements, "layers<2": "requested"})
    assert builds.resolved_like(new, old).lock != builds.resolved_like(new, other).lock
    assert builds.resolved_like(new, old).lock == builds.resolved_like(new, old).lock


@pytest.mark.parametrize(("old", "new"), [("toy==1.0", "toy<2"), ("toy==2.0", "toy"), ("toy", "toy layers")])
def test_an_upgrade_that_upgrades_nothing_is_refused_with_the_versions(load, tmp_path, old, new):
    first, second = in_turn(load, tmp_path, old, f"{new} layers<2".replace("layers layers", "layers"))
    version = packages.of_environment(first)["toy"]
    with pytest.raises(SteleError) as caught:
        packages.require_upgrade(first, second)
    assert "Nothing is upgraded: " in str(caught.value) and repr(first.name) in str(caught.value)
    assert "layers 1.0" in str(caught.value) and (f"toy {version}" in str(caught.value)) == (old != "toy")


def test_a_gate_in_which_nothing_is_upgraded_is_an_error(load, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load("toy")
    assert entry_point.main(["gate", "toy==2.0", "toy>=1", "--model=net.py:build", "--no-wait"]) == 2
    message = "Nothing is upgraded: 'toy==2.0' and 'toy>=1' select the same packages, both with toy 2.0."
    assert message in capsys.readouterr().err


def test_a_release_may_be_gated_with_itself_and_with_another_build_of_itself(load, tmp_path):
    packages.require_upgrade(*in_turn(load, tmp_path, "toy==2.0", "toy==2.0"))
    first = load("toy==2.0", "layers<2")
    builds.make(first)
    lock = tmp_path / "other.lock"
    lock.write_text(re.sub("sha256:[0-9a-f]+", "sha256:00", first.lock.read_text()))
    packages.require_upgrade(first, dataclasses.replace(load("toy"), lock=lock))


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("toy==1.0", True),
        ("toy[fast]==1.0 ; python_version > '3'", True),
        ("toy===1.0", True),
        ("toy==1.0,<2", True),
        (f"toy @ git+https://example.org/toy@{'0' * 40}", True),
        (f"toy @ git+https://example.org/toy@{'0' * 40}#subdirectory=a", True),
        (f"toy @ file:///dist/toy-1.0-py3-none-any.whl#sha256={'0' * 64}", True),
        ("toy", False),
        ("toy>=1.0", False),
        ("toy==1.*", False),
        ("toy~=1.0", False),
        ("toy @ git+https://example.org/toy@main", False),
        (f"toy @ git+https://example.org/toy@{'0' * 39}", False),
        ("toy @ file:///dist/toy-1.0-py3-none-any.whl", False),
        ("toy @ https://example.org/toy-1.0-py3-none-any.whl#egg=toy", False),
    ],
)
def test_a_requirement_is_exact_if_it_selects_the_same_files_on_every_day(text, exact):
    assert builds.is_exact(text) is exact


@pytest.mark.parametrize("text", ["toy", "toy>=1.0", "toy==1.*", "toy\n"])
def test_a_range_is_resolved_again_for_each_gate(load, tmp_path, text):
    one = load(text)
    preparation.make(one, fresh=True)
    later = "1.5" if "*" in text else "2.5"
    wheel(tmp_path / "wheels", "toy", later)
    preparation.make(one)  # as with --resume
    assert packages.of_environment(one)["toy"] != later
    preparation.make(one, fresh=True)
    assert packages.of_environment(one)["toy"] == later
    assert environments.state(one).status == "ready"


def test_an_exact_requirement_is_resolved_once(load, monkeypatch):
    one = load("toy==1.0 layers==1.0")  # what the worker needs is added without a version
    preparation.make(one, fresh=True)
    monkeypatch.setattr(builds, "lock", lambda *_, **__: pytest.fail("resolved again"))
    preparation.make(one, fresh=True)


def test_without_a_network_a_range_is_what_it_was_and_it_is_said(load, monkeypatch, capsys, tmp_path):
    one = load("toy")
    preparation.make(one, fresh=True)
    wheel(tmp_path / "wheels", "toy", "2.5")
    monkeypatch.setenv("UV_OFFLINE", "1")
    preparation.make(one, fresh=True)
    builds.make(one, fresh=True)
    assert packages.of_environment(one)["toy"] == "2.0"
    assert re.search(r"toy: UV_OFFLINE is set, so the packages are those of \d{4}-", capsys.readouterr().err)


@pytest.mark.parametrize(("options", "fresh"), [([], True), (["--resume=x.jsonl"], False)])
def test_a_resumed_gate_uses_what_its_ranges_were(monkeypatch, tmp_path, options, fresh, capsys):
    seen = []

    def prepare(subject, replaced, *, fresh):
        seen.append(fresh)
        raise SteleError("enough")

    monkeypatch.setattr(preparation, "prepare", prepare)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("")
    (tmp_path / "x.jsonl").write_text("")
    assert entry_point.main(["gate", "toy", "toy<3", "--model=net.py:build", "--no-wait", *options]) == 2
    assert seen == [fresh] and "enough" in capsys.readouterr().err


def test_typed_ranges_are_resolved_again_by_env_make(add_environment, tmp_path):
    add_environment()
    environments.described.cache_clear()
    for version in ("1.5", "1.6"):
        wheel(tmp_path / "wheels", "toy", version)
        assert entry_point.main(["env", "make", "toy>=1"]) == 0
        assert environments.state(environments.load("toy>=1")) == ("ready", version, "")


# the content of an arm that is a file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "name", "later", "message"),
    [
        ("toy==1.0\n", "requirements.txt", "toy==2.0\n", "toy was 1.0 and is now 2.0"),
        ("-r base.txt\n", "base.txt", "toy==2.0\n", "toy was 1.0 and is now 2.0"),
        ("toy\n-c base.txt\n", "base.txt", "toy==2.0\n", "toy was 1.0 and is now 2.0"),
        ("toy==1.0\n", "requirements.txt", "# tested\ntoy==1.0\n", None),
        ("-r base.txt\n", "base.txt", "toy==1.0  # tested\n", None),
    ],
    ids=["file", "included", "constraint", "comment", "comment in the included one"],
)
def test_a_file_of_pins_that_changes_names_the_packages_that_it_selects(load, tmp_path, text, name, later, message):
    (tmp_path / "base.txt").write_text("toy==1.0\n")
    contents = []
    for rewrite in (False, True):
        arm = load(text)
        if rewrite:
            (tmp_path / name).write_text(later)
            arm = load(str(tmp_path / "requirements.txt"))
        builds.make(arm)
        contents.append(content.of_environment(arm))
    assert content.changes(*contents) == message


# an import that fails


def failing(condition):
    return f"import os, sys\nif {condition}: raise ImportError('no such symbol')"


@pytest.mark.slow
def test_an_import_that_fails_in_new_alone_is_broken(add_environment):
    old, new = add_environment("old", release="1.0"), add_environment("new", failing("True"), "1.1")
    builds.make(old)
    [verdict] = preparation.make_new(new, old)
    assert verdict.status == "BROKEN" and "no such symbol" in verdict.message


@pytest.mark.slow
def test_an_import_that_fails_in_both_is_no_fault_of_new(add_environment, monkeypatch):
    source = failing("os.environ.get('TOY_X64') == 'maybe'")
    old, new = add_environment("old", source, "1.0"), add_environment("new", source, "1.1")
    builds.make(old)
    monkeypatch.setenv("TOY_X64", "maybe")
    with pytest.raises(SteleError, match="The import fails in OLD and in NEW, so no release is to blame"):
        preparation.make_new(new, old)
    monkeypatch.delenv("TOY_X64")
    assert preparation.make_new(new, old) == []


@pytest.mark.slow
def test_an_import_that_fails_once_is_no_verdict(add_environment, tmp_path):
    mark = tmp_path / "mark"
    source = failing(f"not os.path.exists({str(mark)!r}) and not open({str(mark)!r}, 'w').close()")
    old, new = add_environment("old", release="1.0"), add_environment("new", source, "1.1")
    builds.make(old)
    assert preparation.make_new(new, old) == [] and mark.exists()
    assert environments.state(new).status == "ready"


def locked_environment(folder, content):
    path = folder / "toy.lock"
    path.write_text(content)
    return Environment("toy", "Toy", "toy", imports=("toy",), python=">=3.10", lock=path)


def test_an_empty_lock_file_is_not_a_lock_of_an_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    toy = locked_environment(tmp_path, "\n")
    toy = dataclasses.replace(toy, requirements={"toy==1.0": "the release"})
    with pytest.raises(SteleError, match=r"toy\.lock contains no packages.*stele env lock toy"):
        builds.make(toy)


def test_the_error_of_a_damaged_lock_file_names_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(SteleError, match=r"Installing 'toy' from .*toy\.lock: "):
        builds.make(locked_environment(tmp_path, "toy==1.0 \\\n    --hash=sha256:12\n"))


def test_a_lock_file_that_is_not_text_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    toy = locked_environment(tmp_path, "toy==1.0\n")
    toy.lock.write_bytes(b"toy==1.0 \xff\n")
    with pytest.raises(SteleError, match=r"toy\.lock"):
        builds.make(toy)


def test_a_build_that_is_a_link_is_removed_without_its_target(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    toy = locked_environment(tmp_path, "toy==1.0\n")
    outside = tmp_path / "outside"
    (outside / "bin").mkdir(parents=True)
    builds.root_folder().mkdir()
    builds.folder(toy).symlink_to(outside)
    assert builds.remove(toy)
    assert not builds.folder(toy).exists()
    assert (outside / "bin").is_dir()
    environments.described.cache_clear()
