"""The index that a requirements file names: what uv gets, what is installed, and no password in any output."""

import hashlib
import json
import sys

import pytest

from stele import __main__ as entry_point
from stele.environments import arms, builds, installer, lockfiles, packages
from stele.environments.arms import Extras, Needs
from stele.environments.environment import Environment
from stele.environments.pins import with_requirements
from stele.errors import SteleError
from stele.text import without_passwords
from tests.support.wheels import use_alone, wheel

HERE = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
SECRET = "https://ada:secret@127.0.0.1:9/simple"  # nothing answers


@pytest.fixture(scope="module")
def uv_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("uv")


@pytest.fixture(autouse=True)
def project(monkeypatch, tmp_path, uv_cache):
    """A folder to work in, an index that has no packages, and wheels in another folder."""
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    use_alone(monkeypatch, tmp_path / "empty", uv_cache)
    (tmp_path / "empty").mkdir()
    monkeypatch.delenv("UV_FIND_LINKS")
    wheel(tmp_path / "project" / "wheels", "toy", "1.0")
    wheel(tmp_path / "project" / "wheels", "toy", "2.0")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def index(folder, name, *versions):
    """Write an index with the releases of a package, and return its URL."""
    for version in versions:
        wheel(folder / name, name, version)
    files = sorted(path.name for path in (folder / name).glob("*.whl"))
    (folder / name / "index.html").write_text("".join(f'<a href="{file}">{file}</a>' for file in files))
    return folder.as_uri()


def environment(text, name="deps/requirements.txt"):
    """Return the environment of a requirements file with this text."""
    locked = lockfiles.read(name, text)
    base = Environment("toy", "Toy", "toy", imports=("toy",))
    return with_requirements(base, "toy", "toy", list(locked.requirements), HERE, locked)


def installed(one):
    builds.make(one)
    return sorted(line.split(" ")[0] for line in one.lock.read_text().splitlines() if "==" in line)


@pytest.mark.parametrize(
    "options", ["--find-links ../wheels", "-f../wheels", "--find-links=wheels", "--no-index -f ../wheels"]
)
def test_a_folder_of_wheels_is_relative_to_the_file_or_to_the_current_folder(options, project):
    (project / "deps").mkdir()
    assert installed(environment(f"{options}\ntoy<2\n")) == ["toy==1.0"]


def test_like_pip_the_best_version_of_all_indexes_is_taken(tmp_path, project):
    first, second = index(tmp_path / "first", "toy", "1.0"), index(tmp_path / "second", "toy", "1.0", "2.0")
    one = environment(f"--extra-index-url {first}\n--extra-index-url={second}\ntoy\n")
    assert installed(one) == ["toy==2.0"]


def test_a_prerelease_is_taken_only_with_the_option(project):
    wheel(project / "wheels", "toy", "3.0rc1")
    assert installed(environment("-f wheels\ntoy\n")) == ["toy==2.0"]
    assert installed(environment("-f wheels\n--pre\ntoy\n")) == ["toy==3.0rc1"]


def test_constraints_limit_what_is_required_and_require_nothing(project):
    wheel(project / "wheels", "layers", "1.0", requires=["toy"])
    locked = lockfiles.read("a.txt", "-f wheels\nlayers\n-c c.txt\n", lambda _: "toy==1.0\nother==7\n")
    base = Environment("toy", "Toy", "toy", imports=("layers",))
    one = with_requirements(base, "toy", "toy", list(locked.requirements), HERE, locked)
    assert installed(one) == ["layers==1.0", "toy==1.0"]


def test_the_constraints_of_a_file_reach_the_environment_of_an_arm(project):
    (project / "requirements.txt").write_text("toy\n-c c.txt\n-f wheels\n")
    (project / "c.txt").write_text("toy==1.0\n")
    arm = arms.load("requirements.txt", Needs(), Extras())
    assert arm.resolution.constraints == ("toy==1.0",)
    assert arm.resolution.options == (f"--find-links {(project / 'wheels').as_uri()}",)


@pytest.mark.parametrize(
    "text", ["toy\n-f wheels\n", "toy\n-i https://example.org\n", "toy\n--pre\n", "toy\n--no-index\n"]
)
def test_the_index_decides_which_lock_file_in_the_cache_is_used(text):
    plain = environment("toy\n")
    assert environment(text).lock != plain.lock
    assert environment(text).lock == environment(text).lock
    assert (
        environment("toy\n-i https://ada:a@example.org\n").lock
        == environment("toy\n-i https://ada:b@example.org\n").lock
    )


