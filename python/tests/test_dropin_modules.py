# SPDX-License-Identifier: Apache-2.0
"""Modules and names of torch-spyre that users import (spec/drop-in.md, sections 2, 5)."""

import pytest
import torch
import torch_spyre
from interpreters import run_python
from torch import nn
from torch_spyre import _C, constants, model_utils, streams, version
from torch_spyre._inductor import (
    customops,
    decompositions,
    lowering,
    passes,
    patches,
    propagate_named_dims,
)
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.ops import eager


def test_version_and_constants():
    assert version.__version__ == torch_spyre.__version__
    assert constants.DEVICE_NAME == "spyre"
    assert constants.DISTRIBUTED_BACKEND_NAME in torch.distributed.Backend.backend_list


def test_make_spyre_module():
    assert torch_spyre.make_spyre_module() is torch.spyre


def test_streams():
    side = streams.Stream()
    assert side.device() == torch.device("spyre", 0)
    assert isinstance(side, _C._SpyreStreamBase)
    assert repr(side) == f"<torch_spyre.Stream device=0 id={side.id}>"
    with streams.stream(side):
        assert streams.current_stream() == side
        x = torch.ones(65, dtype=torch.float16, device="spyre") + 1
    assert streams.current_stream() == streams.default_stream()
    streams.synchronize()
    assert x.cpu().eq(2).all()
    # PyTorch's own keeps its attribute, and takes ours.
    assert torch.Stream("spyre:0").device == torch.device("spyre", 0)
    side.record_event().synchronize()


def test_synchronize_waits_for_all_cards(monkeypatch):
    torch.ones(3, device="spyre")
    waited = []

    def wait(index):
        waited.append(index)
        if index:
            raise RuntimeError(f"card {index} failed")

    monkeypatch.setattr("torch_spyre.device.devices.device_count", lambda: 3)
    monkeypatch.setattr(_C, "synchronize", wait)
    with pytest.raises(RuntimeError, match="card 1 failed"):
        torch.spyre.synchronize()
    assert waited == [0, 1, 2]
    torch.spyre.synchronize(0)
    assert waited == [0, 1, 2, 0]


def test_names_of_torch_accelerator():
    torch.accelerator.synchronize()
    torch.accelerator.empty_cache()


@pytest.mark.parametrize("dtype", [None, torch.float16, torch.float32], ids=str)
def test_load_model(dtype):
    model = nn.Sequential(nn.Linear(65, 130), nn.LayerNorm(130))
    expected = {k: v.to(dtype or v.dtype) for k, v in model.state_dict().items()}
    assert model_utils.load_model_to_spyre(model, dtype) is model
    for name, value in model.state_dict().items():
        assert value.device.type == "spyre" and value.dtype == expected[name].dtype
        # Values below 2^-14 are whole multiples of 2^-24 in fp16.
        atol = 2**-24 if dtype == torch.float16 else 0
        assert torch.allclose(value.cpu(), expected[name], rtol=2**-9, atol=atol)
    again = model_utils.load_model_to_spyre(model)
    assert again is model


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.complex64, "float16", 7], ids=str
)
def test_models_of_other_dtypes(dtype):
    with pytest.raises(ValueError, match="dtype: expected one that the device stores"):
        model_utils.load_model_to_spyre(nn.Linear(2, 3), dtype)


def test_layouts_of_moved_tensors():
    x = torch.arange(3 * 130).reshape(3, 130).half()
    plain = model_utils._dma_to_spyre_default(x)
    swapped = model_utils._dma_to_spyre_dim_order_swapped(x)
    assert torch.equal(plain.cpu(), x) and torch.equal(swapped.cpu(), x)
    linear = nn.Linear(130, 3, bias=False, dtype=torch.float16).to("spyre")
    assert swapped.device_tensor_layout() == linear.weight.device_tensor_layout()
    assert plain.device_tensor_layout() != swapped.device_tensor_layout()
    with pytest.raises(ValueError, match="expected a matrix"):
        model_utils._dma_to_spyre_dim_order_swapped(torch.ones(3))


