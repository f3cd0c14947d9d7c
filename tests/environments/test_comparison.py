"""What changed between two trees, as an installer compares it."""

import pytest

from tests.support.repositories import (
    CFG,
    JAX_OF_PEP_751,
    JAXLIB,
    LOCK,
    MEMBERS,
    NEW,
    OLD,
    ONE_OLD,
    PEP_751,
    POETRY,
    PROJECT,
    SETUP,
    SHA,
    find,
    uv_lock,
)


def test_a_subfolder_has_the_same_changes_under_names_from_the_root(repository):
    folder = repository({"train/reqs.txt": OLD, "uv.lock": LOCK.format("1")}, {"train/reqs.txt": NEW})
    assert find(folder / "train") == find(folder)
    assert find(folder).pairs[0].old == "train/reqs.txt@main"


def test_two_files_with_the_same_change_are_named_and_measured_once(repository):
    names = ("a/requirements.txt", "requirements.txt", "reqs.txt")
    found = find(repository(dict.fromkeys(names, OLD), dict.fromkeys(names, NEW)))
    [pair] = found.pairs
    assert pair.summary.endswith("in a/requirements.txt and reqs.txt and requirements.txt")
    assert found.files == sorted(names)


@pytest.mark.parametrize(
    ("others", "summaries"),
    [
        ({"requirements.txt": "jax=={}\n"}, ["in requirements.txt", "in uv.lock"]),
        ({"train/requirements.txt": "jax=={}\n"}, ["in train/requirements.txt", "in uv.lock"]),
        ({"train/uv.lock": LOCK}, ["in train/uv.lock and uv.lock"]),
    ],
)
def test_a_lock_file_and_another_file_with_the_same_change_are_both_named(repository, others, summaries):
    def all_with(version):
        return {name: text.replace("{}", version) for name, text in {"uv.lock": LOCK, **others}.items()}

    found = find(repository(all_with("0.10.1"), all_with("0.10.2")))
    assert [pair.summary for pair in found.pairs] == [f"jax 0.10.1 to 0.10.2 {one}" for one in summaries]
    assert not (found.ungated or found.blocked)


def test_a_project_and_its_lock_file_with_more_packages_are_one_gate_of_the_lock_file(repository):
    def both(version):
        locked = f'{LOCK}dependencies = [{{ name = "jaxlib" }}]\n{JAXLIB}{MEMBERS}'.replace("{}", version)
        return {"pyproject.toml": PROJECT.format(f"jax=={version}"), "uv.lock": locked}

    found = find(repository(both("0.10.1"), both("0.10.2")))
    [pair] = found.pairs
    assert pair.summary == "jax 0.10.1 to 0.10.2, jaxlib 0.10.1 to 0.10.2 in uv.lock"
    assert not (found.ungated or found.blocked)


def test_two_files_with_other_packages_or_other_changes_are_gated_each(repository):
    files = {"a.txt": OLD, "b.txt": f"{OLD}flax\n", "c.txt": ONE_OLD}
    found = find(repository(files, {"a.txt": NEW, "b.txt": f"{NEW}flax\n", "c.txt": "jax==0.10.0\n"}))
    assert [pair.name for pair in found.pairs] == ["a.txt", "b.txt", "c.txt"]


LOCKED = [
    ("pyproject.toml", PROJECT, "uv.lock", LOCK + MEMBERS),
    ("a/b/pyproject.toml", PROJECT, "a/uv.lock", LOCK + MEMBERS),
    ("pyproject.toml", PROJECT, "poetry.lock", POETRY),
    ("requirements/base.in", "{}\n", "requirements/base.txt", "jax=={}\n"),
    ("setup.cfg", CFG + "{}\n", "requirements.txt", "jax=={}\n"),
    ("setup.py", SETUP, "requirements.txt", "jax=={}\n"),
]


@pytest.mark.parametrize(("project", "wanted", "lock", "text"), LOCKED)
def test_of_a_project_and_its_lock_file_the_lock_file_counts(repository, project, wanted, lock, text):
    def both(version):
        return {project: wanted.replace("{}", f"jax=={version}"), lock: text.replace("{}", version)}

    found = find(repository(both("0.10.1"), both("0.10.2")))
    assert [pair.old for pair in found.pairs] == [f"{lock}@main"]
    assert not found.ungated


