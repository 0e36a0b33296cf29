# SPDX-License-Identifier: Apache-2.0
"""One decision edited in a plan changes exactly the values that say it.

Usage: edit.py PLANNED OUTPUT
"""

import json
import subprocess
import sys
from pathlib import Path


def leaves(value, path=()):
    """Every value of a JSON document by its path."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, number))
    else:
        yield path, value


def write(text, folder):
    folder.mkdir(parents=True)
    planned = folder / "planned.mlir"
    planned.write_text(text)
    subprocess.run(
        ["spyre-translate", "--to-superdsc", planned, "-o", folder / "bundle"],
        check=True,
    )
    return {
        file.name: dict(leaves(json.loads(file.read_text())))
        for file in (folder / "bundle").glob("sdsc_*.json")
    }


def changes(before, after):
    """Paths, with the file's name first, at which two writings differ."""
    assert before.keys() == after.keys()
    missing = object()
    for name in before:
        for path in before[name].keys() | after[name].keys():
            old = before[name].get(path, missing)
            if old != after[name].get(path, missing):
                yield (name, *path)


#: What depends on the number of cores, by the last key that names it.
PER_CORE = {
    "coreFoldProp_",
    "numCoresUsed_",
    "coreIdToDsc_",
    "coreIdToWkSlice_",
    "coreIdToDscSchedule",
    "coreIdsUsed_",
    "startAddressCoreCorelet_",
}


def says_split(path, dim):
    """Whether a value says how `dim` is split."""
    if PER_CORE & set(path):
        return True
    if "numWkSlicesPerDim_" in path or "coordInfo" in path:
        return dim in path
    return "dataStageParam_" in path and path[-1] == f"{dim}_"


def main():
    text, root = Path(sys.argv[1]).read_text(), Path(sys.argv[2])
    before = write(text, root / "before")

    # 4 x 2 cores become 2 x 2: rows per core are 32 in place of 16.
    edited = text.replace("splits = [4, 2]", "splits = [2, 2]")
    edited = edited.replace("[16, 64]", "[32, 64]")
    after = write(edited, root / "split")
    found = list(changes(before, after))
    wrong = [path for path in found if not says_split(path, "mb")]
    assert found and not wrong, wrong
    for name, values in after.items():
        for path, value in values.items():
            if path[1:] == ("numWkSlicesPerDim_", "mb"):
                assert value == 2, name
            if path[-1] == "mb_":
                assert value == (64 if "N_" in path else 32), path
            if path[1:] == ("numWkSlicesPerDim_", "out"):
                assert value == 2, name

    # The intermediate moves by 4096 bytes on every core, and nothing else.
    after = write(text.replace("offset = 0,", "offset = 4096,"), root / "address")
    found = list(changes(before, after))
    expected = [
        (name, *path)
        for name, values in before.items()
        for path, value in values.items()
        if "startAddressCoreCorelet_" in path
        and "data_" in path
        and value == "0"
        and is_lx(before[name], path)
    ]
    assert sorted(map(str, found)) == sorted(map(str, expected)), found
    for name, *path in found:
        assert after[name][tuple(path)] == "4096", path
    print(f"{len(expected)} addresses")


def is_lx(values, path):
    node = path[: path.index("scheduleTree_") + 2]
    return values[(*node, "component_")] == "lx"


if __name__ == "__main__":
    main()