def test_constraints_decide_which_lock_file_in_the_cache_is_used():
    def lock(constraint):
        locked = lockfiles.read("a.txt", "toy\n-c c.txt\n", lambda _: constraint)
        return with_requirements(Environment("toy", "Toy", "toy"), "toy", "toy", ["toy"], HERE, locked).lock

    assert len({lock("toy==1"), lock("toy==2"), environment("toy\n").lock}) == 3


def test_a_variable_has_the_password_as_in_pip(monkeypatch):
    monkeypatch.setenv("TOKEN", "secret")
    options = environment("--extra-index-url https://ada:${TOKEN}@example.org/${UNSET}\ntoy\n").resolution.options
    assert options == ("--extra-index-url https://ada:secret@example.org/${UNSET}",)


def test_passwords_are_not_arguments_of_uv_and_other_options_are():
    options = (f"--extra-index-url {SECRET}", "--pre", "--trusted-host example.org", "--no-index")
    assert installer.in_file(options) == [f"--extra-index-url {SECRET}", "--no-index"]
    assert installer.as_arguments(options) == [
        "--prerelease", "allow", "--allow-insecure-host", "example.org", "--index-strategy", "unsafe-best-match",
    ]  # fmt: skip


def test_the_strategy_of_the_user_wins(monkeypatch):
    monkeypatch.setenv("UV_INDEX_STRATEGY", "first-index")
    assert installer.as_arguments((f"-i {SECRET}", f"--extra-index-url {SECRET}")) == []


def test_an_index_that_does_not_answer_is_named_without_its_password(project, capsys, monkeypatch):
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    (project / "net.py").touch()
    (project / "old.txt").write_text(f"--index-url {SECRET}\ntoy==1.0\n")
    (project / "new.txt").write_text(f"--index-url {SECRET}\ntoy==2.0\n")
    command = ["gate", "old.txt", "new.txt", "--model=net.py:build", "--json=gate.json", "--no-wait"]
    assert entry_point.main(command) == 2
    output = "".join(capsys.readouterr())
    assert "the package index did not answer" in output
    assert "options of the index: --index-url https://ada:***@127.0.0.1:9/simple" in output
    assert "secret" not in output
    written = [path for folder in (project, project.parent / "cache") for path in folder.rglob("*") if path.is_file()]
    files = {path.name for path in written if b"secret" in path.read_bytes()}
    assert files == {"old.txt", "new.txt"}


def test_what_uv_says_is_shown_without_passwords():
    assert "secret" not in installer.explain(f"error: {SECRET} failed, and https://ada:secret@example.org/x too")


@pytest.mark.parametrize(
    "line",
    [f"--unknown {SECRET}", f"toy @ {SECRET}/toy-1.0-py3-none-any.whl", f"-r {SECRET}", f"toy = {SECRET}"],
)
def test_an_error_about_a_line_has_no_password(line):
    with pytest.raises(SteleError) as caught:
        lockfiles.read("requirements.txt", line)
    assert "secret" not in str(caught.value) and "requirements.txt, line 1" in str(caught.value)


@pytest.mark.parametrize("arm", [f"toy @ {SECRET}/toy", f"toy==1 -i {SECRET}", f"toy = {SECRET}"])
def test_an_error_about_an_arm_has_no_password(arm, capsys):
    assert entry_point.main(["gate", arm, "toy==1", "--no-wait"]) == 2
    assert "https://ada:***@127.0.0.1:9/simple" in (error := capsys.readouterr().err) and "secret" not in error


def test_the_name_of_an_arm_has_no_password(project):
    text = f"toy @ git+{SECRET}/toy"
    arm = arms.load(text, Needs(), Extras(allow_vcs=True))
    assert arm.name == arm.label == "toy @ git+https://ada:***@127.0.0.1:9/simple/toy"
    assert "ada:secret" in next(iter(arm.requirements))


