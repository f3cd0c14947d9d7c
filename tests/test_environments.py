"""Environments: descriptions, pins, and whether each can be used."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stele import environments
from stele.environments import Environment, builds, description, installer, libraries, packages
from stele.errors import SteleError
from stele.models import arms, spec
from stele_worker import frameworks

MAINTAINED = (
    "jax", "tensorflow", "torch", "keras-jax", "keras-tensorflow", "keras-torch",
)  # fmt: skip
ROSETTA = (
    "caffe2", "chainer", "cntk", "keras2-cntk", "keras2-tensorflow", "keras2-theano", "knet", "lasagne",
    "mxnet-gluon", "mxnet-module", "onnxruntime", "openvino", "paddle", "paddle1", "r-keras", "tensorflow1",
)  # fmt: skip


@pytest.fixture(autouse=True)
def clear_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    environments.described.cache_clear()
    yield
    environments.described.cache_clear()


def test_the_maintained_frameworks_come_first():
    assert environments.first_modes()[: len(MAINTAINED)] == MAINTAINED


def test_every_framework_of_the_rosetta_stone_has_an_environment():
    assert set(ROSETTA) <= set(environments.names())


@pytest.mark.parametrize("name", environments.names())
def test_every_description_is_complete(name):
    environment = environments.load(name)
    assert environment.label and environment.framework
    assert all(
        reason
        for reason in [
            *environment.requirements.values(),
            *environment.absent.values(),
            *environment.programs.values(),
        ]
    )


@pytest.mark.parametrize("name", [name for name in environments.names() if environments.load(name).lock])
def test_every_lock_file_pins_the_requirements_with_hashes(name):
    environment = environments.load(name)
    lock = environment.lock.read_text()
    for requirement in environment.requirements:
        distribution, _, release = requirement.partition("==")
        package = distribution.partition("[")[0].lower()
        assert f"\n{package}=={release}" in "\n" + lock.lower(), requirement
    pins = [line for line in lock.splitlines() if "==" in line]
    assert len(pins) <= lock.count("--hash=sha256:")
    assert "://" not in lock


def test_an_unknown_name_suggests_the_most_similar_one():
    with pytest.raises(SteleError, match=r"Unknown framework 'pytorch'. Did you mean 'torch'\?"):
        environments.load("pytorch")


def test_an_unknown_name_without_a_similar_one_lists_all():
    with pytest.raises(
        SteleError, match=r"Known: jax, jax-as-shipped, jax-constants, jax-op-by-op, tensorflow"
    ):
        environments.load("abacus")


def test_a_missing_package_comes_with_the_command_to_install_it():
    missing = Environment(name="jax", label="JAX", framework="jax", imports=("sys", "no_such_module"))
    state = environments.state(missing)
    assert state.status == "missing"
    assert state.reason == "no_such_module is not installed. Run: pip install 'pytest-stele[jax]'"


def test_the_state_is_found_without_importing_the_framework(tmp_path):
    (tmp_path / "explosive.py").write_text("raise SystemExit('imported')")
    code = (
        "from stele.environments import Environment, state\n"
        "assert state(Environment(name='x', label='', framework='', imports=('explosive',))).status == 'ready'"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_the_user_can_add_an_environment(tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text('label = "Mine"\nframework = "mine"\ncommand = ["run", "me"]\n')
    monkeypatch.setenv("STELE_ENVIRONMENTS", str(tmp_path))
    assert builds.command(environments.load("mine")) == ("run", "me")


def test_an_invalid_description_is_an_error_with_its_path_and_the_cause(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('label = "Mine"\nframwork = "typo"')
    with pytest.raises(SteleError, match=r"mine\.toml does not describe an environment: .*framwork"):
        description.read(path)


def test_each_mode_after_the_first_is_an_environment(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'label = "Mine"\nframework = "mine"\ndevices = ["cpu", "cuda"]\n[modes.eager]\nlabel = "eager"\n'
        '[modes.graph]\nlabel = "compiled"\nreason = "faster"\ndevices = ["cuda"]\nphases = ["infer"]\n'
        'variables = { A = "1" }\nprograms = { cc = "install it" }\nvaries = "no seed"\n'
    )
    eager, graph = description.read(path)
    assert (eager.name, eager.label, eager.mode, eager.base) == ("mine", "Mine", "eager", None)
    assert (graph.name, graph.label, graph.mode, graph.base) == (
        "mine-graph",
        "Mine, compiled",
        "graph",
        "mine",
    )
    assert (graph.devices, graph.variables, graph.programs) == (("cuda",), {"A": "1"}, {"cc": "install it"})
    assert (eager.varies, graph.varies) == (None, "no seed")
    where = {"device": "cuda", "precision": "fp32"}
    assert graph.why_absent("gru", "train", **where) == "Mine, compiled has infer only: faster"
    assert graph.why_absent("gru", "infer", **where) is None


def test_an_environment_without_modes_may_have_one_phase(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('label = "Mine"\nframework = "mine"\nphases = ["infer"]')
    [mine] = description.read(path)
    assert mine.why_absent("gru", "train", device="cpu", precision="fp32") == "Mine has infer only"


@pytest.mark.parametrize("mode", ["label = 3", 'reason = "no label"', 'label = "x"\nspeed = 3'])
def test_a_mode_that_is_not_one_is_refused(tmp_path, mode):
    path = tmp_path / "mine.toml"
    path.write_text(f'label = "Mine"\nframework = "mine"\n[modes.eager]\n{mode}\n')
    with pytest.raises(SteleError, match=r"does not describe an environment: modes.*eager"):
        description.read(path)


@pytest.mark.parametrize("name", sorted(set(environments.names()) - set(environments.first_modes())))
def test_every_mode_of_a_python_framework_is_one_that_its_module_knows(name):
    environment = environments.load(name)
    source = (Path(frameworks.__file__).parent / f"{environment.framework}.py").read_text()
    assert f'"{environment.mode}"' in source
    assert environment.modes[environment.mode]["reason"]


def test_an_environment_without_time_to_accuracy_still_trains():
    where = {"device": "cpu", "precision": "fp32"}
    for name in ("r-keras", "knet"):
        environment = environments.load(name)
        assert environment.why_absent("cnn", "train", **where) is None
        assert "does not time epochs" in environment.why_absent("cnn", "time-to-accuracy", **where)
    infers = Environment(name="x", label="X", framework="x", phases=("infer",))
    assert infers.why_absent("cnn", "time-to-accuracy", **where) == "X has infer only"


def test_an_unsupported_cell_has_a_reason():
    environment = Environment(
        name="x", label="X", framework="x", devices=("cpu",), absent={"cnn train": "no training"}
    )
    on_cpu = {"device": "cpu", "precision": "fp32"}
    assert environment.why_absent("cnn", "train", **on_cpu) == "no training"
    assert environment.why_absent("cnn", "infer", **on_cpu) is None
    assert (
        environment.why_absent("cnn", "infer", device="cuda", precision="fp32")
        == "X supports only cpu here, not cuda"
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("jax==0.9.2", "jax"),
        ("jax==0.9.2 jaxlib==0.9.2", "jax"),
        ("tensorflow-cpu==2.20.0", "tensorflow"),
        ("tensorflow==2.20.0", "tensorflow"),
        ("tensorflow==1.14.0", "tensorflow1"),
        ("keras==3.14.1", "keras-tensorflow"),
        ("keras==3.14.1 jax==0.9.2", "keras-jax"),
        ("keras==2.2.4", "keras2-tensorflow"),
        ("keras-torch@keras==3.14.1", "keras-torch"),
        ("paddlepaddle==3.2.0", "paddle"),
        ("torch==2.12.0", "torch"),
    ],
)
def test_a_requirement_selects_an_environment(text, name):
    pinned, described = environments.load(text), environments.load(name)
    assert (pinned.name, pinned.framework, pinned.variables) == (
        text,
        described.framework,
        described.variables,
    )
    assert set(text.partition("@")[2].split() or text.split()) <= set(pinned.requirements)
    packages = [requirement.partition("==")[0] for requirement in pinned.requirements]
    assert len(packages) == len(set(packages))


def test_an_interpreter_can_be_pinned_with_a_package():
    assert environments.load("jax==0.4.30 python==3.10").python == "==3.10"


def test_a_requirement_of_an_unknown_package_names_it():
    with pytest.raises(SteleError, match=r"Unknown framework 'requests'\. Known: jax, .*: stele env list"):
        environments.load("requests==2.0")


def test_a_requirement_with_a_typing_error_suggests_the_most_similar_framework():
    with pytest.raises(
        SteleError, match=r"Unknown framework 'jaxx'\. Did you mean 'jax'\? List all with: stele"
    ):
        environments.load("jaxx==0.10")


def test_a_release_that_no_environment_supports_is_an_error():
    with pytest.raises(
        SteleError, match=r"No environment supports 'tensorflow-cpu==1\.14\.0'\. List all with:"
    ):
        environments.load("tensorflow-cpu==1.14.0")


def test_an_invalid_requirement_is_an_error():
    with pytest.raises(SteleError, match="is not a requirement such as jax==0.9.2"):
        environments.load("jax==0.9.2 ==")


def test_a_pin_that_was_not_built_is_missing():
    state = environments.state(environments.load("jax==0.9.2"))
    assert state == ("missing", None, "not built. Build it with: stele env make 'jax==0.9.2'")


def test_a_path_that_is_not_a_working_interpreter_is_an_error(tmp_path):
    with pytest.raises(SteleError, match="no/python is not a working Python interpreter"):
        environments.load(f"{tmp_path}/no/python")


def test_an_interpreter_with_one_framework_selects_its_environment(tmp_path):
    described = [Environment(name="one", label="One", framework="one", imports=("json",))]
    described.append(Environment(name="two", label="Two", framework="two", imports=("no_such_module",)))
    environment = environments.pins.parse(sys.executable, described)
    assert (environment.framework, builds.command(environment)) == (
        "one",
        (sys.executable, "-m", "stele_worker"),
    )


def test_the_path_of_an_interpreter_becomes_absolute_and_its_link_stays(tmp_path, monkeypatch):
    """A worker starts in another folder; and the link is what makes an interpreter a virtual environment's."""
    (tmp_path / "v/bin").mkdir(parents=True)
    (tmp_path / "v/bin/python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    described = [Environment(name="one", label="One", framework="one", imports=("json",))]
    for text in ("v/bin/python", "one@v/bin/python"):
        environment = environments.pins.parse(text, described)
        assert environment.name == text
        assert builds.command(environment)[0] == f"{tmp_path}/v/bin/python"


def test_a_relative_folder_of_descriptions_becomes_absolute(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/one.toml").write_text(
        'label = "One"\nframework = "one"\npython = "==3.8.*"\n[requirements]\n"one==1.0" = "a test"\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STELE_ENVIRONMENTS", "mine")
    assert environments.load("one").lock == tmp_path / "mine/one.lock"


@pytest.fixture
def user_folder(tmp_path, monkeypatch):
    """A folder of the user with a package that raises an error at its import, as the current folder."""
    folder = tmp_path / "checkout"
    (folder / "json").mkdir(parents=True)
    (folder / "json/__init__.py").write_text("raise SystemError('the package of the user')")
    monkeypatch.chdir(folder)
    return folder


def test_a_package_in_the_users_folder_does_not_shadow_an_installed_one(user_folder):
    described = [Environment(name="one", label="One", framework="one", imports=("json",))]
    assert environments.pins.parse(sys.executable, described).framework == "one"
    one = Environment(name="one", label="One", framework="one", imports=("json",), python="==3.*")
    builds.check_imports(one, Path(sys.prefix))
    assert "pytest" in packages.of_interpreter(Path(sys.executable))


def test_a_relative_path_of_uv_still_leads_into_the_users_folder(user_folder, monkeypatch):
    monkeypatch.setenv("UV_FIND_LINKS", "my wheels,https://example.org/wheels,/opt/wheels")
    monkeypatch.setenv("UV_CONSTRAINT", "a.txt b.txt")
    variables = installer.uv_variables()
    assert variables["UV_FIND_LINKS"] == f"{user_folder}/my wheels,https://example.org/wheels,/opt/wheels"
    assert variables["UV_CONSTRAINT"] == f"{user_folder}/a.txt {user_folder}/b.txt"


@pytest.mark.parametrize("name", ["..", "a/../b", "ü\n$(x)", "x" * 300, "jax==0.9.2 " * 30])
def test_any_name_becomes_a_file_name(name, tmp_path):
    slug = description.slug(name)
    (tmp_path / f"{slug}.json").write_text("")
    assert [path.name for path in tmp_path.iterdir()] == [f"{slug}.json"]
    assert slug.isascii() and len(slug) <= description.LONGEST


def test_two_long_names_become_two_file_names():
    names = ["x" * 300 + ending for ending in "ab"]
    assert len({description.slug(name) for name in names}) == 2


def test_an_interpreter_with_two_frameworks_is_an_error_that_lists_them(tmp_path):
    described = [Environment(name=name, label="", framework="", imports=("json",)) for name in ("one", "two")]
    with pytest.raises(SteleError, match=r"has several frameworks\. Choose one: one@\S+ or two@\S+"):
        environments.pins.parse(sys.executable, described)
    assert environments.pins.parse(f"two@{sys.executable}", described).name == f"two@{sys.executable}"


def test_a_missing_program_comes_with_the_way_to_install_it():
    environment = Environment(
        name="knet", label="", framework="knet", programs={"no-such-program": "See julialang.org"}
    )
    assert libraries.missing_message(environment) == "no-such-program is not on PATH. See julialang.org"


def test_a_missing_library_comes_with_its_package():
    environment = Environment(
        name="x", label="", framework="x", libraries={"libnone.so.1": {"package": "libnone1"}}
    )
    assert "libnone.so.1 is not installed. Install the Debian package libnone1" in libraries.missing_message(
        environment
    )


def test_a_missing_interpreter_comes_with_the_command_to_install_it():
    assert installer.find_interpreter("==2.1.*") is None
    assert (
        "Install it, for example with `pyenv install 2.1`, or run: stele env make old --python PATH"
        in installer.absence_message("old", "==2.1.*")
    )


def test_the_interpreters_of_pyenv_replace_its_shims_on_the_search_path(tmp_path, monkeypatch):
    """A shim is a script that fails if no such interpreter is selected in pyenv."""
    shims = [str(tmp_path / "shims"), str(tmp_path / "plugins" / "pyenv-virtualenv" / "shims")]
    interpreters = [tmp_path / "versions" / release / "bin" for release in ("3.10.2", "3.9.1")]
    for folder in interpreters:
        folder.mkdir(parents=True)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join(["/first", *shims, "/usr/bin"]))
    folders = installer.search_path.__wrapped__().split(os.pathsep)
    assert folders[1:] == ["/first", *map(str, interpreters), "/usr/bin"]


def test_this_interpreter_is_found():
    versions = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    path = installer.find_interpreter(versions)
    assert path is not None and Path(path).exists()


@pytest.mark.parametrize("name", ["lasagne", "keras2-theano"])
def test_theano_keeps_what_it_compiled_with_its_build(name):
    assert environments.load(name).variables["THEANO_FLAGS"] == "base_compiledir={folder}/theano"


@pytest.mark.parametrize("with_model", [False, True])
@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("onnxruntime-gpu==1.20.1", {"onnxruntime"}),
        ("paddlepaddle-gpu==3.2.0", {"paddlepaddle"}),
        ("paddlepaddle==3.2.0", {"paddlepaddle-gpu"}),
        ("tensorflow==2.20.0", {"tensorflow-cpu"}),
        ("keras==3.14.1 tensorflow==2.20.0", {"tensorflow-cpu"}),
    ],
)
def test_only_one_build_of_a_framework_is_installed(text, others, with_model, tmp_path):
    (tmp_path / "net.py").write_text("")
    model = spec.parse("net.py:build", tmp_path, inputs=None) if with_model else None
    for arm in (arms.load(text, model, arms.Extras()), *(() if with_model else (environments.load(text),))):
        names = {re.split(r"\W*[=<>\[]", one)[0] for one in arm.requirements}
        assert {part.partition("==")[0] for part in text.split()} <= names and names.isdisjoint(others)
        assert ("gpu" not in text) or arm.devices is None


def test_a_build_for_a_gpu_that_is_added_with_an_option_replaces_the_other_one(tmp_path):
    (tmp_path / "net.py").write_text("")
    model = spec.parse("net.py:build", tmp_path, inputs=None)
    arm = arms.load("onnx==1.17.0", model, arms.Extras(("onnxruntime-gpu==1.20.1",)))
    assert (
        list(arm.requirements) == ["onnx==1.17.0", "onnxruntime-gpu==1.20.1", "numpy"] and arm.devices is None
    )