@pytest.mark.parametrize(("project", "wanted", "lock", "text"), LOCKED)
def test_a_project_that_its_lock_file_still_fits_changes_nothing_and_one_that_it_does_not_fit_is_an_error(
    repository, project, wanted, lock, text
):
    old = {project: wanted.replace("{}", "jax>=0.9"), lock: text.replace("{}", "0.10.1")}
    folder = repository(old, {project: wanted.replace("{}", "jax>=0.10")})
    assert not (find(folder).pairs or find(folder).ungated)
    (folder / project).write_text(wanted.replace("{}", "jax>=0.11"))
    found = find(folder)
    assert (found.pairs, found.blocked) == ([], True)
    assert found.ungated == [f"{project} requires jax>=0.11, but {lock} has 0.10.1. Lock again."]


def test_a_project_counts_if_its_lock_file_does_not_have_the_package(repository):
    old = {
        "pyproject.toml": PROJECT.format("jax==0.10.1"),
        "uv.lock": LOCK.replace("jax", "numpy").format("2.0"),
    }
    [pair] = find(repository(old, {"pyproject.toml": PROJECT.format("jax==0.10.2")})).pairs
    assert pair.name == "pyproject.toml"


def test_a_file_that_only_limits_a_package_which_another_one_requires_is_not_gated(repository):
    old = {
        "c.txt": OLD,
        "requirements.txt": "jax\n-c c.txt\n",
        "docs/requirements.txt": "sphinx\n-c ../c.txt\n",
    }
    found = find(repository(old, {"c.txt": NEW}))
    assert [pair.name for pair in found.pairs] == ["requirements.txt"]
    assert not found.blocked


def test_a_compiled_file_counts_although_another_one_uses_it_as_a_constraint(repository):
    old = {"requirements.txt": OLD, "dev.in": "pytest\n-c requirements.txt\n", "dev.txt": "pytest==9\n"}
    assert [pair.name for pair in find(repository(old, {"requirements.txt": NEW})).pairs] == ["requirements.txt"]


def test_comments_and_another_spelling_are_no_change(repository):
    old = {"requirements.txt": "jax==0.10.1\nnumpy==1\nFlax==1.0\n", "words.txt": "jax"}
    new = {"requirements.txt": "# why\nJAX == 0.10.1  # why\nNumPy==1.0\nflax==1.0.0\n"}
    found = find(repository(old, new))
    assert (found.pairs, found.ungated, found.blocked) == ([], [], False)
    assert found.files == ["requirements.txt", "words.txt"]


def test_of_two_lock_files_the_nearest_counts(repository):
    def both(version):
        return {
            "z/pyproject.toml": PROJECT.format(f"jax=={version}"),
            "z/uv.lock": LOCK.format(version) + MEMBERS,
        }

    above = LOCK.format("0.9.0") + MEMBERS.replace('"b"', '"z"')
    found = find(repository({**both("0.10.1"), "uv.lock": above}, both("0.10.2")))
    assert ([pair.name for pair in found.pairs], found.ungated) == (["z/uv.lock"], [])


@pytest.mark.parametrize(
    "name",
    [
        "jax-cuda12-plugin",
        "jax-cuda13-pjrt",
        "tensorflow-gpu",
        "tf_keras",
        "keras-nightly",
        "torchaudio",
        "onnxruntime-gpu",
    ],
)
def test_companions_of_a_framework_count(repository, name):
    folder = repository({"requirements.txt": f"{name}==1\n"}, {"requirements.txt": f"{name}==2\n"})
    assert len(find(folder).pairs) == 1


