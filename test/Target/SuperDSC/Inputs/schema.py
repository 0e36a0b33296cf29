# SPDX-License-Identifier: Apache-2.0
"""Run the JSON schema against files that are valid, broken, and of wrong types.

Usage: schema.py OUTPUT INPUTS REFERENCE

OUTPUT holds schema.json and the folder `broken`; REFERENCE may not be there. Also checks that every rule in
TableGen has a broken example.
"""

import copy
import json
import re
import sys
from pathlib import Path

import jsonschema
from execute import run

ROOT = Path(__file__).resolve().parents[4]
# What breaks the form; the other rules are between values.
FORM = {
    "SDSC-DIM-C1",
    "SDSC-FORM-C1",
    "SDSC-FORM-C2",
    "SDSC-FORM-C3",
    "SDSC-LABEL-C1",
    "SDSC-OP-C1",
}
# Not about the content of a JSON file: links, duplicate keys.
NOT_JSON = {"SDSC-FILE-C1", "SDSC-FILE-C2"}


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


def check_types(is_valid, file):
    """Each number as a string, each string as a number, each leaf as a list."""
    content = json.loads(file.read_text())
    count = 0
    for path in leaves(content):
        value = content
        for key in path:
            value = value[key]
        for wrong in (5 if isinstance(value, str) else "5", [], None):
            count += 1
            if is_valid(replace(content, path, wrong)):
                sys.exit(f"{file}: {wrong!r} at {path} is taken")
    return count


def main():
    root, inputs = Path(sys.argv[1]), Path(sys.argv[2])
    schema = json.loads((root / "schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    is_valid = jsonschema.Draft202012Validator(schema).is_valid

    files = [
        ROOT / "docs" / "internals" / "superdsc" / f"{n}.json"
        for n in ("asbuilt", "spec")
    ]
    for planned in sorted(
        [*inputs.glob("planned/*.mlir"), *inputs.glob("more/*.mlir")]
    ):
        for flags in ([], ["--superdsc-flavor=spec"], ["--symbolic-args"]):
            folder = root / (planned.stem + "".join(flags))
            run("spyre-translate", "--to-superdsc", *flags, planned, "-o", folder)
            files += folder.rglob("sdsc*.json")
    reference = sorted(Path(sys.argv[3], "superdsc").glob("*/sdsc*.json"))
    for file in files + reference:
        if not is_valid(json.loads(file.read_text())):
            sys.exit(f"{file} is refused")
    print(f"{len(files)} files of ours and {len(reference)} references: taken")

    print(
        sum(check_types(is_valid, file) for file in files[:3]), "wrong types: refused"
    )

    folders = {path.name: path for path in (root / "broken").iterdir()}
    text = (ROOT / "include/Spyre/Dialect/SDSCBundle/IR/SDSCBundleRules.td").read_text()
    rules = set(re.findall(r"- (SDSC-[A-Z]+-C\d+):", text))
    examples = {name for name in folders if name.startswith("SDSC-")}
    if rules != examples:
        sys.exit(f"rules without an example, or the other way: {rules ^ examples}")
    for name in sorted(rules - NOT_JSON):
        found = sorted(folders[name].glob("sdsc*.json"))
        refused = not all(is_valid(json.loads(file.read_text())) for file in found)
        if refused != (name in FORM):
            sys.exit(f"{name} is {'refused' if refused else 'taken'}")
    print(f"{len(rules)} rules with one broken example each")


if __name__ == "__main__":
    main()
