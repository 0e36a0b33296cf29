# SPDX-License-Identifier: Apache-2.0
"""Model-operator descriptors: YAML files of single operator calls.

Both forms of spec/test-frameworks.md, "Model-operator descriptors (RFC 0186)".
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from torch_spyre.testing import operators
from torch_spyre.testing.located import InputError, Located, nearest, read

#: What an ``init`` takes: argument -> whether it has to be there.
INITS: dict[str, dict[str, bool]] = {
    "rand": {"low": False, "high": False},
    "randint": {"low": False, "high": True},
    "xavier": {},
    "randn": {},
    "zeros": {},
    "ones": {},
    "arange": {},
    "eye": {},
    "full": {"fill_value": True},
}
DTYPES = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    **{
        n: d
        for n in dir(torch)
        if isinstance(d := getattr(torch, n), torch.dtype) and n != "half"
    },
}
_DEFAULT_KEYS = ("dtype", "seed", "rtol", "atol")
_CASE_KEYS = (
    *("name", "op", "inputs", "attrs", "kwmap", "marks", "description"),
    *_DEFAULT_KEYS,
)
_TENSOR_KEYS = (
    *("shape", "stride", "storage_offset", "device", "dtype", "init", "init_args"),
)
_INPUT_KINDS = ("tensor", "tensor_list", "value", "py")
#: How far apart the seeds of a list of tensors are in configurations of suites.
SUITE_LIST_STEP = 7
#: The largest tensor that is made, in elements.
MOST_ELEMENTS = 1 << 32


@dataclass(frozen=True)
class TensorInput:
    """A tensor to make; strides and offset in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    storage_offset: int
    dtype: torch.dtype
    device: str | None
    init: str
    init_args: tuple[tuple[str, float], ...]
    #: Added to the seed of a case.
    shift: int


@dataclass
class Case:
    """One call of an operator."""

    model: str
    name: str
    op: str
    #: TensorInput, a tuple of them, or a plain value.
    inputs: list[Any]
    attrs: dict[str, Any]
    kwmap: dict[str, Any]
    marks: tuple[str, ...]
    description: str
    dtype: torch.dtype
    seed: int | None
    rtol: float
    atol: float
    file: str
    line: int
    tags: tuple[str, ...] = field(default=())

    @property
    def key(self) -> str:
        """Equal for cases that run the same: neither model, tolerances nor marks."""
        parts = [self.op, self.dtype, self.seed, self.attrs, self.kwmap, self.inputs]
        return json.dumps(parts, default=repr, sort_keys=True)

    @property
    def keywords(self) -> dict[str, Any]:
        """All keyword arguments, devices as they stand in the file."""
        return {**self.attrs, **self.kwmap}


def dtype_of(value: Located) -> torch.dtype:
    """A dtype by any of its names. Raises InputError."""
    name = value.text().removeprefix("torch.")
    if name not in DTYPES:
        raise value.error(f"{name!r} is no dtype; {nearest(name, DTYPES)}")
    return DTYPES[name]


