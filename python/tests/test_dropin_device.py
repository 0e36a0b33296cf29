# SPDX-License-Identifier: Apache-2.0
"""How tensors, errors and devices show themselves (spec/drop-in.md, sections 2, 3, 5)."""

import inspect
import os
import pickle
import subprocess
import sys
import warnings
from typing import ClassVar

import pytest
import torch
import torch_spyre
from interpreters import run_python
from torch import nn
from torch_spyre import _C, _monkey_patch
from torch_spyre.device import interface
from torch_spyre.device.op_overrides import SpyreDeviceOpOverrides
from torch_spyre.errors import ConversionWarning

H, F = torch.float16, torch.float32


def run(code, **environment):
    return run_python("import torch\n" + code, ends_at_once=True, **environment)


def run_new(code, **environment):
    """In a process that has imported nothing, torch neither."""
    return subprocess.run(
        [sys.executable, "-c", "import torch\n" + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (
            torch.tensor([1.0, 2.0], dtype=H),
            "tensor([1., 2.], dtype=torch.float16, device='spyre:0')",
        ),
        (torch.tensor([1.0, 2.0]), "tensor([1., 2.], device='spyre:0')"),
        (torch.tensor(3.0), "tensor(3., device='spyre:0')"),
        (
            torch.zeros(0, 2, dtype=H),
            "tensor([], size=(0, 2), dtype=torch.float16, device='spyre:0')",
        ),
        (
            torch.ones(1, requires_grad=True),
            "tensor([1.], requires_grad=True, device='spyre:0')",
        ),
    ],
    ids=str,
)
def test_text_of_tensors(tensor, text):
    on_device = tensor.detach().to("spyre").requires_grad_(tensor.requires_grad)
    assert repr(on_device) == str(on_device) == text


def test_text_of_other_tensors_is_as_it_was():
    assert repr(torch.ones(1, dtype=H, device="meta")) == (
        "tensor(..., device='meta', size=(1,), dtype=torch.float16)"
    )
    long = torch.ones(1000, dtype=H)
    assert repr(long.to("spyre")) == repr(long)[:-1] + ", device='spyre:0')"
    names = repr(nn.Parameter(torch.ones(2)).to("spyre"))
    assert (
        names.startswith("tensor([1., 1.], grad_fn=") and "device='spyre:0')" in names
    )


def test_torch_empty_with_a_layout():
    layout = _C.SpyreTensorLayout([2, 3, 4, 5], H)
    for memory_format in (None, torch.preserve_format, torch.contiguous_format):
        x = torch.empty(
            (2, 3, 4, 5),
            dtype=H,
            device_layout=layout,
            memory_format=memory_format,
            pin_memory=False,
            layout=torch.strided,
        )
        assert x.device == torch.device("spyre", 0) and x.stride() == (60, 20, 5, 1)
        assert x.device_tensor_layout() == layout
    with pytest.raises(RuntimeError, match="only supports contiguous memory format"):
        torch.empty(
            (2, 3, 4, 5),
            dtype=H,
            device_layout=layout,
            memory_format=torch.channels_last,
        )
    with pytest.raises(TypeError, match="does not take pin_memory"):
        torch.empty(3, dtype=H, device_layout=layout, pin_memory=True)


def test_to_with_layout():
    x = torch.arange(6 * 70).reshape(6, 70).half().to("spyre")
    layout = _C.SpyreTensorLayout([6, 70], [70, 1], H, [1, 0])
    moved = _C.to_with_layout(x, layout)
    assert moved.device_tensor_layout() == layout != x.device_tensor_layout()
    assert torch.equal(moved.cpu(), x.cpu())
    assert torch.spyre.to_with_layout(moved, layout) is moved
    from_cpu = _C.to_with_layout(x.cpu(), layout)
    assert from_cpu.device_tensor_layout() == layout
    assert torch.equal(from_cpu.cpu(), x.cpu())