def test_a_package_from_a_url_is_listed_without_a_password(tmp_path):
    (tmp_path / "a.lock").write_text(f"toy @ {SECRET}/toy-1.0-py3-none-any.whl\n")
    shown = "https://ada:***@127.0.0.1:9/simple/toy-1.0-py3-none-any.whl"
    assert packages.of_lock(tmp_path / "a.lock") == {"toy": shown}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://example.org/simple", "https://example.org/simple"),
        ("https://ada:secret@example.org/x@v1", "https://ada:***@example.org/x@v1"),
        ("https://:secret@example.org", "https://:***@example.org"),
        ("https://secret@example.org", "https://***@example.org"),
        ("git+ssh://git@example.org/x@v1", "git+ssh://git@example.org/x@v1"),
        ("git+ssh://git:secret@example.org/x", "git+ssh://git:***@example.org/x"),
        ("https://ada:sec/ret@example.org/x", "https://ada:***@example.org/x"),
        ("https://ada:se@cret@example.org/x", "https://ada:***@example.org/x"),
        ("x @ git+https://example.org:8080/x@v1", "x @ git+https://example.org:8080/x@v1"),
        ("http://[::1]:80/x@v1", "http://[::1]:80/x@v1"),
        ("'https://a:secret@x' and \"https://b:secret@y\"", "'https://a:***@x' and \"https://b:***@y\""),
        ("ada@example.org", "ada@example.org"),
        ("https://example.org/x?a=1&token=secret#sha256=0", "https://example.org/x?a=1&token=***#sha256=0"),
        ("https://example.org/x?Password=secret", "https://example.org/x?Password=***"),
        ("https://example.org/x?X-Amz-Signature=secret&v=2", "https://example.org/x?X-Amz-Signature=***&v=2"),
        ("https://example.org/x?sig=a%2F=&api_key=secret b", "https://example.org/x?sig=***&api_key=*** b"),
        (
            "https://example.org/x?keys=1&tokens=2#egg=x&sig=3",
            "https://example.org/x?keys=1&tokens=2#egg=x&sig=***",
        ),
        ("a ?token=open is no URL", "a ?token=open is no URL"),
    ],
)
def test_a_password_in_a_url_is_hidden(text, shown):
    assert without_passwords(text) == shown


@pytest.mark.slow
def test_a_long_text_takes_little_time_to_search_for_passwords():
    for text in (
        "://?a=" + "_a-" * 10**6,
        "://" + "?a_" * 10**6,
        "a" * 10**6 + "://",
        "://" * 10**5,
        "x://a:" * 10**4,
        json.dumps(["http://x"] * 10**5),
    ):
        without_passwords(text)


def test_options_that_uv_does_not_have_are_named(project):
    locked = lockfiles.read("requirements.txt", "--prefer-binary\n--require-hashes\ntoy\n")
    assert locked.messages == ("requirements.txt, line 1: '--prefer-binary' is ignored: uv has no such option.",)


def test_a_conda_file_gives_the_index_of_its_pip_section():
    text = "dependencies:\n- pip:\n  - --extra-index-url https://example.org/simple\n  - -c c.txt\n  - toy\n"
    locked = lockfiles.read("environment.yml", text, lambda _: "toy==1.0\n")
    assert (locked.options, locked.constraints) == (
        ("--extra-index-url https://example.org/simple",),
        ("toy==1.0",),
    )


@pytest.mark.parametrize(
    "option",
    [
        "--index-url https://example.org/simple",
        "--extra-index-url https://example.org/simple",
        "--find-links https://example.org/wheels",
        "--trusted-host example.org",
        "--no-binary toy",
        "--only-binary toy",
        "--no-index",
        "--pre",
    ],
)
def test_every_option_of_the_index_is_given_to_uv(option):
    options = environment(f"{option}\ntoy\n").resolution.options
    assert options == (option,)
    given = [*installer.in_file(options), *installer.as_arguments(options)]
    assert given and {option.split()[-1], "allow"} & {word for line in given for word in line.split()}


def test_the_users_default_index_wins_over_that_of_the_file(tmp_path, project, monkeypatch):
    theirs, own = index(tmp_path / "theirs", "toy", "2.0"), index(tmp_path / "own", "toy", "1.0")
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    assert installed(environment(f"--index-url {theirs}\ntoy\n")) == ["toy==2.0"]
    monkeypatch.setenv("UV_DEFAULT_INDEX", own)
    assert installed(environment(f"--index-url {theirs}\ntoy<9\n")) == ["toy==1.0"]


@pytest.fixture
def lock(monkeypatch):
    """lock(**variables) -> the lock file of ``toy`` with these variables of uv."""

    def lock(**variables):
        with monkeypatch.context() as patched:
            for name, value in variables.items():
                patched.setenv(name, value)
            return environment("toy\n").lock

    return lock


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("UV_INDEX", "https://example.org/simple"),
        ("UV_DEFAULT_INDEX", "https://example.org/simple"),
        ("UV_FIND_LINKS", "wheels"),
        ("UV_INDEX_STRATEGY", "unsafe-best-match"),
        ("UV_CONSTRAINT", "none.txt"),
        ("UV_EXCLUDE_NEWER", "2026-01-01"),
        ("UV_PRERELEASE", "allow"),
        ("UV_RESOLUTION", "lowest"),
        ("UV_TORCH_BACKEND", "cpu"),
        ("UV_NO_BINARY", "1"),
        ("UV_OF_A_LATER_RELEASE", "1"),
    ],
)
def test_a_variable_of_uv_that_decides_selects_another_lock_file(lock, name, value):
    assert lock(**{name: value}) != lock() and lock(**{name: value}) == lock(**{name: value})


