# SPDX-License-Identifier: Apache-2.0
"""Every name that spec/runtime.md lists is there, and the layout functions do
what they say.
"""

import pytest
import torch
import torch_spyre
from numerics import assert_exact
from torch_spyre import _C

#: spec/runtime.md, "Public Python API", and the API that the field documents.
NAMES = {
    "torch.spyre": """
        is_available is_initialized init device_count current_device set_device
        device synchronize Stream stream current_stream default_stream set_stream
        Event default_generators manual_seed manual_seed_all seed seed_all
        initial_seed get_rng_state set_rng_state get_rng_state_all
        set_rng_state_all memory memory_allocated max_memory_allocated
        memory_reserved max_memory_reserved memory_stats reset_peak_memory_stats
        reset_accumulated_memory_stats empty_cache mem_get_info
        get_device_properties get_device_name get_amp_supported_dtype profiler
        _is_in_bad_fork _is_compiled _lazy_init
    """,
    "torch.spyre.memory": "memory_allocated memory_stats _snapshot memory_snapshot",
    "torch.spyre.profiler": "is_available profile summarize",
    "torch_spyre._C": """
        launch_kernel prepare_kernel launch_jobplan JobPlan
        start_runtime free_runtime device_count set_device current_device
        encode_constant SpyreTensorLayout ElementArrangement DataFormats
        get_spyre_tensor_layout set_spyre_tensor_layout spyre_empty_with_layout
        empty_with_layout as_strided_with_layout reinterpret_tensor
        reinterpret_tensor_with_layout get_device_dtype get_elem_in_stick
        get_downcast_warning set_downcast_warning copy_tensor
        get_stream_from_pool current_stream default_stream set_current_stream
        synchronize _SpyreStreamBase manual_seed manual_seed_all get_rng_state
        set_rng_state initial_seed _get_default_generator
        _spyre_get_allocator_stats _spyre_reset_accumulated_stats
        _spyre_reset_peak_stats createSpyreCCLBackend
    """,
    "torch_spyre.constants": "DEVICE_NAME DISTRIBUTED_BACKEND_NAME",
    "torch_spyre.logging_config": """
        set_log_level enable disable set_log_file list_components LogLevel
        DEFAULT_LOG_LEVELS initialize configure_python_logging get_log_level
        get_log_file get_effective_config get_output_config get_config_source
        get_config_for_cpp
    """,
    "torch.Tensor": "spyre is_spyre device_tensor_layout",
    "torch.nn.Module": "spyre",
    "torch.UntypedStorage": "spyre is_spyre",
    "torch.nn.utils.rnn.PackedSequence": "spyre is_spyre",
}


def find(path):
    import importlib

    if path == "torch_spyre.logging_config":
        return importlib.import_module(path)
    head, *rest = path.split(".")
    value = {"torch": torch, "torch_spyre": torch_spyre}[head]
    for name in rest:
        value = getattr(value, name)
    return value


@pytest.mark.parametrize("path", NAMES)
def test_names(path):
    owner = find(path)
    missing = [n for n in NAMES[path].split() if not hasattr(owner, n)]
    assert missing == []


def test_names_of_c_in_torch_spyre():
    assert [
        n for n in NAMES["torch_spyre._C"].split() if not hasattr(torch.spyre, n)
    ] == []
    with pytest.raises(
        AttributeError, match=r"'torch\.spyre' has no attribute 'nothing'"
    ):
        torch.spyre.nothing  # noqa: B018


def test_names_that_the_package_loads_late():
    listed = dir(torch_spyre)
    for name in ("clear_cache", "spyre_hint", "declare_tensor_dim", "extend"):
        assert name in listed and hasattr(torch_spyre, name)
    assert {"clear_cache", "name_tensor_dims"} <= set(torch_spyre.__all__)
    assert all(hasattr(torch_spyre, name) for name in torch_spyre.__all__)


def test_accelerator():
    """All of torch.accelerator does something sensible."""
    accelerator = torch.accelerator
    assert accelerator.is_available()
    assert accelerator.current_accelerator() == torch.device("spyre")
    assert accelerator.device_count() == torch.spyre.device_count()
    accelerator.set_device_index(0)
    assert accelerator.current_device_index() == 0
    with accelerator.device_index(0):
        pass
    stream = torch.Stream("spyre")
    before = accelerator.current_stream()
    accelerator.set_stream(stream)
    assert accelerator.current_stream() == stream
    accelerator.set_stream(before)
    accelerator.synchronize()
    x = torch.ones(3, device="spyre")
    pinned = torch.ones(3).pin_memory()
    assert pinned.is_pinned()
    del pinned
    accelerator.empty_host_cache()
    accelerator.empty_cache()
    assert accelerator.memory_allocated() >= 128
    assert accelerator.max_memory_allocated() >= accelerator.memory_allocated()
    assert accelerator.memory_reserved() <= accelerator.max_memory_reserved()
    assert accelerator.memory_stats()["allocated_bytes.all.current"] >= 128
    accelerator.reset_peak_memory_stats()
    accelerator.reset_accumulated_memory_stats()
    free, total = accelerator.get_memory_info()
    assert 0 < free < total == 128 * 2**30
    capability = accelerator.get_device_capability()
    assert torch.float16 in capability["supported_dtypes"]
    assert torch.float64 not in capability["supported_dtypes"]
    assert x.sum().item() == 3


