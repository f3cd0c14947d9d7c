"""Requirements files: includes, constraints and comments."""

import pytest

from stele.environments import lockfiles
from stele.environments.lockfiles import read
from stele.errors import SteleError
from tests.support.lock_files import SAMPLES, read_sample

CONSTRAINT = "ml-dtypes==0.4.1"


def test_constraints_are_kept_apart():
    locked = read("requirements.txt", read_sample("requirements.txt"), read_sample)
    assert locked.constraints == (CONSTRAINT,) and CONSTRAINT not in locked.requirements


def test_included_files_are_found_relative_to_the_file_that_names_them():
    files = {"../base.txt": "-r more/gpu.txt\nnumpy==1.26.4", "../more/gpu.txt": "torch==2.5.1"}
    locked = read("deps/dev.txt", "-r ../base.txt", files.__getitem__)
    assert locked.requirements == ("torch==2.5.1", "numpy==1.26.4")


def test_a_comment_ends_a_continued_line_and_the_end_of_the_file_too():
    text = "torch==2.5.1 \\\n  # a comment\nnumpy==1.26.4 ; \\\nos_name != 'dos' # why\njax \\"
    assert read("a.txt", text).requirements == ("torch==2.5.1", 'numpy==1.26.4; os_name != "dos"', "jax")


@pytest.mark.parametrize("line", ["-r a.txt", "-ra.txt", "--requirement a.txt", "--requirement=a.txt"])
def test_every_form_of_include_is_followed(line):
    assert read("b.txt", line, lambda path: {"a.txt": "torch==2.5.1"}[path]).requirements == ("torch==2.5.1",)


def test_an_error_in_an_included_file_names_that_file():
    with pytest.raises(SteleError, match=r"^deps/common.txt, line 1: '-e .'"):
        read("deps/requirements.txt", "-r common.txt", lambda path: "-e .")


def test_an_include_that_cannot_be_read_is_an_error():
    with pytest.raises(SteleError, match=r"line 1: '-r common.txt' names a file that cannot be read: No such"):
        read("requirements.txt", "-r common.txt", lambda path: (SAMPLES / "absent" / path).read_text())


def test_files_that_include_each_other_are_an_error():
    files = {"a.txt": "-r b.txt", "b.txt": "-r a.txt"}
    with pytest.raises(SteleError, match="the files include each other"):
        read("top.txt", "-r a.txt", files.__getitem__)


def test_an_endless_chain_of_includes_is_an_error():
    with pytest.raises(SteleError, match="is nested too deeply"):
        read("top.txt", "-r a.txt", lambda path: f"-r a{path}")


def test_in_an_outline_nothing_is_refused_and_every_requirement_has_a_place():
    content = "-e .\n--unknown x\nTorch==2.5.1\n\nx @ https://example.org/x\n-e git+https://example.org/y#egg=y\n"
    outline = lockfiles.outline("a.txt", content)
    assert [name.partition(" ")[0].strip("@") for name in outline.requirements] == ["Torch==2.5.1", "x", "y"]
    assert [*outline.places.values()] == ["a.txt, line 3", "a.txt, line 5", "a.txt, line 6"]