@pytest.mark.parametrize("name", ["UV_CONSTRAINT", "UV_OVERRIDE", "UV_BUILD_CONSTRAINT", "UV_CONFIG_FILE"])
def test_the_content_of_a_file_that_a_variable_of_uv_names_selects_another_lock_file(lock, project, name):
    (project / "second.txt").write_text("b")
    found = []
    for text in ("toy<2", "toy<3", "toy<2"):
        (project / "limits.txt").write_text(text)
        value = "limits.txt" if name == "UV_CONFIG_FILE" else f"second.txt {project / 'limits.txt'}"
        found.append(lock(**{name: value}))
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("UV_CACHE_DIR", "cache"),
        ("UV_HTTP_TIMEOUT", "90"),
        ("UV_OFFLINE", "1"),
        ("UV_INDEX_OURS_PASSWORD", "secret"),
        ("UV_RUN_RECURSION_DEPTH", "1"),
    ],
)
def test_a_variable_of_uv_that_decides_nothing_selects_no_other_lock_file(lock, name, value):
    assert lock(**{name: value}) == lock()


def test_a_password_in_a_variable_of_uv_selects_no_other_lock_file(lock):
    one, two = (f"https://ada:{word}@example.org/simple?token={word}" for word in ("a", "b"))
    assert lock(UV_INDEX=one) == lock(UV_INDEX=two) != lock()


def test_files_with_settings_of_uv_are_read_only_if_a_variable_names_one(project, monkeypatch):
    wheel(project / "wheels", "toy", "3.0rc1")
    (project / "uv.toml").write_text('prerelease = "allow"\n')
    (project / "pyproject.toml").write_text('[tool.uv]\nprerelease = "allow"\n')
    assert installed(environment("-f wheels\ntoy\n")) == ["toy==2.0"]
    monkeypatch.setenv("UV_CONFIG_FILE", "uv.toml")
    assert installed(environment("-f wheels\ntoy\n")) == ["toy==3.0rc1"]


def hash_of(folder, version="1.0"):
    content = (folder / "toy" / f"toy-{version}-py3-none-any.whl").read_bytes()
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def two_indexes(tmp_path):
    """The folders of two indexes with other files of toy 1.0."""
    for name, source in (("first", ""), ("second", "x = 1")):
        wheel(tmp_path / name / "toy", "toy", "1.0", source)
        index(tmp_path / name, "toy")
    return tmp_path / "first", tmp_path / "second"


def uv_lock(registry, digest):
    return (
        'version = 1\nrequires-python = ">=3.10"\n[[package]]\nname = "toy"\nversion = "1.0"\n'
        f'source = {{ registry = "{registry}" }}\nwheels = [{{ url = "https://x/toy.whl", hash = "{digest}" }}]\n'
    )


def pip_file(registry, digest):
    return f"--extra-index-url {registry}\ntoy==1.0 --hash={digest}\n"


@pytest.mark.parametrize(("name", "text"), [("uv.lock", uv_lock), ("requirements.txt", pip_file)])
def test_a_locked_package_is_installed_from_its_index_with_one_of_its_hashes(two_indexes, name, text):
    for folder in two_indexes:
        one = environment(text(folder.as_uri(), hash_of(folder)), name)
        assert installed(one) == ["toy==1.0"]
        assert hash_of(folder) in one.lock.read_text()


@pytest.mark.parametrize(("name", "text"), [("uv.lock", uv_lock), ("requirements.txt", pip_file)])
def test_a_package_whose_index_has_other_files_than_the_lock_file_is_refused(two_indexes, name, text):
    first, second = two_indexes
    one = environment(text(first.as_uri(), hash_of(second)), name)
    with pytest.raises(SteleError, match=r"toy==1.0: the package index has other files than the lock file"):
        builds.make(one)
    assert not one.lock.exists()


def test_the_hashes_of_new_win_over_those_of_old_at_the_same_version(two_indexes):
    old, new = (environment(pip_file(one.as_uri(), hash_of(one))) for one in two_indexes)
    builds.make(old)
    new = builds.resolved_like(new, old)
    builds.make(new)
    assert hash_of(two_indexes[1]) in new.lock.read_text()
    assert hash_of(two_indexes[0]) not in new.lock.read_text()


def test_hashes_decide_which_lock_file_in_the_cache_is_used():
    locks = {environment(f"toy==1.0{text}\n").lock for text in ("", " --hash=sha256:a", " --hash=sha256:b")}
    assert len(locks) == 3