def test_names_of_dimensions_are_forgotten():
    x = torch.ones(6, 65, dtype=torch.float16).to("spyre")
    propagate_named_dims.declare_tensor_dim("A", 2)
    propagate_named_dims.declare_tensor_dim("B", 3)
    assert propagate_named_dims.name_tensor_dims(x, ["A", "B", "C"]) is x
    propagate_named_dims.reset()
    # Undeclared, a name takes the whole dimension.
    with pytest.raises(ValueError, match="left over"):
        propagate_named_dims.name_tensor_dims(x, ["A", "B", "C"])


def test_messages_of_spyrecode(tmp_path):
    with pytest.raises(RuntimeError, match="SpyreCode directory does not exist: "):
        _C.prepare_kernel(str(tmp_path / "none"))
    with pytest.raises(RuntimeError, match=r"spyrecode\.json not found in "):
        _C.prepare_kernel(str(tmp_path))


library = torch.library.Library("dropin", "DEF")
library.define("third_power(Tensor x) -> Tensor")
library.impl("third_power", lambda x: torch.empty_like(x), "Meta")
third_power = torch.ops.dropin.third_power


@pytest.fixture
def extended():
    from torch_spyre import extend, extensions

    yield
    for op in list(extensions._extensions):
        extend.remove(op)
    torch_spyre.reset_fallback_report()


@pytest.mark.usefixtures("extended", "no_fallback")
def test_decompositions_of_users():
    overload = third_power.default

    @decompositions.register_spyre_decomposition(overload)
    def decompose(x):
        return x * x * x

    assert decompositions.spyre_decompositions.pop(overload) is decompose
    eager.register_torch_compile_kernel([third_power])
    x = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float16, device="spyre")
    for function in (third_power, torch.compile(lambda x: third_power(x))):
        assert function(x).tolist() == [1.0, 8.0, -27.0]
    with pytest.raises(TypeError, match="expected an operator"):
        eager.register_torch_compile_kernel([torch.exp])
    assert torch.ops.aten.triu in decompositions.spyre_decompositions_to_exclude


@pytest.mark.usefixtures("no_fallback")
def test_decompositions_for_a_while():
    gelu = torch.ops.aten.gelu.default
    x = torch.tensor([1.0, -1.0], device="spyre")
    cases = [
        decompositions.enable_spyre_decompositions({gelu: lambda x, **_: x * 2}),
        patches.enable_spyre_context([x], {gelu: lambda x, **_: x * 2}),
    ]
    for context in cases:
        with context:
            torch._dynamo.reset()
            changed = torch.compile(nn.functional.gelu)(x)
        assert changed.tolist() == [2.0, -2.0]
    for context in (
        decompositions.enable_spyre_decompositions(),
        patches.enable_spyre_context([x]),
    ):
        with context:
            torch._dynamo.reset()
            plain = torch.compile(nn.functional.gelu)(x)
        assert torch.equal(plain.cpu(), nn.functional.gelu(x).cpu())


def test_a_context_starts_the_device():
    code = (
        "import torch; from torch_spyre._inductor.patches import enable_spyre_context\n"
        "before = torch.spyre.is_initialized()\n"
        "with enable_spyre_context([]): print(before, torch.spyre.is_initialized())"
    )
    done = run_python(code)
    assert done.stdout == "False True\n", done.stderr


@pytest.mark.usefixtures("no_fallback")
def test_compile_once():
    def double(x):
        return x * 2 - x + x

    function = eager.compile_once(double, fullgraph=True)
    assert function.__name__ == "double"
    x = torch.ones(65, dtype=torch.float16, device="spyre")
    before = len(compiled_parts())
    for _ in range(3):
        assert function(x).cpu().eq(2).all()
    assert len(compiled_parts()) == before + 1


def test_operators_as_functions():
    x = torch.tensor([1.0, -1.0], dtype=torch.float16, device="spyre")
    assert torch.equal(customops.silu(x).cpu(), torch.ops.spyre.silu(x).cpu())
    assert not hasattr(customops, "no_such_operator")
    assert "aten.mm.default" in lowering.table_operators()
    torch_spyre.clear_cache()
    torch._dynamo.reset()
    torch.compile(lambda x: x + 3)(x)
    names = [name for name, _ in passes.passes_of_last_program()]
    assert names.index("spyre-propagate-layouts") < names.index("spyre-work-division")
