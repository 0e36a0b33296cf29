# SPDX-License-Identifier: Apache-2.0
"""The tensors of an eager call, as its program sees them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from torch_spyre.frontend.importer import Importer, InputKind


class Operands:
    """They are of the sizes that they have, as is the program."""

    #: The device of inferred results.
    results_on = "meta"
    #: How make_fx treats sizes.
    tracing_mode = "real"

    def __init__(self, tensors: list[torch.Tensor], kind: InputKind) -> None:
        self.tensors = tensors
        self.kind = kind

    def inference(self) -> AbstractContextManager[Any]:
        """In which operators on inferred() say what their results are."""
        return nullcontext()

    def inferred(self, index: int) -> torch.Tensor:
        """What stands for a tensor inside inference()."""
        return _stand_in(self.tensors[index], "meta")

    def mode(self) -> AbstractContextManager[Any]:
        """In which operators on stand_in() are traced."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        return FakeTensorMode(allow_non_fake_inputs=True)

    def stand_in(self, index: int) -> torch.Tensor:
        """What stands for a tensor inside mode()."""
        return _stand_in(self.tensors[index], self.tensors[index].device)

    def agree(self, index: int, result: torch.Tensor) -> bool:
        """Whether a tensor is as large as a result at all sizes of the program."""
        return self.tensors[index].shape == result.shape

    def importer(self) -> Importer:
        """A new importer for what has been inferred by the stand-ins."""
        return Importer()


def _stand_in(tensor: torch.Tensor, device: Any) -> torch.Tensor:
    """A tensor without values, which may be seen as all that is behind another one.

    It begins its storage, wherever the other one lies: programs serve views that lie
    elsewhere (``eager.compile_call()``). A view of nothing may lie behind all of its
    storage.
    """
    behind = tensor.untyped_storage().nbytes() // tensor.element_size()
    behind = max(behind - tensor.storage_offset(), 0)
    storage = torch.empty(behind, dtype=tensor.dtype, device=device)
    return storage.as_strided(tensor.shape, tensor.stride())