def evaluate(value: Located) -> Any:
    """A ``py`` input: constants, tuples, lists, sign, None, Ellipsis, inf, nan, slice.

    Raises InputError for everything else.
    """
    text = str(value.plain())
    names = {"None": None, "Ellipsis": Ellipsis, "inf": math.inf, "nan": math.nan}

    def walk(node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Tuple():
                return tuple(walk(e) for e in node.elts)
            case ast.List():
                return [walk(e) for e in node.elts]
            case ast.UnaryOp(op=ast.USub()):
                return -walk(node.operand)
            case ast.UnaryOp(op=ast.UAdd()):
                return +walk(node.operand)
            case ast.Name() if node.id in names:
                return names[node.id]
            case ast.Call(func=ast.Name(id="slice"), keywords=[]) if (
                1 <= len(node.args) <= 3
            ):
                return slice(*(walk(a) for a in node.args))
        raise value.error(
            f"{ast.unparse(node)}: expected constants, tuples, lists, a sign, None, "
            "Ellipsis, inf, nan or slice(...)"
        )

    try:
        return walk(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise value.error(f"{text!r} is no such expression: {error}") from error


def _literal(value: Any) -> Any:
    """A string as the literal that it is, any other as it is."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def _tensor(value: Located, default: torch.dtype, shift: int) -> TensorInput:
    keys = value.mapping(_TENSOR_KEYS)
    if "shape" not in keys:
        raise value.error("a tensor needs a shape, such as [2, 64]")
    shape = keys["shape"].integers(0)
    if math.prod(shape) > MOST_ELEMENTS:
        raise keys["shape"].error(f"more than {MOST_ELEMENTS} elements")
    stride = keys["stride"].integers(0) if "stride" in keys else None
    if stride is not None and len(stride) != len(shape):
        raise keys["stride"].error(
            f"{len(stride)} strides for a shape of {len(shape)} dimensions"
        )
    offset = keys["storage_offset"].integer(0) if "storage_offset" in keys else 0
    strides = stride or ()
    pairs = zip(shape, strides, strict=False)
    if offset + sum((n - 1) * s for n, s in pairs if n) >= MOST_ELEMENTS:
        raise value.error(f"its storage has more than {MOST_ELEMENTS} elements")
    dtype = dtype_of(keys["dtype"]) if "dtype" in keys else default
    init = keys["init"].choice(INITS) if "init" in keys else "rand"
    allowed, args = INITS[init], {}
    given = keys["init_args"].mapping() if "init_args" in keys else {}
    for name, number in given.items():
        if name not in allowed:
            takes = ", ".join(allowed) or "no arguments"
            raise number.error(f"{init} takes {takes}")
        args[name] = number.number()
    for name, is_needed in allowed.items():
        if is_needed and name not in args:
            raise value.error(f"init {init} needs init_args with {name}")
    _check_init(value, init, args, shape)
    device = keys["device"].text() if "device" in keys else None
    items = tuple(sorted(args.items()))
    return TensorInput(shape, stride, offset, dtype, device, init, items, shift)


def _check_init(
    value: Located, init: str, args: dict[str, float], shape: tuple[int, ...]
) -> None:
    low, high = int(args.get("low", 0)), int(args.get("high", 1))
    if init in ("rand", "randint") and not low <= high:
        raise value.error(f"{init} from {low} up to {high}, which is below")
    if init == "randint" and (high < 0 or high == low):
        raise value.error(f"randint needs a high above its low {low}, found {high}")
    ranks = {"xavier": (2, None), "eye": (2, 2), "arange": (1, 1)}
    if init in ranks:
        least, most = ranks[init]
        if len(shape) < least or (most is not None and len(shape) > most):
            needed = f"{least}" if most else f"at least {least}"
            raise value.error(
                f"init {init} needs {needed} dimensions, found {len(shape)}"
            )


def parse_input(
    value: Located, number: int, dtype: torch.dtype, list_step: int = 1
) -> Any:
    """An input of a case: TensorInput, a tuple of them, or a plain value.

    ``number`` counts inputs; seeds in a list of tensors are ``list_step`` apart.
    """
    keys = value.mapping()
    if len(keys) != 1 or next(iter(keys)) not in _INPUT_KINDS:
        found = ", ".join(keys) or "none"
        raise value.error(
            f"an input has one key of {', '.join(_INPUT_KINDS)}; found {found}"
        )
    ((kind, item),) = keys.items()
    if kind == "tensor":
        return _tensor(item, dtype, 1000 * number)
    if kind == "tensor_list":
        return tuple(
            # An element is a tensor, or has it below the key.
            _tensor(t.mapping().get("tensor", t), dtype, 1000 * number + list_step * j)
            for j, t in enumerate(item.items())
        )
    if kind == "py":
        return evaluate(item)
    plain = item.plain()
    if isinstance(plain, list):
        return tuple(plain)
    if plain is not None and not isinstance(plain, (bool, int, float, str)):
        raise item.error("a value is a number, text, true, false, null or a list")
    return _literal(plain)


def parse_keywords(value: Located) -> dict[str, Any]:
    """Keyword arguments by the rules of ``kwmap``."""
    result: dict[str, Any] = {}
    for name, item in value.mapping().items():
        if name.endswith("dtype"):
            result[name] = dtype_of(item)
        elif name == "device":
            result[name] = item.text()
        else:
            result[name] = _literal(item.plain())
    return result


@dataclass(frozen=True)
class _Defaults:
    dtype: torch.dtype = torch.float16
    seed: int | None = None
    rtol: float = 5e-3
    atol: float = 5e-3

    def with_keys(self, keys: dict[str, Located]) -> _Defaults:
        """Those that a mapping has in place of these."""
        return _Defaults(
            dtype_of(keys["dtype"]) if "dtype" in keys else self.dtype,
            keys["seed"].integer(0, 2**63 - 1) if "seed" in keys else self.seed,
            keys["rtol"].number(0) if "rtol" in keys else self.rtol,
            keys["atol"].number(0) if "atol" in keys else self.atol,
        )


def _operator(value: Located, keywords: dict[str, Any]) -> str:
    name = value.text()
    if operators.find(name, keywords) is None:
        raise value.error(
            f"unknown operator {name!r}; {nearest(name, operators.known_operators())}"
        )
    return name


def _case(
    value: Located, model: str, default_op: Located | None, defaults: _Defaults
) -> Case:
    keys = value.mapping(_CASE_KEYS)
    if "name" not in keys:
        raise value.error("a case needs a name")
    own = defaults.with_keys(keys)
    attrs = keys["attrs"].mapping() if "attrs" in keys else {}
    plain = {n: a.plain() for n, a in attrs.items()}
    kwmap = parse_keywords(keys["kwmap"]) if "kwmap" in keys else {}
    op = keys.get("op", default_op)
    if op is None:
        raise value.error("a case needs an op, or the file one for all cases")
    inputs = keys["inputs"].items() if "inputs" in keys else []
    description = keys["description"].plain() if "description" in keys else ""
    return Case(
        model=model,
        name=keys["name"].text(),
        op=_operator(op, {**plain, **kwmap}),
        inputs=[parse_input(v, i, own.dtype) for i, v in enumerate(inputs)],
        attrs=plain,
        kwmap=kwmap,
        marks=tuple(keys["marks"].texts()) if "marks" in keys else (),
        description=str(description or ""),
        dtype=own.dtype,
        seed=own.seed,
        rtol=own.rtol,
        atol=own.atol,
        file=value.file,
        line=value.line,
    )


def load(path: str | Path) -> list[Case]:
    """The cases of a file of either form. Raises InputError with file and line."""
    root = read(path)
    keys = root.mapping(
        ("model", "defaults", "default", "op", "cases", "test_suite_config")
    )
    if "test_suite_config" in keys:
        cases = _load_suite(keys["test_suite_config"], Path(path).stem)
    elif "cases" in keys:
        model = keys["model"].text() if "model" in keys else Path(path).stem
        # The RFC and the template write `default`.
        stated = keys.get("defaults", keys.get("default"))
        values = stated.mapping(_DEFAULT_KEYS) if stated else {}
        defaults = _Defaults().with_keys(values)
        cases = [
            _case(v, model, keys.get("op"), defaults) for v in keys["cases"].items()
        ]
    else:
        raise root.error("expected cases, or a test_suite_config")
    first: dict[str, int] = {}
    for case in cases:
        if case.name in first:
            raise InputError(
                case.file,
                case.line,
                f"case {case.name}: named so before, in line {first[case.name]}",
            )
        first[case.name] = case.line
    return cases


# --- the second form -----------------------------------------------------------


def _load_suite(value: Located, stem: str) -> list[Case]:
    """Items of ``edits.ops.include`` of the tests named ``test_model_ops_db``."""
    suite = value.mapping(("files", "global"))
    shared = suite["global"].mapping() if "global" in suite else {}
    seed = None
    if "input_config" in shared:
        config = shared["input_config"].mapping(("seed",))
        seed = config["seed"].integer(0) if "seed" in config else None
    precision: dict[torch.dtype, tuple[float, float]] = {}
    dtypes = shared["supported_dtypes"].items() if "supported_dtypes" in shared else []
    for item in dtypes:
        if not item.is_mapping:
            continue
        keys = item.mapping(("name", "precision", "force_xfail", "description"))
        if "precision" in keys and "name" in keys:
            bounds = keys["precision"].mapping(("atol", "rtol"))
            atol, rtol = (
                bounds[n].number(0) if n in bounds else 5e-3 for n in ("atol", "rtol")
            )
            precision[dtype_of(keys["name"])] = (atol, rtol)
    cases: list[Case] = []
    for file in suite["files"].items() if "files" in suite else []:
        tests = file.mapping().get("tests")
        for test in tests.items() if tests else []:
            keys = test.mapping()
            names = keys["names"].texts() if "names" in keys else []
            if not any(n.endswith("test_model_ops_db") for n in names):
                continue
            tags = keys["tags"].texts() if "tags" in keys else []
            ops = keys["edits"].mapping().get("ops") if "edits" in keys else None
            included = ops.mapping().get("include") if ops else None
            for op in included.items() if included else []:
                cases.append(_suite_case(op, stem, len(cases), seed, precision, tags))
    return cases


def _suite_case(
    value: Located,
    model: str,
    number: int,
    seed: int | None,
    precision: dict[torch.dtype, tuple[float, float]],
    tags: Sequence[str],
) -> Case:
    keys = value.mapping()
    if "name" not in keys:
        raise value.error("an operator needs a name")
    sample = (
        keys["sample_inputs_func"].mapping() if "sample_inputs_func" in keys else {}
    )
    args = sample["args"].items() if "args" in sample else []
    inputs = [
        parse_input(v, i, torch.float16, SUITE_LIST_STEP) for i, v in enumerate(args)
    ]
    kwargs = parse_keywords(sample["kwargs"]) if "kwargs" in sample else {}
    flat = [t for i in inputs for t in (i if isinstance(i, tuple) else (i,))]
    dtype = next((t.dtype for t in flat if isinstance(t, TensorInput)), torch.float16)
    atol, rtol = precision.get(dtype, (5e-3, 5e-3))
    own = keys["tags"].texts() if "tags" in keys else []
    description = keys["description"].plain() if "description" in keys else ""
    op = _operator(keys["name"], kwargs)
    return Case(
        model=model,
        name=f"{op}.{number + 1}",
        op=op,
        inputs=inputs,
        attrs={},
        kwmap=kwargs,
        marks=(),
        description=str(description or ""),
        dtype=dtype,
        seed=seed,
        rtol=rtol,
        atol=atol,
        file=value.file,
        line=value.line,
        tags=(*tags, *own),
    )


def load_all(paths: Sequence[str]) -> list[Case]:
    """The cases of files, and of all YAML files in folders but ``template.yaml``."""
    files: list[Path] = []
    for name in paths:
        path = Path(name)
        if path.is_dir():
            found = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
            found = [f for f in found if f.stem != "template"]
            if not found:
                raise InputError(name, 0, "the folder has no .yaml files")
            files += found
        else:
            files.append(path)
    return [case for file in files for case in load(file)]
