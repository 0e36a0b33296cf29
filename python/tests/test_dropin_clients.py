# SPDX-License-Identifier: Apache-2.0
"""Every name that docs/spec/drop-in.md marks as one that a client's file uses.

Each test is named after the file and does with the name what the client does.
"""

import re
import warnings
from pathlib import Path

import pytest
import torch
from interpreters import run_python

HALF = torch.float16
SHEET = Path(__file__).resolve().parents[2] / "docs/spec/drop-in.md"

pytestmark = pytest.mark.filterwarnings("ignore:.*does not support int64")


def run(program: str, **environment: str) -> str:
    result = run_python(program, **environment)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def spyre_worker_autoload() -> None:
    """Calls autoload by hand, after the variables of its rank are set."""
    program = (
        "import os, torch\n"
        "assert not hasattr(torch, 'spyre')\n"
        "os.environ.update(RANK='0', WORLD_SIZE='2', LOCAL_RANK='0',"
        " LOCAL_WORLD_SIZE='2', AIU_WORLD_SIZE='2')\n"
        "import torch_spyre\n"
        "torch_spyre._autoload()\n"
        "config = torch._dynamo.config\n"
        "print(config.cache_size_limit)\n"
        "config.cache_size_limit = 100000\n"
        "torch_spyre._autoload()\n"
        "assert config.cache_size_limit == 100000\n"
        "print(torch.ones(2, device='spyre').device)\n"
    )
    found = run(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert found.split() == ["1024", "spyre:0"]


def spyre_worker_set_device() -> None:
    program = (
        "import torch\n"
        "torch.spyre.set_device(1)\n"
        "print(torch.spyre.current_device(), torch.empty(2, device='spyre').device)\n"
    )
    assert run(program, AIU_WORLD_SIZE="2").split() == ["1", "spyre:1"]


def spyre_worker_decompositions() -> None:
    """Copies those with "addm" in their name into Inductor's table."""
    from torch_spyre._inductor.decompositions import spyre_decompositions

    copied = {
        op: function
        for op, function in spyre_decompositions.items()
        if "addm" in op.name()
    }
    for op, function in copied.items():
        assert isinstance(op, torch._ops.OpOverload) and callable(function)


def platform_device_count() -> None:
    assert torch.spyre.device_count() >= 1
    assert (
        run("import torch; print(torch.spyre.device_count())", AIU_WORLD_SIZE="3")
        == "3"
    )


def platform_backend_name() -> None:
    """The group is made from "cpu:gloo,spyre:spyreccl"."""
    program = (
        "import torch, torch.distributed as dist, tempfile\n"
        "store = 'file://' + tempfile.mkdtemp() + '/store'\n"
        "dist.init_process_group('cpu:gloo,spyre:spyreccl', init_method=store,"
        " rank=0, world_size=1)\n"
        "x = torch.ones(3, device='spyre'); dist.all_reduce(x)\n"
        "y = torch.ones(3); dist.all_reduce(y)\n"
        "print(x.sum().item(), y.sum().item())\n"
        "dist.destroy_process_group()\n"
    )
    assert run(program) == "3.0 3.0"


def spyre_model_runner_synchronize() -> None:
    for device in (torch.device("spyre:0"), torch.device("spyre"), None):
        x = torch.ones(64, device="spyre") * 2
        torch.spyre.synchronize(device)
        assert x.cpu().sum() == 128


def paged_vector_add_target_names() -> None:
    """Reaches names of the extension through torch.spyre."""
    layout = torch.spyre.SpyreTensorLayout([4, 130], HALF)
    assert torch.spyre.get_elem_in_stick(HALF) == layout.elems_per_stick() == 64
    assert torch.spyre.get_device_dtype(HALF) == layout.device_dtype
    assert layout.device_size == [3, 4, 64]


def spyre_online_softmax_check_warning() -> None:
    before = torch.spyre.get_downcast_warning()
    try:
        torch.spyre.set_downcast_warning(False)
        assert torch.spyre.get_downcast_warning() is False
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.tensor([1 << 40]).to("spyre")
    finally:
        torch.spyre.set_downcast_warning(before)


def hf_common_elements() -> None:
    """Before every generation, outside of its try block."""
    from torch_spyre._C import SpyreTensorLayout, get_device_dtype

    shape = (1, 8, 256, 128)
    for dtype in (HALF, torch.bfloat16):
        assert SpyreTensorLayout(shape, dtype).elems_per_stick() == 64
        assert get_device_dtype(dtype).name == "SEN169_FP16"


def spyre_attn_names() -> None:
    from torch_spyre._C import (
        SpyreTensorLayout,
        get_device_dtype,
        get_elem_in_stick,
    )

    blocks, size, heads, head_size = 3, 64, 2, 128
    eps = get_elem_in_stick(HALF)
    layout = SpyreTensorLayout(
        device_size=[blocks * size, heads, head_size // eps, eps],
        stride_map=[heads * head_size, head_size, eps, 1],
        device_dtype=get_device_dtype(HALF),
    )
    pages = torch.zeros(blocks, size, heads, head_size, dtype=HALF)
    assert pages.to("spyre", device_layout=layout).device_tensor_layout() == layout


def option_set_at_import() -> None:
    """Four files of hf-adapters, guarded by ImportError alone."""
    from torch_spyre._inductor import config

    before = config.hbm_pool_planning
    config.hbm_pool_planning = False
    assert config.hbm_pool_planning is False
    config.hbm_pool_planning = before


def fp8_names() -> None:
    from torch_spyre._inductor.constants import FP8_E4M3_MAX, FP8_E4M3FN_MAX

    assert FP8_E4M3_MAX == FP8_E4M3FN_MAX == 448.0


def fp8_operators() -> None:
    x = torch.linspace(-3, 3, 128).to(HALF).view(1, 2, 64).to("spyre")
    scale = torch.full((1, 2, 1), 0.5, dtype=HALF, device="spyre")

    @torch.compile
    def there_and_back(x, scale):
        x8 = torch.ops.spyre.quantize_fp8_with_scale(x, scale)
        return x8, torch.ops.spyre.dequantize_fp8_with_scale(x8, scale)

    x8, back = there_and_back(x, scale)
    assert x8.dtype == torch.float8_e4m3fn
    expected = (x.cpu() / 0.5).to(torch.float8_e4m3fn)
    assert torch.equal(x8.cpu().view(torch.uint8), expected.view(torch.uint8))
    assert torch.equal(back.cpu(), expected.to(HALF) * 0.5)


def fallback_warnings_are_errors() -> None:
    """Three test files of spyre-inference."""
    from torch_spyre.ops.fallbacks import FallbackWarning

    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        x = torch.ones(2, 64, dtype=HALF, device="spyre")
        assert (x @ x.t()).sum().item() == 256
        with pytest.raises(FallbackWarning):
            torch.igamma(x, x)


def modules_move() -> None:
    """The only way in which clients reach model_utils."""
    linear = torch.nn.Linear(70, 130, bias=False)
    linear.to(dtype=HALF, device="spyre:0")
    size, strides = list(linear.weight.shape), list(linear.weight.stride())
    order = torch.spyre.SpyreTensorLayout(size, strides, HALF, [1, 0])
    assert linear.weight.device_tensor_layout() == order


#: What the sheet names after a mark -> what the file does.
CLIENTS = {
    "spyre_worker.py": [
        spyre_worker_autoload,
        spyre_worker_set_device,
        spyre_worker_decompositions,
    ],
    "tp_probe.py": [spyre_worker_autoload],
    "platform.py": [platform_device_count, platform_backend_name],
    "spyre_model_runner.py": [spyre_model_runner_synchronize],
    "paged_vector_add_target.py": [paged_vector_add_target_names],
    "spyre_online_softmax_check.py": [
        paged_vector_add_target_names,
        spyre_online_softmax_check_warning,
    ],
    "hf_common.py": [hf_common_elements],
    "spyre_attn.py": [spyre_attn_names],
    "hf_adapters/__init__.py": [option_set_at_import],
    "hf_mistral3.py": [option_set_at_import],
    "hf_gemma4_mm.py": [option_set_at_import],
    "hf_mistral3_vision_mm.py": [option_set_at_import],
    "test_fp8.py": [fp8_names, fp8_operators],
    "three spyre-inference test files": [fallback_warnings_are_errors],
    "model.to(dtype=": [modules_move],
}
USES = {
    f"{name}: {use.__name__}": use for name, uses in CLIENTS.items() for use in uses
}


@pytest.mark.parametrize("use", USES)
def test_what_a_client_does(use):
    import torch_spyre

    torch_spyre.reset_fallback_report()
    USES[use]()


def test_every_mark_of_the_sheet_has_a_test():
    pattern = r"(?:\*\*|\()C(?::|\*\* only)[^|;\n]*"
    _, *marks = re.findall(pattern, SHEET.read_text())  # the first explains them
    assert len(marks) == 12
    for mark in marks:
        files = re.findall(r"[\w/]+\.py", mark)
        known = [name for name in CLIENTS if name in mark]
        assert known, mark
        assert set(files) <= set(CLIENTS), mark