def test_graph_is_refused():
    with pytest.raises((RuntimeError, NotImplementedError), match=r"(?i)graph"):
        graph = torch.accelerator.Graph()
        with graph:
            torch.ones(3, device="spyre") + 1


def layout(sizes, order, dtype=torch.float16):
    strides = torch.empty(sizes).stride()
    return _C.SpyreTensorLayout(list(sizes), list(strides), dtype, order)


@pytest.mark.parametrize("sizes", [(3, 70), (65, 1), (63, 130), (0, 5)])
def test_set_layout(sizes):
    x = torch.randn(sizes, dtype=torch.float16)
    on_device = x.to("spyre")
    view, expected = on_device.t(), on_device.cpu()
    address = on_device.data_ptr()
    other = layout(sizes, [1, 0])
    _C.set_spyre_tensor_layout(on_device, other)
    assert on_device.device_tensor_layout() == other
    direct = x.to("spyre", device_layout=other)
    assert _C.read_device_bytes(on_device) == _C.read_device_bytes(direct)
    # What shares the storage sees the same values; programs run on them.
    assert_exact(view.cpu(), expected.t())
    assert_exact((on_device + on_device).cpu(), (direct + direct).cpu())
    _C.set_spyre_tensor_layout(on_device, other)
    assert x.numel() == 0 or on_device.data_ptr() != address
    if x.numel():
        with pytest.raises(torch_spyre.SpyreError):
            _C.set_spyre_tensor_layout(on_device, layout((2, 2), [0, 1]))


def test_set_layout_waits_for_work():
    x = torch.randn(256, 256, dtype=torch.float16).to("spyre")
    expected = (x @ x).cpu()
    product = x @ x
    _C.set_spyre_tensor_layout(product, layout((256, 256), [1, 0]))
    assert_exact(product.cpu(), expected)


def test_views_with_layout():
    x = torch.randn(4, 128, dtype=torch.float16).to("spyre")
    own = x.device_tensor_layout()
    y = _C.reinterpret_tensor(x, [2, 128], [128, 1], 128)
    assert_exact(y.cpu(), x.cpu()[1:3])
    y = _C.reinterpret_tensor(y, [128], [1], 128)
    assert_exact(y.cpu(), x.cpu()[2])
    same = _C.as_strided_with_layout(x, [4, 128], [128, 1], None, own)
    assert same.data_ptr() == x.data_ptr()
    # Sticks of 64 lie one after the other, row after row: so says this layout.
    row = _C.SpyreTensorLayout([64], torch.float16)
    part = _C.as_strided_with_layout(x, [64], [1], 128 + 64, row)
    assert_exact(part.cpu(), x.cpu()[1, 64:])
    part = _C.reinterpret_tensor_with_layout(x, [64], [1], 64, row)
    assert_exact(part.cpu(), x.cpu()[0, 64:])
    wrong = layout((4, 128), [1, 0])
    for call in (
        lambda: _C.as_strided_with_layout(x, [4, 128], [128, 1], 0, wrong),
        lambda: _C.reinterpret_tensor_with_layout(x, [4, 128], [128, 1], 0, wrong),
    ):
        with pytest.raises(ValueError, match="places its elements elsewhere"):
            call()
    with pytest.raises(RuntimeError, match="spyre"):
        _C.reinterpret_tensor(torch.ones(4), [2], [1], 0)


def test_empty_with_layout():
    sizes = (5, 70)
    other = layout(sizes, [1, 0])
    x = _C.empty_with_layout(sizes, other, torch.float16)
    y = _C.spyre_empty_with_layout(sizes, (70, 1), torch.float16, other)
    for made in (x, y):
        assert made.shape == sizes and made.is_contiguous() and made.is_spyre
        assert made.device_tensor_layout() == other
    with pytest.raises(ValueError, match="cannot be pinned"):
        _C.empty_with_layout(sizes, other, torch.float16, pin_memory=True)
    with pytest.raises(RuntimeError, match="only supports contiguous memory format"):
        _C.empty_with_layout(
            sizes, other, torch.float16, memory_format=torch.channels_last
        )


def test_other_bindings():
    assert isinstance(_C.get_stream_from_pool("spyre"), _C._SpyreStreamBase)
    assert issubclass(_C._SpyreStreamBase, torch.Stream)
    assert torch_spyre.constants.DEVICE_NAME == "spyre"


def test_impl_is_what_runs():
    assert torch.spyre._impl.device_count() == torch.spyre.device_count()


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    assert torch_spyre.__version__ == version("torch-spyre")
