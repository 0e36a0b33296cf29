# SPDX-License-Identifier: Apache-2.0
"""What the package changes in torch is what docs/internals/device.md says."""

import importlib
import re
import sys
import warnings
from pathlib import Path
from types import CellType, FunctionType

import torch
import torch_spyre
from torch_spyre import compile_backend

PACKAGE = Path(torch_spyre.__file__).parent
PAGE = Path(__file__).parents[2] / "docs/internals/device.md"
EMPTY = CellType()
#: Modules that the package waits for.
LATE = (
    "torch._dynamo.convert_frame",
    "torch._inductor.compile_fx",
    "torch._inductor.utils",
    "torch.nested._internal.ops",
    "torch.nn.attention.flex_attention",
)


def is_ours(value):
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if isinstance(value, FunctionType):
        # Decorators such as contextmanager make functions around ours.
        cells = (
            cell.cell_contents for cell in value.__closure__ or () if cell != EMPTY
        )
        inside = [value, *(f for f in cells if isinstance(f, FunctionType))]
        return any(f.__code__.co_filename.startswith(f"{PACKAGE}/") for f in inside)
    return isinstance(value, type) and value.__module__.startswith("torch_spyre")


def changed():
    """Our functions and classes in torch's modules and classes -> all their names."""
    owners = {
        id(module): (name, module)
        for name, module in list(sys.modules.items())
        if name.startswith("torch.") or name == "torch"
    }
    del owners[id(torch.spyre)]
    for _, module in list(owners.values()):
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__.split(".")[0] == "torch":
                name = f"{value.__module__}.{value.__qualname__}"
                owners.setdefault(id(value), (name, value))
    found = {}
    for name, owner in owners.values():
        for attribute, value in list(vars(owner).items()):
            if is_ours(value):
                found.setdefault(id(value), set()).add(f"{name}.{attribute}")
    return found


def documented(heading):
    """The names of torch that a list of the page begins its entries with."""
    section = PAGE.read_text().split(f"\n{heading}\n")[1].split("\n\n")[0]
    entries = re.findall(r"^- ((?:`torch\.[^`]+`(?:, | and )?)+):", section, re.M)
    return {name for entry in entries for name in re.findall("`([^`]+)`", entry)}


def assert_documented(found, heading):
    names = documented(heading)
    assert names
    for alternatives in found.values():
        assert alternatives & names, f"{PAGE.name} lacks {sorted(alternatives)}"
    assert names <= set().union(*found.values())


def test_functions_that_are_replaced():
    for name in LATE:
        importlib.import_module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_documented(changed(), "These functions and classes are ours:")


def test_functions_that_are_replaced_during_a_compilation(monkeypatch):
    inside = []
    original = compile_backend.kept_by_pytorch

    def look(gm, options):
        inside.append(changed())
        return original(gm, options)

    monkeypatch.setattr(compile_backend, "kept_by_pytorch", look)
    torch._dynamo.reset()
    x = torch.ones(3, dtype=torch.float16, device="spyre")
    before = changed()
    torch.compile(lambda x: x + 1, backend="spyre")(x)
    (found,) = inside
    new = {key: names for key, names in found.items() if key not in before}
    heading = "While Dynamo compiles for the backend `spyre`, these are ours, too:"
    assert_documented(new, heading)
    assert changed().keys() == before.keys()
