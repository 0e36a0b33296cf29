# SPDX-License-Identifier: Apache-2.0
"""Hints with which users guide the planner.

This runs the operations of the block tile by tile, in eight parts of the dimension
named M. Names follow the data through operators and views::

    torch_spyre.declare_tensor_dim("M", 8192)
    torch_spyre.name_tensor_dims(x, ["M", "K"])

    @torch.compile(backend="spyre")
    def mlp(x, up, down):
        with torch_spyre.spyre_hint(num_tiles_per_dim={"M": 8}):
            return F.silu(x @ up) @ down
"""

from __future__ import annotations

import difflib
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node, traceback

from torch_spyre import _C
from torch_spyre.errors import Unsupported
from torch_spyre.logging_config import get_logger

_log = get_logger("spyre.inductor")


class HintError(Unsupported, ValueError):
    """A hint that makes no sense."""


class RefusedHint(Unsupported, _C.SpyreError):
    """A hint that the compiler cannot follow."""


#: Prefix of the keys under which FX nodes carry hints.
_PREFIX = "spyre_hint "
#: Key of hints that only get_op_hints() knows.
_OTHERS = "others"
#: Key of a text that says why a hint makes no sense.
_WRONG = "wrong"

#: Keys of hints that mean something to the planner.
_KEYS = ("num_tiles_per_dim", "tiles", "slices", "work_div", "named_dims")
#: Keys that look like one of these, of which a warning has told.
_warned: set[str] = set()

_declared: dict[str, int] = {}
#: Identity of a storage -> names and sizes of the parts of each home dimension, for as
#: long as it is alive.
_names: dict[int, tuple[tuple[tuple[str, int], ...], ...]] = {}


def reset() -> None:
    """Forgets all declared dimensions and the names of all tensors."""
    _declared.clear()
    _names.clear()


def declare_tensor_dim(name: str, size: int) -> None:
    """Declares a dimension; another size for a known name replaces it.

    Raises:
        ValueError: the name is no identifier, or the size not positive.

    """
    _declared[_name(name)] = _positive(size, f"the size of dimension {name!r}")


def name_tensor_dims(tensor: torch.Tensor, names: Iterable[str]) -> torch.Tensor:
    """Names the dimensions of a device tensor's storage, in storage order.

    Returns the tensor.

    Several names may cover one (flattened) dimension: their declared sizes then
    multiply to its extent. A name that was not declared takes the whole dimension.

    Raises:
        TypeError: not a spyre tensor.
        ValueError: the names do not cover the dimensions.

    """
    if not isinstance(tensor, torch.Tensor) or tensor.device.type != "spyre":
        raise TypeError(
            "only tensors on a spyre device have named dimensions: move the tensor "
            "with .to('spyre') first"
        )
    if isinstance(names, str):
        raise HintError(f"names of dimensions must be a list, not {names!r}")
    identity, _, sizes, *_ = _C.tensor_info(tensor)
    remaining = list(names)
    dims = []
    for extent in sizes:
        parts: list[tuple[str, int]] = []
        covered = 1
        while remaining and (not parts or covered < extent):
            name = _name(remaining.pop(0))
            size = _declared.get(name, extent if not parts else 0)
            parts.append((name, size))
            covered *= size
        if covered != extent:
            raise ValueError(
                f"names {parts} do not multiply to a dimension of extent {extent}; "
                f"the storage has sizes {tuple(sizes)}. declare_tensor_dim() says "
                "the size of a name"
            )
        dims.append(tuple(parts))
    if remaining:
        raise ValueError(
            f"names {remaining} are left over; the storage has sizes {tuple(sizes)}: "
            "give one name per dimension, or declare the sizes of its parts"
        )
    if identity not in _names:
        forget = weakref.finalize(tensor.untyped_storage(), _names.pop, identity, None)
        forget.atexit = False
    _names[identity] = tuple(dims)
    return tensor


def are_named() -> bool:
    """Whether any dimension of any storage has a name."""
    return bool(_names)


def names_of(identity: int) -> tuple[tuple[tuple[str, int], ...], ...]:
    """The names given to a storage's dimensions; empty if there are none."""
    return _names.get(identity, ())


def spyre_hint(
    *,
    num_tiles_per_dim: Mapping[str, int] | None = None,
    tiles: Mapping[str, int] | None = None,
    slices: Mapping[str, int] | None = None,
    work_div: Mapping[str, int] | None = None,
    named_dims: Iterable[str] | None = None,
    **others: Any,
) -> Any:
    """A context whose operations are planned as the hint says.

    Without any hint, nothing changes.

    Args:
        num_tiles_per_dim: dimension name -> number of tiles; several names, and
            nested contexts, give nested loops, the first outermost. The same hint
            inside of itself is one.
        tiles: another name for num_tiles_per_dim.
        slices: another name for num_tiles_per_dim.
        work_div: dimension name -> number of cores that share it.
        named_dims: names for the results of operations without named inputs.
        others: kept for ``get_op_hints()``; they mean nothing to the planner. A
            warning tells of one that looks like a mistyped name.

    Raises:
        HintError: a hint makes no sense; in a compiled function, by its first call.

    """
    given = [t for t in (num_tiles_per_dim, tiles, slices) if t is not None]
    hints: list[dict[str, Any]] = []
    if len(given) > 1:
        what = "num_tiles_per_dim, tiles and slices are names of the same argument"
        hints.append({_WRONG: f"{what}: give one of them"})
    hints += _numbers_of("tiles", given[0] if given else {})
    hints += _numbers_of("work_div", work_div or {})
    if isinstance(named_dims, str):
        hints.append({_WRONG: f"named_dims must be a list, not {named_dims!r}"})
    elif named_dims is not None:
        hints.append({"named_dims": list(named_dims)})
    if others:
        hints.append({_OTHERS: others})
    # What is raised in a function that Dynamo traces becomes an error of Dynamo's. So
    # the hints of such a function are checked when its graph is compiled.
    if not torch.compiler.is_compiling():
        _check(hints)
    return traceback.annotate({_PREFIX + str(hints): hints})