def test_a_project_whose_lock_file_still_fits_is_not_gated_for_another_package(repository):
    project = PROJECT.replace("{}", "jax").replace('"numpy"', '"numpy>=1"')
    lock = (
        LOCK.replace("{}", "1")
        + JAXLIB.replace("jaxlib", "numpy").replace("{}", "2.1")
        + MEMBERS.replace('{ name = "jax" }', '{ name = "jax" }, { name = "numpy" }')
    )
    found = find(
        repository({"pyproject.toml": project, "uv.lock": lock}, {"pyproject.toml": project.replace(">=1", ">=2")})
    )
    assert not (found.pairs or found.ungated or found.notes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("jax~=0.10.0", "jax~=0.10"),
        ("jax~=1.4.0.0", "jax~=1.4.0"),
        ("jax===0.10.0", "jax===0.10"),
        ("jax===0.10", "jax==0.10"),
    ],
)
def test_versions_are_compared_as_an_installer_compares_them(repository, old, new):
    folder = repository({"requirements.txt": f"{old}\n"}, {"requirements.txt": f"{new}\n"})
    [pair] = find(folder).pairs
    assert (pair.contents[0].requirements, pair.contents[1].requirements) == ((old,), (new,))
    [pair] = find(folder, whole_files=False).pairs
    assert (pair.old, pair.new) == (old, new)


@pytest.mark.parametrize(("old", "new"), [("jax==0.10.0", "jax==0.10"), ("jax>=0.10", "jax>=0.10.0")])
def test_a_zero_at_the_end_is_no_change_where_an_installer_ignores_it(repository, old, new):
    found = find(repository({"requirements.txt": f"{old}\n"}, {"requirements.txt": f"{new}\n"}))
    assert not (found.pairs or found.ungated)


GIT = 'git = "https://github.com/jax-ml/jax?rev=main#' + SHA + '"'
AT_GIT = "jax @ git+https://github.com/jax-ml/jax"
SOURCES = "[tool.uv.sources]\njax = {}\n"


@pytest.mark.parametrize("allow_vcs", [True, False])
@pytest.mark.parametrize(
    ("new", "locked"),
    [
        (PROJECT.replace("{}", AT_GIT), uv_lock()),
        (PROJECT.replace("{}", AT_GIT) + "# more\n", uv_lock(GIT.replace("jax-ml", "fork"))),
        (PROJECT.replace("{}", f"{AT_GIT}@abcdef0"), uv_lock(GIT)),
        (PROJECT.replace("{}", "jax>=0.9") + SOURCES.replace("{}", '{ git = "https://x/y", rev = "v1" }'), uv_lock()),
        (PROJECT.replace("{}", "jax>=0.11"), uv_lock(GIT)),
    ],
)  # fmt: skip
def test_a_lock_file_does_not_count_if_it_has_another_source(repository, new, locked, allow_vcs):
    old = {"pyproject.toml": PROJECT.replace("{}", "jax==0.10.1"), "uv.lock": locked}
    found = find(repository(old, {"pyproject.toml": new}), allow_vcs=allow_vcs)
    [line] = found.ungated
    assert "pyproject.toml" in line and "jax" in line
    assert (found.pairs, found.blocked) == ([], True)


@pytest.mark.parametrize("reference", [SHA, SHA[:7]])
def test_a_lock_file_counts_if_it_has_the_commit_that_the_project_names(repository, reference):
    old = {"pyproject.toml": PROJECT.replace("{}", f"{AT_GIT}@main"), "uv.lock": uv_lock(GIT)}
    found = find(repository(old, {"pyproject.toml": PROJECT.replace("{}", f"{AT_GIT}@{reference}")}))
    assert not (found.pairs or found.ungated)


def test_a_lock_file_with_another_commit_is_what_is_gated(repository):
    old = {"pyproject.toml": PROJECT.replace("{}", f"{AT_GIT}@v1"), "uv.lock": uv_lock(GIT)}
    new = {
        "pyproject.toml": PROJECT.replace("{}", f"{AT_GIT}@v2"),
        "uv.lock": uv_lock(GIT.replace(SHA, SHA[::-1])),
    }
    folder = repository(old, new)
    assert [pair.name for pair in find(folder, allow_vcs=True).pairs] == ["uv.lock"]
    [line] = find(folder).ungated
    assert line.startswith("uv.lock:") and find(folder).blocked


