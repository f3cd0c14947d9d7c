"""``stele schema`` as a user runs it."""

import json
import re

import jsonschema
import pytest

from stele import __main__ as entry_point
from stele import documents


@pytest.mark.parametrize("name", documents.documents())
def test_each_schema_is_valid(name, capsys):
    assert entry_point.main(["schema", name]) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def test_the_documents_are_listed(capsys):
    assert entry_point.main(["schema"]) == 0
    assert re.search(r"^gate +stele gate --json$", capsys.readouterr().out, re.M)


def test_an_unknown_document_is_an_error(capsys):
    assert entry_point.main(["schema", "gat"]) == 2
    assert "Unknown document 'gat'" in capsys.readouterr().err