def _numbers_of(what: str, numbers: Any) -> list[dict[str, Any]]:
    if not isinstance(numbers, Mapping):
        return [{_WRONG: f"{what} must map names to numbers, but is {numbers!r}"}]
    return [{"dim": name, what: number} for name, number in numbers.items()]


def _check(hints: Iterable[dict[str, Any]]) -> None:
    """Raises HintError for a hint that makes no sense, warns of mistyped ones."""
    for hint in hints:
        if _WRONG in hint:
            raise HintError(f"spyre_hint: {hint[_WRONG]}")
        for key in hint.get(_OTHERS, ()):
            _warn_if_mistyped(key)
        for name in [hint["dim"]] if "dim" in hint else hint.get("named_dims", ()):
            _name(name)
        if "tiles" in hint:
            _positive(hint["tiles"], f"tiles of {hint['dim']!r}")
        elif "work_div" in hint:
            _cores(hint["work_div"], hint["dim"])


def _warn_if_mistyped(key: str) -> None:
    meant = difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.65)
    if meant and key not in _warned:
        _warned.add(key)
        _log.warning(
            "spyre_hint: %s means nothing to the planner; did you mean %s?",
            key,
            meant[0],
        )


def get_op_hints(op: Node) -> dict[str, Any]:
    """The hints of an FX node of a compiled graph, by the names that they have.

    ``tiles`` and ``work_div`` are dicts, outer contexts before inner ones.
    """
    found: dict[str, Any] = {}
    for hint in _hints_of(op):
        if _OTHERS in hint:
            found |= hint[_OTHERS]
        elif "named_dims" in hint:
            found["named_dims"] = hint["named_dims"]
        else:
            what = "tiles" if "tiles" in hint else "work_div"
            found.setdefault(what, {})[hint["dim"]] = hint[what]
    return found


def _annotations(node: Node) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The key and the hints of each context that a node is in, outermost first."""
    for key, hints in (node.meta.get("custom") or {}).items():
        if isinstance(key, str) and key.startswith(_PREFIX):
            yield key, hints


def _hints_of(node: Node) -> Iterator[dict[str, Any]]:
    for _, hints in _annotations(node):
        yield from hints


def are_given(nodes: Iterable[Node]) -> bool:
    """Whether there are hints for the planner."""
    return any(_OTHERS not in hint for node in nodes for hint in _hints_of(node))


def _followed(
    nodes: Iterable[Node], options: Mapping[str, Any]
) -> Iterator[tuple[Node, str, dict[str, Any]]]:
    """(node, "tiles" or "work_div", hint) of each that the options do not ignore."""
    ignored = {
        "tiles": options.get("ignore_tile_hints"),
        "work_div": options.get("ignore_work_division_hints"),
    }
    for node in nodes:
        for hint in _hints_of(node):
            what = "tiles" if "tiles" in hint else "work_div"
            if "dim" in hint and not ignored[what]:
                yield node, what, hint


def check_hints(nodes: Sequence[Node], options: Mapping[str, Any]) -> None:
    """Checks the hints of nodes.

    Raises:
        HintError: a hint makes no sense.
        KeyError: a hint is on a dimension whose name nobody has given.

    """
    for node in nodes:
        _check(_hints_of(node))
    followed = list(_followed(nodes, options))
    if not followed:
        return
    known = {*_declared}
    for dims in _names.values():
        known.update(name for dim in dims for name, _ in dim)
    # A part may use what another part of its graph names.
    for node in nodes[0].graph.nodes if nodes else ():
        for hint in _hints_of(node):
            known.update(hint.get("named_dims", ()))
    for _, _, hint in followed:
        if hint["dim"] not in known:
            raise KeyError(
                f"a hint names dimension {hint['dim']!r}, which no "
                "declare_tensor_dim() or name_tensor_dims() has named; known are "
                f"{sorted(known)}"
            )


def log_applied(nodes: Iterable[Node], options: Mapping[str, Any]) -> None:
    """Logs each hint that a program, which was compiled from the nodes, follows."""
    for node, what, hint in _followed(nodes, options):
        _log.info(
            "user-hint: %s={%r: %d} of %s", what, hint["dim"], hint[what], node.name
        )


class HintReader:
    """Reads the hints of consecutive FX nodes.

    Equal hints on consecutive nodes are one scope; after a node without them, the
    same hints are another.
    """

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._next = 0

    def read(self, node: Node) -> list[dict[str, Any]]:
        """The hints of a node, outermost scope first."""
        result = []
        scopes = {}
        for key, hints in _annotations(node):
            scope = self._open.get(key)
            if scope is None:
                scope = self._next
                self._next += 1
            scopes[key] = scope
            for hint in hints:
                if _OTHERS not in hint:
                    result.append({**hint, "scope": scope} if "tiles" in hint else hint)
        self._open = scopes
        return result


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise HintError(f"a dimension's name must be an identifier, but is {name!r}")
    return name


def _cores(value: Any, name: Any) -> int:
    what = f"spyre_hint(work_div=...): the cores of {name!r}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise HintError(f"{what} must be an integer, but is {value!r}")
    if value < 1:
        raise HintError(f"{what} must be positive, but is {value}")
    return value


def _positive(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise HintError(f"{what} must be a positive integer, but is {value!r}")
    if value >= 1 << 63:
        raise HintError(f"{what} must fit in 64 bits, but is {value}")
    return value