def test_conversions_on_the_device_warn_who_asks():
    x = torch.ones(65, dtype=H, device="spyre")
    with pytest.warns(UserWarning, match="D2D dtype conversion") as seen:
        y = x.to("spyre", F)
    assert seen[0].filename == __file__ and y.dtype == F and y.cpu().eq(1).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for use in (
            lambda: x.to(F),
            lambda: x.to("spyre", H),
            lambda: x.to("cpu", F),
            lambda: x.cpu().to("spyre", F),
        ):
            use()
        with pytest.raises(ConversionWarning):
            x.to(device="spyre:0", dtype=torch.int32)
    shown = run("torch.ones(3, device='spyre').to('spyre', torch.float16)")
    assert shown.returncode == 0 and "conversion" not in shown.stderr


def test_tensor_to_takes_all_that_it_takes_elsewhere():
    x = torch.ones(2, 3, 4, 5, dtype=H, device="spyre")
    like = torch.ones(1, dtype=F)
    calls = [
        (("spyre",), {"copy": True}),
        ((like,), {"copy": True}),
        ((), {"tensor": like, "copy": True}),
        ((like, True), {}),
        (("spyre", F, True, True), {}),
        ((), {"device": "spyre", "dtype": F, "copy": True}),
        ((0, F), {}),
        ((None, F), {}),
        ((F,), {"memory_format": torch.contiguous_format}),
    ]
    for args, kwargs in calls:
        expected = torch.ones(2, 3, 4, 5, dtype=H).to(
            *(torch.device("cpu") if a in ("spyre", 0) else a for a in args),
            **{k: "cpu" if v == "spyre" else v for k, v in kwargs.items()},
        )
        result = x.to(*args, **kwargs)
        assert result.dtype == expected.dtype and torch.equal(result.cpu(), expected)
        assert (result is x) == (not kwargs.get("copy") and result.dtype == H)
    with pytest.warns(ConversionWarning):
        x.to(like.to("spyre"))


def test_marks_of_what_is_patched():
    assert torch.Tensor._spyre_tensor_patched
    assert nn.Module.to._spyre_patched
    for function in (torch.Tensor.to, torch.empty):
        assert "device_layout" in inspect.signature(function).parameters
    before = torch.Tensor.to, torch.empty, nn.Module.to
    _monkey_patch._patch_tensor_for_spyre()
    assert before == (torch.Tensor.to, torch.empty, nn.Module.to)


class _Seen(torch.overrides.TorchFunctionMode):
    """Keeps the functions that it is asked about."""

    def __init__(self):
        self.functions = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.functions.append(func)
        return func(*args, **(kwargs or {}))


class _Asked(torch.Tensor):
    seen: ClassVar[list] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_modes_are_asked_about_the_functions_that_users_know():
    layout = _C.SpyreTensorLayout([2, 64], H)
    x, kept = torch.ones(2, 64, dtype=H), torch.ones(2, dtype=H, device="spyre")
    with _Seen() as seen:
        torch.empty(2)
        torch.empty(size=(2, 64), dtype=H, device="spyre")
        on_device = torch.empty(2, 64, dtype=H, device_layout=layout)
    assert seen.functions == [torch.empty] * 3
    assert on_device.device_tensor_layout() == layout
    with _Seen() as seen:
        x.to(torch.float32)
        x.to("spyre", device_layout=layout)
    assert seen.functions[0] == torch.Tensor.to == seen.functions[1]
    with _Seen() as seen:
        kept.__dlpack_device__()
    assert seen.functions[0] == torch.Tensor.__dlpack_device__


def test_classes_are_asked_about_the_functions_that_users_know():
    layout = _C.SpyreTensorLayout([2, 64], H)
    x = torch.ones(2, 64, dtype=H).as_subclass(_Asked)
    for call, function in (
        (lambda: torch.empty(2, 64, dtype=H, out=x), torch.empty),
        (lambda: x.to(torch.float32), torch.Tensor.to),
        (lambda: torch.ones(1).to(x), torch.Tensor.to),
        (lambda: x.to("spyre", device_layout=layout), torch.Tensor.to),
    ):
        _Asked.seen.clear()
        assert type(call()) is _Asked and _Asked.seen[0] is function


@pytest.mark.parametrize("device", ["cpu", "spyre"])
def test_lazy_modules_move_before_they_know_their_sizes(device):
    moved = nn.LazyLinear(3).to(device)
    moved(torch.ones(2, 5, device=device))
    assert moved.weight.device.type == device and moved.weight.shape == (3, 5)


