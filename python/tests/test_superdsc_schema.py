# SPDX-License-Identifier: Apache-2.0
"""What the schema of SuperDSC for editors takes and refuses."""

import copy
import json
import re

import jsonschema
import pytest
from commands import MORE, PLANNED, REFERENCE_DATA, ROOT, call, needs_tools, run
from sdsc_broken import BROKEN, numbered
from sdsc_bundles import add, looped_add, write

pytestmark = needs_tools

SCHEMA = ROOT / "docs/internals/superdsc/sdsc.schema.json"
FLAGS = [[], ["--superdsc-flavor=spec"], ["--symbolic-args"]]

IS_VALID = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).is_valid
#: Rules whose breaks are of the form; the others are between values, or not about
#: the content of a JSON file: links, duplicate keys.
FORM = {"DIM-C1", "FORM-C1", "FORM-C2", "FORM-C3", "LABEL-C1", "OP-C1"}
NO_CONTENT = {"SDSC-FILE-C1", "SDSC-FILE-C2"}
EXAMPLES = [SCHEMA.with_name("asbuilt.json"), SCHEMA.with_name("spec.json")]


def load(file):
    return json.loads(file.read_text())


def test_schema_is_that_of_the_tables():
    jsonschema.Draft202012Validator.check_schema(load(SCHEMA))
    printed = run("spyre-translate", "--print-superdsc-schema")
    assert printed == SCHEMA.read_text()


@pytest.mark.parametrize(
    "planned",
    sorted([*PLANNED.glob("*.mlir"), *MORE.glob("*.mlir")]),
    ids=lambda p: p.stem,
)
def test_schema_takes_what_is_written(planned, tmp_path):
    for number, flags in enumerate(FLAGS):
        folder = tmp_path / str(number)
        run("spyre-translate", "--to-superdsc", *flags, planned, "-o", folder)
        files = list(folder.rglob("sdsc*.json"))
        assert files and all(IS_VALID(load(file)) for file in files)


@pytest.mark.skipif(not REFERENCE_DATA.is_dir(), reason="no reference data")
def test_schema_takes_the_reference():
    files = sorted(REFERENCE_DATA.glob("superdsc/*/sdsc*.json"))
    assert files and [file for file in files if not IS_VALID(load(file))] == []


def leaves(value, path=()):
    """Paths of all numbers and strings."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            # A string for no constants, else constants of any name.
            if key != "constantInfo_":
                yield from leaves(inner, (*path, key))
    else:
        yield path


def replace(value, path, leaf):
    result = copy.deepcopy(value)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = leaf
    return result


@pytest.mark.parametrize("example", ["asbuilt", "spec", "abs_4x64"])
def test_schema_refuses_other_types(example, tmp_path):
    """Each number as a string, each string as a number, each leaf as a list."""
    file = SCHEMA.with_name(f"{example}.json")
    if not file.exists():
        planned = PLANNED / f"{example}.mlir"
        run("spyre-translate", "--to-superdsc", planned, "-o", tmp_path / "bundle")
        file = tmp_path / "bundle" / "sdsc_0.json"
    content = load(file)
    paths = list(leaves(content))
    assert paths
    for path in paths:
        value = content
        for key in path:
            value = value[key]
        for wrong in (5 if isinstance(value, str) else "5", [], None):
            assert not IS_VALID(replace(content, path, wrong)), (path, wrong)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_schema_takes_examples(example):
    assert IS_VALID(load(example))


@pytest.mark.parametrize(
    "broken", list(numbered(b for b in BROKEN if b.rule not in NO_CONTENT))
)
def test_schema_finds_what_breaks_the_form(broken):
    files = [v for k, v in broken.files.items() if re.search(r"sdsc\w*\.json$", k)]
    assert files
    taken = all(map(IS_VALID, json.loads(json.dumps(files))))
    assert taken == (broken.rule.removeprefix("SDSC-") not in FORM)


@pytest.mark.parametrize("make", [add, looped_add])
def test_empty_mapping_of_symbols(make, tmp_path):
    """A tile of a loop up to a size has no symbols: it may say so."""
    files = make()
    ((_, body),) = files["sdsc_0.json"].items()
    (dsc,) = body["dscs_"]
    dsc["add"] = {"dimToSymbolMapping_": {}} | dsc["add"]
    write(tmp_path / "given", files)
    done = call("spyre-translate", "--validate-superdsc", tmp_path / "given")
    assert done.returncode == 0, done.stdout
    again = ["--rewrite-superdsc", tmp_path / "given", "-o", tmp_path / "again"]
    run("spyre-translate", *again)
    written = load(tmp_path / "again" / "sdsc_0.json")
    assert written == files["sdsc_0.json"]
    assert IS_VALID(written)
    run("spyre-translate", "--from-superdsc", tmp_path / "given")
