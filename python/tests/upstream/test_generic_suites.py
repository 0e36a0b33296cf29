# SPDX-License-Identifier: Apache-2.0
"""Device-generic tests over PyTorch's databases, run by spyre-upstream-tests.

They stand in for PyTorch's folder test/, which its wheel does not have.
"""

import torch
from torch.testing import make_tensor
from torch.testing._internal.common_device_type import (
    dtypes,
    instantiate_device_type_tests,
    onlyCUDA,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_utils import TestCase, parametrize

#: Samples of an operator or a module that a variant takes.
SAMPLES = 1
#: Values that are drawn, or never written: nothing to compare.
UNDETERMINED = {
    "bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided",
    "exponential", "geometric",
    "log_normal", "multinomial", "new_empty", "new_empty_strided", "normal",
    "rand_like", "randint_like", "randn_like", "uniform",
}  # fmt: skip
#: Functions of torch.nn are tested with their modules.
DETERMINED = [
    op
    for op in op_db
    if op.name not in UNDETERMINED and not op.name.startswith("nn.functional")
]


def to_cpu(value):
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda t: t.detach().cpu(), value
    )


def first(samples):
    return [s for s, _ in zip(samples, range(SAMPLES), strict=False)]


class TestOperators(TestCase):
    @ops(DETERMINED, allowed_dtypes=(torch.float16,))
    def test_same_as_cpu(self, device, dtype, op):
        for sample in first(op.sample_inputs(device, dtype)):
            on_cpu = sample.transform(lambda v: to_cpu(v))
            expected = op(on_cpu.input, *on_cpu.args, **on_cpu.kwargs)
            actual = op(sample.input, *sample.args, **sample.kwargs)
            for leaf in torch.utils._pytree.tree_leaves(actual):
                if isinstance(leaf, torch.Tensor):
                    self.assertEqual(leaf.device.type, torch.device(device).type)
            self.assertEqual(to_cpu(actual), expected, exact_dtype=True)


class TestModules(TestCase):
    @modules(module_db, allowed_dtypes=(torch.float16, torch.float32))
    def test_forward(self, device, dtype, module_info, training):
        inputs = module_info.module_inputs_func(
            module_info,
            device="cpu",
            dtype=dtype,
            requires_grad=False,
            training=training,
        )
        for sample in first(inputs):
            given = sample.constructor_input
            module = module_info.module_cls(*given.args, **given.kwargs)
            module = module.to(dtype).train(False)
            args, kwargs = sample.forward_input.args, sample.forward_input.kwargs
            with torch.no_grad():
                expected = module(*args, **kwargs)
                args, kwargs = torch.utils._pytree.tree_map_only(
                    torch.Tensor, lambda t: t.to(device), (args, kwargs)
                )
                actual = module.to(device)(*args, **kwargs)
            self.assertEqual(to_cpu(actual), to_cpu(expected))


class TestTensors(TestCase):
    @dtypes(torch.float16, torch.float32, torch.int64, torch.bool)
    @parametrize("shape", [(), (0,), (1,), (63,), (65, 3), (2, 1, 7)])
    def test_round_trip(self, device, dtype, shape):
        # Values that every format of the device holds.
        x = make_tensor(shape, dtype=dtype, device="cpu", low=0, high=2)
        x = x.round() if dtype.is_floating_point else x
        self.assertEqual(x.to(device).cpu(), x)

    @dtypes(torch.float16)
    @parametrize("n", [1, 2, 63, 64, 65, 127])
    def test_transposed(self, device, dtype, n):
        x = torch.arange(3 * n, dtype=dtype).reshape(3, n)
        self.assertEqual(x.to(device).t().contiguous().cpu(), x.t())

    @onlyCUDA
    def test_accelerator(self, device):
        self.assertEqual(torch.ones(3, device=device).sum().item(), 3)

    def test_compare_on_device(self, device):
        x = torch.ones(5, device=device)
        self.assertEqual(x, torch.ones(5))


instantiate_device_type_tests(TestOperators, globals())
instantiate_device_type_tests(TestModules, globals())
instantiate_device_type_tests(TestTensors, globals())
