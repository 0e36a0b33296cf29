# SPDX-License-Identifier: Apache-2.0
"""Random arguments for operators, as their schemas allow."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import torch
from torch import Tensor
from torch_spyre.aten_table import table_operators
from torch_spyre.decompositions.table import DECOMPOSITIONS

#: Undefined results: of places that are written more than once, sizes that do not fit
#: factors, indices that the CPU does not check, matrices without an inverse, equal
#: elements in any order. Others have random numbers, or are for PyTorch's own use.
_LEFT_OUT = re.compile(
    r"empty|_unsafe|_impl|scatter\.|index_put|index_copy|aten\.put|upsample|embedding|"
    r"backward|_batch_norm|native_|_int_mm|_weight|_scaled|lift|copy_|_pack|quant|rand|"
    r"slow_conv|histc|segment_reduce|convolution|grouped|_softmax|_jagged|_fake|_fused|"
    r"prims|spyre|rms_norm|bincount|grid_sampl|mode|sort|searchsorted|bucketize|lerp|"
    r"fractional|floor_divide|triangular|attention|topk|kth|median|_shift|shift__|"
    r"_adaptive|margin_loss|matrix_exp|polygamma"
)
#: Arguments that say what a result is stored as.
_OPTIONS = {"layout", "device", "pin_memory", "memory_format", "non_blocking"}
_WORDS: dict[str, list[Any]] = {
    "reduce": ["sum", "prod", "mean", "amax", "amin"],
    "rounding_mode": [None, "floor", "trunc"],
    "approximate": ["none", "tanh"],
}
_DTYPES = [torch.float32, torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool]
_MOST = 2000


class Unknown(Exception):
    """A parameter of a type that nothing is drawn for."""


def operators() -> list[torch._ops.OpOverload]:
    """Functional overloads with a row of the ATen table or a decomposition."""
    names = {*table_operators(), *map(str, DECOMPOSITIONS)}
    found = []
    for name in sorted(names):
        if _LEFT_OUT.search(name) or not name.startswith("aten."):
            continue
        _, packet, overload = name.split(".")
        op = getattr(getattr(torch.ops.aten, packet), overload)
        if any("Tensor" in str(a.type) for a in op._schema.arguments):
            found.append(op)
    return found


class Arguments:
    """Draws the arguments of one call; tensors have one shape, or one that it
    broadcasts with, more often than others.
    """

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
        sizes = self.random.choice([[1, 2, 3, 5], [1, 2, 3, 5], [0, 2, 3, 64, 65]])
        self.shape = [self.random.choice(sizes) for _ in range(rank)]
        if self.random.random() < 0.2:
            self.shape = [self.random.choice([2, 3])] * rank
        self.dtype = self.random.choice([torch.float32] * 6 + _DTYPES)

    def of(self, op: torch._ops.OpOverload) -> tuple[list[Any], dict[str, Any]]:
        """Raises Unknown."""
        positional, named = [], {}
        is_positional = True
        for parameter in op._schema.arguments:
            is_left_out = parameter.name in _OPTIONS or (
                parameter.has_default_value() and self.random.random() < 0.45
            )
            if is_left_out:
                is_positional = False
                continue
            value = self._value(parameter)
            if is_positional and not parameter.kwarg_only:
                positional.append(value)
            else:
                named[parameter.name] = value
        return positional, named

    def _value(self, parameter: torch.Argument) -> Any:
        kind = str(parameter.type)
        if kind.startswith("Optional["):
            if self.random.random() < 0.3:
                return None
            kind = kind[len("Optional[") : -1]
        name = parameter.name
        if kind == "Tensor":
            return self._tensor(name)
        if kind == "List[Tensor]":
            return [self._tensor(name) for _ in range(self.random.randint(1, 3))]
        if kind == "List[Optional[Tensor]]":
            count = self.random.randint(1, 3)
            return [self.random.choice([None, self._index()]) for _ in range(count)]
        if name == "dtype":
            return self.random.choice(_DTYPES)
        if kind in ("number", "float"):
            return self._number(kind)
        if kind == "bool":
            return self.random.random() < 0.5
        if kind in ("int", "SymInt"):
            return self._integer(name)
        if kind in ("List[int]", "List[SymInt]"):
            return self._integers(name)
        if kind == "str" and name in _WORDS:
            return self.random.choice(_WORDS[name])
        raise Unknown(f"{kind} {name}")

    def _number(self, kind: str) -> Any:
        numbers = [0.0, 1.0, -1.0, 0.5, 2.5, -2.0]
        return self.random.choice(
            numbers if kind == "float" else [*numbers, 0, 1, 2, -3, 300, True]
        )

    def _integer(self, name: str) -> int:
        rank = len(self.shape)
        if "dim" in name or name == "axis":
            return self.random.randint(-rank, max(rank - 1, 0))
        return self.random.choice([0, 1, 2, 3, -1, -2, 5])

    def _integers(self, name: str) -> list[int]:
        rank = len(self.shape)
        if "dim" in name:
            dims = self.random.sample(range(rank), self.random.randint(0, rank))
            return [d - rank if self.random.random() < 0.4 else d for d in dims]
        if "size" in name and self.random.random() < 0.3:
            return list(self.shape)
        count = self.random.choice([1, 2, 3, rank])
        low = 1 if name in ("kernel_size", "stride", "dilation", "repeats") else -1
        return [self.random.randint(low, 3) for _ in range(count)]

    def _index(self) -> Tensor:
        least = min(self.shape, default=1)
        shape = self.random.choice([[3], [], [2, 2], self.shape])
        return self._filled(shape, torch.int64, 0, max(least - 1, 0))

    def _tensor(self, name: str) -> Tensor:
        if re.search("ind", name):
            return self._index()
        shape, chance = list(self.shape), self.random.random()
        if chance < 0.12:
            shape = [n if self.random.random() < 0.6 else 1 for n in shape]
            shape = shape[self.random.randint(0, len(shape)) :]
        elif chance < 0.2:
            shape = shape[:-2] + shape[:-3:-1]
        elif chance < 0.25:
            shape = []
        elif chance < 0.3:
            shape = shape[:-1]
        elif chance < 0.35:
            shape = shape[-1:]
        dtype = self.dtype
        if re.search("mask|condition", name):
            dtype = torch.bool
        elif self.random.random() < 0.1:
            dtype = self.random.choice(_DTYPES)
        tensor = self._filled(shape, dtype, 0 if dtype == torch.uint8 else -6, 9)
        if len(shape) > 1 and self.random.random() < 0.2:
            tensor = tensor.mT.contiguous().mT
        return tensor

    def _filled(
        self, shape: list[int], dtype: torch.dtype, low: int, high: int
    ) -> Tensor:
        count = math.prod(shape)
        if count > _MOST:
            raise Unknown("so many elements")
        values = [self.random.randint(low, high) for _ in range(count)]
        tensor = torch.tensor(values, dtype=torch.int64)
        if dtype == torch.bool:
            tensor = tensor % 2
        if dtype.is_floating_point:
            return (tensor.to(dtype) / 2).reshape(shape)
        return tensor.to(dtype).reshape(shape)