@pytest.mark.parametrize("folder", ["other", "b/c", ".."])
def test_a_uv_lock_locks_only_the_projects_that_it_lists(repository, folder):
    name = f"a/{folder}/pyproject.toml" if folder != ".." else "pyproject.toml"
    old = {"a/uv.lock": LOCK.format("0.10.1") + MEMBERS, name: PROJECT.format("jax==0.10.1")}
    found = find(repository(old, {name: PROJECT.format("jax==0.10.2")}))
    assert [pair.summary for pair in found.pairs] == [f"jax 0.10.1 to 0.10.2 in {name}"]


INDEX = "[[tool.uv.index]]\nname = 'a'\nurl = 'https://{}/simple'\nexplicit = true\n"
TORCH = PROJECT.replace("{}", "torch==2.13.0")
POETRY_PROJECT = (
    "[tool.poetry.dependencies]\ntorch = {{ version = '2.13.0', source = 'a' }}\n"
    "[[tool.poetry.source]]\nname = 'a'\nurl = 'https://{}/simple'\npriority = 'explicit'\n"
)


@pytest.mark.parametrize(
    ("old", "new", "summary"),
    [
        (
            TORCH + SOURCES.replace("jax", "torch").replace("{}", '{ git = "https://x/y", rev = "v1" }'),
            TORCH + SOURCES.replace("jax", "torch").replace("{}", '{ git = "https://x/y", rev = "v2" }'),
            "torch git+https://x/y@v1 to git+https://x/y@v2",
        ),
        (
            TORCH,
            TORCH + SOURCES.replace("jax", "torch").replace("{}", '{ url = "https://x/torch.tar.gz" }'),
            "torch 2.13.0 to https://x/torch.tar.gz",
        ),
        (
            TORCH + SOURCES.replace("jax", "Torch").replace("{}", "{ index = 'a' }") + INDEX.format("a"),
            TORCH + SOURCES.replace("jax", "Torch").replace("{}", "{ index = 'a' }") + INDEX.format("b"),
            "torch 2.13.0 from another index",
        ),
        (
            TORCH,
            TORCH + SOURCES.replace("jax", "torch").replace("{}", "[{ index = 'a' }]") + INDEX.format("b"),
            "torch 2.13.0 from another index",
        ),
        (
            TORCH + INDEX.format("a").replace("explicit", "default"),
            TORCH + INDEX.format("b").replace("explicit", "default"),
            "torch 2.13.0 from another index",
        ),
        (POETRY_PROJECT.format("a"), POETRY_PROJECT.format("b"), "torch 2.13.0 from another index"),
    ],
)
def test_where_a_project_takes_a_package_from_is_a_part_of_what_it_requires(repository, old, new, summary):
    folder = repository({"pyproject.toml": old}, {"pyproject.toml": new})
    found = find(folder, allow_vcs=True)
    [pair] = found.pairs
    assert pair.summary == f"{summary} in pyproject.toml" and not found.ungated
    assert pair.contents[0] != pair.contents[1]
    if "git+" in summary:
        assert find(folder).blocked and not find(folder).pairs


