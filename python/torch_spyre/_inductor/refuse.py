# SPDX-License-Identifier: Apache-2.0
"""What Inductor gets when it asks for its spyre code generation: a clear error.

Inductor looks these names up on ``torch.spyre`` when it compiles anything;
they raise only when it would generate code for a spyre device.
"""

from __future__ import annotations

from typing import Any, NoReturn

from torch._inductor.codegen.common import register_device_op_overrides

from torch_spyre.device.op_overrides import SpyreDeviceOpOverrides


class _Refuse:
    supports_caching = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.create()

    @staticmethod
    def create(*args: Any) -> NoReturn:
        raise RuntimeError(
            "Inductor cannot compile a graph with spyre tensors: use "
            "torch.compile(..., backend='spyre'), or name no backend"
        )


# Looked up before the code generation classes.
register_device_op_overrides("spyre", SpyreDeviceOpOverrides())

Scheduling = PythonWrapperCodegen = CppWrapperCodegen = WrapperFxCodegen = _Refuse
