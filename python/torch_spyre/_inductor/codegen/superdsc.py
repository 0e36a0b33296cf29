# SPDX-License-Identifier: Apache-2.0
"""One operation of a specification as one file of a SuperDSC bundle.

docs/spec/superdsc.md, "SuperDSC JSON", has the rules. A file is a dict with the members
of the class ``Sdsc`` of the compiler's ``superdsc/Model/Model.h``, which writes it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch_spyre import _C
from torch_spyre._inductor import config
from torch_spyre._inductor.codegen.coordinates import Place, locate
from torch_spyre._inductor.constants import (
    BATCH_MATMUL_FP8_OP,
    BATCH_MATMUL_OP,
    DL16TOFP32_OP,
    FP8TODL16_OP,
    FP32TODL16_OP,
    RESTICKIFY_OP,
    SEGMENT_SIZE,
    TOPK_OPS,
)
from torch_spyre._inductor.op_spec import OpSpec, TensorArg
from torch_spyre.errors import Unsupported

STICK_BYTES = 128
_MATMULS = {BATCH_MATMUL_OP, BATCH_MATMUL_FP8_OP}
_CONVERSIONS = {DL16TOFP32_OP, FP32TODL16_OP, FP8TODL16_OP}
_NAMES = ("mb", "x", "y", "i", "j", "ki", "kj")
_MATMUL_NAMES = ("ki", "kj", "y", "x", "mb", "out", "in")
_LABELS = ("OUTPUT", "KERNEL", "INPUT", "KERNEL_IDX")
_MATMUL_LABELS = ("INPUT", "KERNEL", "OUTPUT", "KERNEL_IDX")
#: What padding counts as in a reduction; zero in others.
_MASKS = {"max": -math.inf, "min": math.inf}
#: Members of ``superdsc::Address::Base``.
_NO_BASE, _POOL, _ARGUMENT = range(3)
_PRESENT, _ABSENT, _ABSENT_STICK = 1, -1, -2


@dataclass(frozen=True)
class Loop:
    """A loop around operations of a bundle."""

    count: int
    #: Its counter's value, where it is written out.
    value: int | None
    #: Symbols that its iterations advance by the range of an operation; None: the
    #: symbol that the operation names at the loop's position.
    symbols: tuple[Any, ...] | None


@dataclass
class Symbols:
    """Numbers of the addresses that a bundle computes; unique in the bundle."""

    next: int = -1
    #: Of the file that is being described: address -> number.
    known: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def begin_file(self) -> None:
        """Numbers of one file are not those of another."""
        self.known = {}

    def number(self, address: tuple[Any, ...]) -> int:
        """The number of an address."""
        if address not in self.known:
            self.known[address] = self.next
            self.next -= 1
        return self.known[address]

    def operands(self) -> tuple[list[int], list[dict[str, Any]]]:
        """Numbers and addresses of the file."""
        names = ("base", "argument", "offset", "strides")
        addresses = [dict(zip(names, own, strict=True)) for own in self.known]
        return list(self.known.values()), addresses


class Description:
    """An operation, taken apart.

    Raises Unsupported for what SuperDSC, or this translation, cannot say.
    """

    def __init__(self, spec: OpSpec, index: int) -> None:
        self.spec = spec
        self.index = index
        self.op = spec.op
        self.is_matmul = spec.op in _MATMULS
        if not spec.args or spec.args[-1].is_input:
            raise Unsupported(
                f"{spec.op} without a tensor that it writes, the last one"
            )
        self.sizes = [_number(own[0], "range") for own in spec.iteration_space.values()]
        self.slices = [
            _number(own[1], "cores") for own in spec.iteration_space.values()
        ]
        loops = {
            symbol: (number, self.sizes[number])
            for number, symbol in enumerate(spec.iteration_space)
        }
        self.places = [
            locate(arg, loops, f"tensor {number} of {spec.op}")
            for number, arg in enumerate(spec.args)
        ]
        self.extents = list(self.sizes)
        if not any(place.stick is not None for place in self.places):
            # A dimension of one stick, of which the tensors have the first lane.
            self._add_loop(self.places[0].stick_size, at=len(self.sizes))
        self._pad()
        if self.op in _CONVERSIONS and len(self.sizes) == 1:
            self._add_loop(1, at=0)
        self.names = self._name_dims()

    @property
    def _output(self) -> Place:
        return self.places[-1]

    @property
    def _is_reduction(self) -> bool:
        return self.spec.is_reduction and not self.is_matmul and self.op not in TOPK_OPS

    def _add_loop(self, size: int, at: int) -> None:
        for own in (self.sizes, self.extents):
            own.insert(at, size)
        self.slices.insert(at, 1)
        if at == 0:
            self.places = [_shifted(place) for place in self.places]

    def _pad(self) -> None:
        """Rounds loops along sticks up to whole ones."""
        if self.is_matmul or self.op in _CONVERSIONS or self.op == RESTICKIFY_OP:
            padded = self.places
        else:
            padded = [self.places[0] if self._is_reduction else self._output]
        for place in padded:
            if place.stick is None:
                continue
            size = self.sizes[place.stick]
            self.sizes[place.stick] = -(-size // place.stick_size) * place.stick_size
            is_padded = size != self.sizes[place.stick]
            if self.op == RESTICKIFY_OP and is_padded:
                self.slices[place.stick] = 1
        for number, (size, slices) in enumerate(
            zip(self.sizes, self.slices, strict=True)
        ):
            if slices < 1 or size % slices:
                raise Unsupported(
                    f"{self.op}: loop {number} of {size} is not evenly divisible "
                    f"between {slices} cores"
                )
        cores = math.prod(self.slices)
        if cores > config.sencores:
            raise Unsupported(
                f"{self.op}: {cores} cores: exceeds SENCORES ({config.sencores})"
            )

    def _name_dims(self) -> list[str]:
        count = len(self.sizes)
        most = len(_MATMUL_NAMES) if self.is_matmul else len(_NAMES) + 1
        if not 1 <= count <= most:
            raise Unsupported(f"{self.op} over {count} loops: expected 1 to {most}")
        if self.is_matmul:
            return list(_MATMUL_NAMES[-count:])
        return [*_NAMES[: count - 1], "out"]

    def _reduced(self) -> list[int]:
        return [d for d in range(len(self.sizes)) if d not in self._output.steps]

    def _stick_of(self, place: Place) -> tuple[int, int]:
        """The loop and the size of the stick that a tensor is labelled with."""
        for other in (place, *self.places):
            if other.stick is not None:
                return other.stick, other.stick_size
        return len(self.sizes) - 1, place.stick_size

    def _core_order(self) -> list[int]:
        """Loops whose slices neighbouring cores have, the nearest first."""
        dims = list(range(len(self.sizes)))
        reduced = self._reduced()
        is_split = any(self.slices[d] > 1 for d in reduced)
        if (self.is_matmul and config.core_id_k_fast_emission) or (
            self._is_reduction and is_split
        ):
            return [*reduced, *(d for d in dims if d not in reduced)]
        return dims

    def _slices_of_cores(self) -> list[list[int]]:
        """Per core the slice of each loop."""
        order = self._core_order()
        walks = itertools.product(*(range(self.slices[d]) for d in reversed(order)))
        found = []
        for walk in walks:
            own = [0] * len(order)
            for dim, number in zip(reversed(order), walk, strict=True):
                own[dim] = number
            found.append(own)
        return found

    def describe(
        self, loops: Sequence[Loop], symbols: Symbols, is_symbolic: bool
    ) -> dict[str, Any]:
        """The file; what it takes from the bundle is in ``symbols``."""
        labels: dict[tuple[Any, ...], dict[str, Any]] = {}
        tensors = []
        for arg, place in zip(self.spec.args, self.places, strict=True):
            tensors.append(self._describe_tensor(arg, place, labels))
            addresses = self._addresses(arg, place, loops, is_symbolic)
            is_own = isinstance(addresses[0], tuple)
            tensors[-1]["symbolic"] = is_own
            tensors[-1]["addresses"] = (
                [symbols.number(own) for own in addresses] if is_own else addresses
            )
        outputs = [len(tensors) - 1]
        inputs = [n for n, arg in enumerate(self.spec.args) if arg.is_input]
        if self._is_reduction:
            inputs += outputs
        masked, constants = self._masks()
        return {
            "index": self.index,
            "op": self.op,
            "nonstick": self._is_reduction
            and _ABSENT_STICK not in tensors[-1]["scale"],
            "dims": [
                {"name": name, "size": size, "slices": slices, "masked": mask}
                for name, size, slices, mask in zip(
                    self.names, self.sizes, self.slices, masked, strict=True
                )
            ],
            "core_order": self._core_order(),
            "labels": list(labels.values()),
            "tensors": tensors,
            "constants": constants,
            "mask_constant": len(constants) - 1 if any(masked) else -1,
            "unit": "pt" if self.is_matmul else "sfp",
            "format": tensors[inputs[0] if inputs else outputs[0]]["format"],
            "inputs": inputs,
            "outputs": outputs,
        }

    def _describe_tensor(
        self,
        arg: TensorArg,
        place: Place,
        labels: dict[tuple[Any, ...], dict[str, Any]],
    ) -> dict[str, Any]:
        stick, size = self._stick_of(place)
        order = list(place.order)
        if not self.is_matmul:
            order += [d for d in range(len(self.sizes)) if d not in place.order]
        if stick not in order:
            raise Unsupported(f"{self.op} with a tensor without a stick")
        key = (frozenset(order), stick, size)
        if key not in labels:
            names = _MATMUL_LABELS if self.is_matmul else _LABELS
            if len(labels) == len(names):
                raise Unsupported(f"{self.op} with more than four kinds of tensors")
            labels[key] = {
                "name": names[len(labels)],
                "order": order,
                "sticks": [(stick, size)],
            }
        sign = -1 if self.op == RESTICKIFY_OP else 1
        format = arg.device_dtype
        if self.op == "identity" and format == _C.DataFormats.IEEE_INT32:
            # The vendor's name of integers that are only moved.
            format = _C.DataFormats.IEEE_FP32
        return {
            "label": list(labels).index(key),
            "format": format,
            "in_lx": "lx" in arg.allocation,
            "order": order,
            "scale": [
                _PRESENT
                if d in place.steps
                else _ABSENT_STICK
                if d == stick and place.stick is None
                else _ABSENT
                for d in order
            ],
            "gap": [
                sign * (place.extents[d] - self.sizes[d]) if d in place.steps else 0
                for d in order
            ],
        }

    def _addresses(
        self, arg: TensorArg, place: Place, loops: Sequence[Loop], is_symbolic: bool
    ) -> list[Any]:
        """Per core a number of bytes, or a tuple that the bundle computes."""
        ((memory, start),) = arg.allocation.items()
        start = _number(start, "address")
        if memory == "lx":
            return [start] * math.prod(self.slices)
        if memory not in ("hbm", "pool"):
            raise Unsupported(f"{self.op}: memory {memory!r}: expected hbm, lx or pool")
        bytes_per_element = STICK_BYTES / arg.device_dtype.elems_per_stick()

        def steps(dim: int, elements: int) -> int:
            """Bytes from one slice, or tile, of so many elements to the next."""
            if dim not in place.steps:
                return 0
            own, unit = place.steps[dim]
            if own.is_stick:
                if elements % place.stick_size:
                    raise Unsupported(
                        f"{self.op}: {elements} elements of a loop along sticks are "
                        f"not evenly divisible into sticks of {place.stick_size}"
                    )
                elements //= place.stick_size
            return int(elements * unit * bytes_per_element)

        strides = [0] * len(loops)
        if not arg.per_tile_fixed:
            strides = [
                sum(steps(dim, count) for dim, count in advances.items())
                for advances in self._advances(loops)
            ]
        start += int(place.offset * bytes_per_element)
        start += sum(
            stride * loop.value
            for stride, loop in zip(strides, loops, strict=True)
            if loop.value is not None
        )
        open_strides = tuple(
            stride
            for stride, loop in zip(strides, loops, strict=True)
            if loop.value is None
        )
        base, argument = (_POOL, 0) if memory == "pool" else (_ARGUMENT, arg.arg_index)
        if not is_symbolic:
            base, argument = _NO_BASE, 0
        elif base == _ARGUMENT:
            start %= SEGMENT_SIZE
        if base == _ARGUMENT and argument < 0:
            raise Unsupported(f"{self.op}: a tensor in device memory has no arg_index")
        found = []
        for own in self._slices_of_cores():
            offset = start + sum(
                number * steps(dim, self.sizes[dim] // self.slices[dim])
                for dim, number in enumerate(own)
                if number
            )
            is_plain = not is_symbolic and not any(open_strides)
            found.append(offset if is_plain else (base, argument, offset, open_strides))
        return found

    def _advances(self, loops: Sequence[Loop]) -> list[dict[int, int]]:
        """Per loop around the operation, by how many elements it advances its loops."""
        numbers = {symbol: n for n, symbol in enumerate(self.spec.iteration_space)}
        shift = len(self.sizes) - len(numbers) if self.op in _CONVERSIONS else 0
        found: list[dict[int, int]] = []
        inner: dict[Any, int] = {}
        for position in range(len(loops) - 1, -1, -1):
            loop = loops[position]
            symbols = loop.symbols
            if symbols is None:
                symbols = tuple(self.spec.tiled_symbols[position : position + 1])
            advances = {}
            for symbol in symbols:
                if symbol in numbers:
                    dim = numbers[symbol] + shift
                    advances[dim] = self.extents[dim] * inner.get(symbol, 1)
                    inner[symbol] = inner.get(symbol, 1) * loop.count
            found.append(advances)
        return found[::-1]

    def _masks(self) -> tuple[list[int], list[tuple[str, Any, int]]]:
        """Iterations per loop that are padding, and the constants."""
        single = self.places[0].stick_size == _C.DataFormats.IEEE_FP32.elems_per_stick()
        format = _C.DataFormats.IEEE_FP32 if single else _C.DataFormats.SEN169_FP16
        given: Mapping[str, float] = self.spec.op_info.get("constants", {})
        constants = [
            (name, format, _C.encode_constant(float(value), format))
            for name, value in given.items()
        ]
        masked = [0] * len(self.sizes)
        stick = self.places[0].stick
        if self._is_reduction and stick in self._reduced():
            assert stick is not None
            masked[stick] = self.sizes[stick] - self.extents[stick]
        if any(masked):
            bits = _C.encode_constant(_MASKS.get(self.op, 0.0), format)
            constants.append(("samv-maskvalue", format, bits))
        return masked, constants


def _number(value: Any, what: str) -> int:
    try:
        return int(value)
    except TypeError:
        raise Unsupported(f"the {what} {value}, which is no number") from None


def _shifted(place: Place) -> Place:
    """The place behind a loop more, the first one."""
    return Place(
        {dim + 1: own for dim, own in place.steps.items()},
        tuple(dim + 1 for dim in place.order),
        {dim + 1: extent for dim, extent in place.extents.items()},
        None if place.stick is None else place.stick + 1,
        place.stick_size,
        place.offset,
    )


__all__ = ["Description", "Loop", "Symbols"]
