# SPDX-License-Identifier: Apache-2.0
"""PyTorch's databases of modules and optimizers, instantiated for the device."""

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

pytest.importorskip("expecttest")

from torch.nn.parameter import is_lazy
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_modules import (
    TrainEvalMode,
    module_db,
    modules,
)
from torch.testing._internal.common_optimizers import optim_db, optims
from torch.testing._internal.common_utils import TestCase

pytestmark = pytest.mark.filterwarnings("ignore")


def _tensors(value):
    return [t for t in tree_leaves(value) if isinstance(t, torch.Tensor)]


def _run(info, module_input, training, device):
    """Results of a module, and the gradients of its inputs and parameters."""

    def move(value):
        if not isinstance(value, torch.Tensor):
            return value
        return value.detach().to(device).requires_grad_(value.requires_grad)

    def narrow(value):
        # The database has samples of fractional pools in double for all types.
        is_double = isinstance(value, torch.Tensor) and value.dtype == torch.float64
        return value.float() if is_double else value

    made, given = module_input.constructor_input, module_input.forward_input
    made = tree_map(narrow, (made.args, made.kwargs))
    torch.manual_seed(0)
    module = info.module_cls(*made[0], **made[1])
    if any(is_lazy(parameter) for parameter in module.parameters()):
        # The first call draws its weights, on another device other ones.
        module(*given.args, **given.kwargs)
    module = module.to(device).train(training)
    args, kwargs = tree_map(move, (given.args, given.kwargs))
    results = _tensors(module(*args, **kwargs))
    wanted = [r for r in results if r.requires_grad]
    gradients = []
    if wanted:
        loss = sum((r**2).sum() for r in wanted)
        inputs = [*_tensors((args, kwargs)), *module.parameters()]
        inputs = [t for t in inputs if t.requires_grad]
        gradients = torch.autograd.grad(loss, inputs, allow_unused=True)
    return [r.detach().cpu() for r in results], [
        None if g is None else g.cpu() for g in gradients
    ]


class TestModules(TestCase):
    """Modules give the CPU's results and gradients in fp32."""

    @modules(
        module_db,
        allowed_dtypes=[torch.float32],
        train_eval_mode=TrainEvalMode.train_only,
    )
    def test_modules(self, device, dtype, module_info, training):
        first, *_ = module_info.module_inputs_func(
            module_info, device="cpu", dtype=dtype, requires_grad=True, training=True
        )
        wanted = _run(module_info, first, training, "cpu")
        self.assertTrue(wanted[0])
        found = _run(module_info, first, training, device)
        self.assertEqual(found, wanted, rtol=1e-3, atol=1e-4)


def _minimise(info, optim_input, device):
    """Parameters after three steps on a sum of squares."""
    generator = torch.Generator().manual_seed(0)
    parameters = [
        torch.nn.Parameter(torch.randn(shape, generator=generator).to(device))
        for shape in ((3, 4), (5, 2))
    ]
    kwargs = {
        k: v.to(device) if isinstance(v, torch.Tensor) and v.dim() else v
        for k, v in optim_input.kwargs.items()
    }
    optimizer = info.optim_cls(parameters, **kwargs)

    def closure():
        optimizer.zero_grad()
        loss = sum((p**2).sum() for p in parameters)
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    return [p.detach().cpu() for p in parameters]


class TestOptimizers(TestCase):
    """Optimizers take the CPU's steps, whatever their options."""

    @optims(
        [o for o in optim_db if o.optim_cls.__name__ not in ("Muon", "SparseAdam")],
        dtypes=[torch.float32],
    )
    def test_steps(self, device, dtype, optim_info):
        for optim_input in optim_info.optim_inputs_func(device="cpu"):
            # Only what captures CUDA graphs takes these.
            if optim_input.kwargs.get("capturable"):
                continue
            wanted = _minimise(optim_info, optim_input, "cpu")
            found = _minimise(optim_info, optim_input, device)
            self.assertEqual(found, wanted, rtol=1e-4, atol=1e-5)


instantiate_device_type_tests(TestModules, globals(), only_for="privateuse1")
instantiate_device_type_tests(TestOptimizers, globals(), only_for="privateuse1")