def test_a_default_device_is_for_tensors_without_a_layout():
    layout = _C.SpyreTensorLayout([2, 64], H)
    with torch.device("cpu"):
        assert torch.empty(2, 64).device.type == "cpu"
        for device in ({}, {"device": None}, {"device": "spyre:0"}):
            x = torch.empty(2, 64, dtype=H, device_layout=layout, **device)
            assert x.device == torch.device("spyre", 0)
    with torch.device("spyre"):
        assert torch.empty(2, 64, dtype=H).device == torch.device("spyre", 0)


@pytest.mark.parametrize(
    "function",
    [
        torch.empty,
        torch.Tensor.to,
        torch.Tensor.__dlpack_device__,
        nn.Module.to,
        torch.amp.GradScaler.unscale_,
        torch._tensor_str._tensor_str,
        torch._tensor_str._add_suffixes,
    ],
)
def test_pickled_functions_are_those_of_torch(function):
    data = pickle.dumps(function)
    assert b"spyre" not in data and pickle.loads(data) is function


def test_the_module_has_no_file():
    done = run(
        "print(hasattr(torch.spyre, '__file__'), torch.spyre.is_initialized());"
        "print([getattr(torch.spyre, n) for n in"
        " ('GraphLowering', 'Lowering', 'Codegen', 'Compile')])"
    )
    assert done.stdout == "False False\n[None, None, None, None]\n"


def test_submodules_without_importing_them():
    names = """
        _inductor _monkey_patch constants execution logging_config memory model_utils
        ops profiler streams version
    """
    inner = """
        codegen config constants customops decompositions dtype_ops errors logging_utils
        lowering op_spec passes patches propagate_named_dims
    """
    code = f"""
import torch_spyre
for name in {names.split()}:
    getattr(torch_spyre, name)
for name in {inner.split()}:
    getattr(torch_spyre._inductor, name)
print(torch_spyre.profiler.is_available())
"""
    done = run(code)
    assert done.stdout == "True\n", done.stderr
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = torch_spyre.nothing


def test_interface_of_dynamo():
    from torch._dynamo.device_interface import (
        DeviceInterface,
        get_interface_for_device,
    )

    kind = interface.SpyreInterface
    assert issubclass(kind, DeviceInterface) and kind.__name__ == "SpyreInterface"
    assert kind is get_interface_for_device("spyre") is interface.SpyreInterface
    for properties in (
        kind.Worker.get_device_properties(),
        torch.spyre.get_device_properties("spyre:0"),
    ):
        assert (properties.type, properties.index) == ("dd2", 0)
        assert properties.multi_processor_count == 32


def test_overrides_of_inductor():
    from torch._inductor.codegen.common import (
        get_device_op_overrides,
        init_backend_registration,
    )

    init_backend_registration()
    own = get_device_op_overrides("spyre")
    assert type(own) is SpyreDeviceOpOverrides
    lines = [own.set_device(0), own.synchronize(), own.device_guard(0)]
    assert lines == ["pass"] * 3
    scope = {}
    exec(own.import_get_raw_stream_as("raw"), scope)
    assert scope["raw"](0) == 0


def test_autoload_quiets_the_cards_libraries():
    names = ("TORCH_SENDNN_LOG", "DT_DEEPRT_VERBOSE", "DTLOG_LEVEL")
    code = f"import os; print([os.environ[name] for name in {names}])"
    others = dict.fromkeys(names)
    done = subprocess.run(
        [sys.executable, "-c", "import torch;" + code],
        env={k: v for k, v in os.environ.items() if k not in others},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['CRITICAL', '-1', 'error']\n"
    assert "spyre" not in done.stdout + done.stderr
    done = run(code, DTLOG_LEVEL="debug")
    assert "'debug'" in done.stdout


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64, torch.float8_e5m2])
def test_other_dtypes_are_errors_of_both_classes(dtype):
    uses = [
        lambda: torch.empty(3, dtype=dtype, device="spyre"),
        lambda: torch.zeros(3, dtype=F).to(dtype).to("spyre"),
        lambda: torch.zeros(3, device="spyre").to(dtype),
        lambda: torch.spyre.get_elem_in_stick(dtype),
        lambda: torch.spyre.SpyreTensorLayout([3], dtype),
    ]
    text = rf"^Spyre backend does not support dtype {dtype}; supported are torch\."
    for use in uses:
        for kind in (TypeError, RuntimeError):
            with pytest.raises(kind, match=text) as error:
                use()
            assert error.type is _C.UnsupportedDtypeError
    assert _C.get_device_dtype(dtype) == _C.DataFormats.INVALID


