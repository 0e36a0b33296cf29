# SPDX-License-Identifier: Apache-2.0
"""The tensors of an eager call, as its program sees them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
        return quiet_mode(allow_non_fake_inputs=True)

    def stand_in(self, index: int) -> torch.Tensor:
        """What stands for a tensor inside mode()."""
        return _stand_in(self.tensors[index], self.tensors[index].device)

    def agree(self, index: int, result: torch.Tensor) -> bool:
        """Whether a tensor is as large as a result at all sizes of the program."""
        return self.tensors[index].shape == result.shape

    def importer(self) -> Importer:
        """A new importer for what has been inferred by the stand-ins."""
        return Importer()


class _Unheard(logging.Filter):
    """Drops what a thread logs while it is at `depth`."""

    def __init__(self) -> None:
        super().__init__()
        self.here = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(self.here, "depth", 0)


_unheard = _Unheard()
logging.getLogger("torch._subclasses.fake_tensor").addFilter(_unheard)


@contextmanager
def quiet_mode(**options: Any) -> Iterator[None]:
    """A FakeTensorMode that does not log what it raises.

    PyTorch logs errors of meta functions with their tracebacks. Here they say that an
    operator has no program like this; it gets another one, or runs on the CPU, which
    raises where the user's call is wrong.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(**options):
        depth = getattr(_unheard.here, "depth", 0)
        _unheard.here.depth = depth + 1
        try:
            yield
        finally:
            _unheard.here.depth = depth


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