POETRY_LOCK = (
    '[[package]]\nname = "torch"\nversion = "2.13.0"\ngroups = ["main"]\n'
    'files = [{ file = "torch.whl", hash = "sha256:DIGEST" }]\nSOURCE[metadata]\npython-versions = ">=3.10"\n'
)
LEGACY = '[package.source]\ntype = "legacy"\nurl = "https://b/simple"\nreference = "b"\n'
PDM_LOCK = (
    '[metadata]\nlock_version = "4.5"\n[[package]]\nname = "torch"\nversion = "2.13.0"\n'
    'files = [{ file = "torch.whl", hash = "sha256:DIGEST" }]\n'
)
PIPFILE_LOCK = (
    '{"_meta": {"sources": [{"name": "a", "url": "https://SOURCE/simple"}]}, "default": {"torch": '
    '{"version": "==2.13.0", "index": "a", "hashes": ["sha256:DIGEST"]}}}'
)
PYLOCK = PEP_751 + (
    '[[packages]]\nname = "torch"\nversion = "2.13.0"\nindex = "https://SOURCE/simple"\n'
    'wheels = [{ url = "https://x/torch-2.13.0-py3-none-any.whl", hashes = { sha256 = "DIGEST" } }]\n'
)


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "how"),
    [
        ("uv.lock", None, "https://a/simple", "https://b/simple", "from another index"),
        ("uv.lock", None, "aa", "bb", "with other hashes"),
        ("requirements.txt", "torch==2.13.0 \\\n    --hash=sha256:DIGEST\n", "aa", "bb", "with other hashes"),
        ("poetry.lock", POETRY_LOCK, "aa", "bb", "with other hashes"),
        ("poetry.lock", POETRY_LOCK, "", LEGACY, "from another index"),
        ("pdm.lock", PDM_LOCK, "aa", "bb", "with other hashes"),
        ("Pipfile.lock", PIPFILE_LOCK, "aa", "bb", "with other hashes"),
        ("Pipfile.lock", PIPFILE_LOCK, "a", "b", "from another index"),
        ("pylock.toml", PYLOCK, "aa", "bb", "with other hashes"),
        ("pylock.toml", PYLOCK, "a", "b", "from another index"),
    ],
)
def test_the_index_and_the_hashes_of_a_locked_package_belong_to_it(repository, name, text, old, new, how):
    def filled(value):
        if text is None:
            locked = uv_lock(digest=value) if "hash" in how else uv_lock(f'registry = "{value}"')
            return locked.replace("jax", "torch").replace("0.10.1", "2.13.0")
        key, other = ("DIGEST", "SOURCE") if "hash" in how else ("SOURCE", "DIGEST")
        return text.replace(key, value).replace(other, "cc" if other == "DIGEST" else "")

    found = find(repository({name: filled(old)}, {name: filled(new)}))
    [pair] = found.pairs
    assert pair.summary == f"torch 2.13.0 {how} in {name}" and not found.ungated
    before, after = pair.contents
    if "hash" in how:
        assert [one.hashes["torch"] for one in pair.contents] == [{"sha256:aa"}, {"sha256:bb"}]
    else:
        assert before.options != after.options and "https://b/simple" in after.options[0]


def test_hashes_that_only_one_side_has_are_no_change(repository):
    hashed = "torch==2.13.0 --hash=sha256:aa\n"
    found = find(repository({"requirements.txt": "torch==2.13.0\n"}, {"requirements.txt": hashed}))
    assert not (found.pairs or found.ungated)


LOCAL_LOCKS = {
    "uv.lock": LOCK + '[[package]]\nname = "torch"\nversion = "2"\nsource = { path = "torch.whl" }\n',
    "poetry.lock": POETRY.replace("[metadata]", "")
    + '[[package]]\nname = "torch"\nversion = "2"\n[package.source]\ntype = "file"\nurl = "torch.whl"\n[metadata]\n',
    "pdm.lock": '[metadata]\nlock_version = "4.5"\n'
    + LOCK.partition("\n")[2]
    + '[[package]]\nname = "torch"\nversion = "2"\npath = "./torch.whl"\n',
    "Pipfile.lock": '{"default": {"jax": {"version": "=={}"}, "torch": {"path": "./torch"}}}',
    "pylock.toml": PEP_751
    + JAX_OF_PEP_751
    + '[[packages]]\nname = "torch"\nversion = "2"\narchive = { path = "torch.whl", hashes = { sha256 = "00" } }\n',
}


@pytest.mark.parametrize("name", LOCAL_LOCKS)
def test_a_framework_that_is_locked_from_a_local_file_is_not_measured_beside_a_change(repository, name):
    old, new = (LOCAL_LOCKS[name].replace("{}", version) for version in ("0.10.1", "0.10.2"))
    found = find(repository({name: old}, {name: new}))
    assert [pair.summary for pair in found.pairs] == [f"jax 0.10.1 to 0.10.2 in {name}"]
    assert "'torch' is a local package, which is not measured" in found.ungated[0] and found.blocked