CARD = "print(torch.spyre.current_device(), torch.spyre.device_count())"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "0 1"),
        ({"LOCAL_RANK": "1", "AIU_WORLD_SIZE": "2"}, "1 2"),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "3"}, "1 3"),
        ({"LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "16"}, "3 8"),
        # More processes than cards.
        ({"LOCAL_RANK": "9", "LOCAL_WORLD_SIZE": "16"}, "0 8"),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "AIU_WORLD_SIZE": "1"}, "0 1"),
        ({"LOCAL_RANK": "0", "AIU_WORLD_SIZE": "2"}, "0 2"),
    ],
    ids=str,
)
def test_the_card_of_a_rank(environment, expected):
    done = run(CARD, **environment)
    assert done.stdout == expected + "\n", done.stderr


def test_a_card_that_is_set_comes_before_the_rank():
    code = (
        "x = torch.ones(3, device='spyre'); print(x.device);"
        "torch.spyre.set_device(0); print(torch.ones(3, device='spyre').device);"
        "import threading; t = threading.Thread(target=lambda:"
        " print(torch.ones(3, device='spyre').device)); t.start(); t.join()"
    )
    done = run(code, LOCAL_RANK="1", AIU_WORLD_SIZE="2")
    assert done.stdout.split() == ["spyre:1", "spyre:0", "spyre:1"], done.stderr


def test_subprocesses_of_inductor_use_no_card():
    code = (
        "print(torch.spyre._is_in_bad_fork(), torch.spyre.is_available(),"
        " torch.spyre.is_initialized()); torch.ones(3).to('spyre')"
    )
    done = run(code, IS_INDUCTOR_SPAWNED_SUBPROCESS="1")
    assert done.stdout == "True True False\n"
    assert "IS_INDUCTOR_SPAWNED_SUBPROCESS is set" in done.stderr
    assert run(code, IS_INDUCTOR_SPAWNED_SUBPROCESS="0").returncode == 0


def test_switches_take_levels():
    """As torch-spyre's C++ reads them: what is not zero is on."""
    code = "from torch_spyre import _C; print(_C.read_environment('TORCH_SPYRE_DEBUG'))"
    for value, expected in (("2", True), ("1", True), ("0", False), ("00", False)):
        done = run(code, TORCH_SPYRE_DEBUG=value)
        assert done.stdout == f"{expected}\n", done.stderr


#: Of clients, and of the closed stack that ibm-fms runs on.
OTHERS = {
    "SPYRE_ATTN_PROFILING": "1",
    "SPYRE_COMPILE_GRANULARITY": "model",
    "SPYRE_FP8_PREQUANT_FORCE": "1",
    "VLLM_PLUGINS": "spyre_inference",
    "VLLM_CPU_KVCACHE_SPACE": "4",
    "SENCORELETS": "2",
    "DATA_PREC": "fp16",
    "COMPILATION_MODE": "offline_decoder",
    "DTCOMPILER_KEEP_EXPORT": "1",
    "VLLM_DT_MAX_BATCH_SIZE": "4",
    "VLLM_DT_MAX_CONTEXT_LEN": "2048",
    "AIU_WORLD_RANK_0": "0000:1a:00.0",
}


def test_variables_of_others_do_not_disturb():
    code = (
        "x = torch.ones(3, 65, dtype=torch.float16, device='spyre');"
        "print(torch.compile(lambda x: x * 2 + 1)(x).sum().item(),"
        " torch.spyre.device_count())"
    )
    done = run_new(code, PYTHONWARNINGS="error::UserWarning", **OTHERS)
    assert (done.stdout, done.stderr) == ("585.0 1\n", "")


@pytest.mark.parametrize("package", ["", "import torch_spyre._inductor.config"])
def test_import_prints_nothing(package):
    done = run_new(package)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
