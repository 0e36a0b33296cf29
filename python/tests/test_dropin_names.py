# SPDX-License-Identifier: Apache-2.0
"""Names of torch-spyre that its clients import (docs/spec/drop-in.md)."""

import subprocess
import sys
import warnings

import pytest
import torch
import torch_spyre
from interpreters import run_module
from torch_spyre import _inductor
from torch_spyre._inductor import errors, propagate_named_dims
from torch_spyre._inductor.decompositions import spyre_decompositions
from torch_spyre.ops.fallbacks import FallbackWarning, warn_fallback


def test_fallbacks_warn_with_their_own_class():
    torch_spyre.reset_fallback_report()
    x = torch.tensor([2.0, 1.0], dtype=torch.float16, device="spyre")
    with pytest.warns(FallbackWarning, match="aten::.* is falling back to cpu") as seen:
        torch.igamma(x, x)
    assert seen[0].filename == __file__
    assert issubclass(FallbackWarning, UserWarning)


def test_fallbacks_can_be_errors():
    """As spyre-inference's tests have it, also if the operator has warned before."""
    x = torch.ones(2, 2, dtype=torch.float16, device="spyre")
    for action in ("ignore", "once", "error", "error"):
        with warnings.catch_warnings(record=action == "once"):
            warnings.simplefilter(action, FallbackWarning)
            if action == "error":
                with pytest.raises(FallbackWarning, match="falling back"):
                    torch.igamma(x, x)
            else:
                torch.igamma(x, x)


@pytest.mark.parametrize(("option", "shown"), [("", 1), ("-Walways", 3), ("-Wi", 0)])
def test_fallbacks_are_shown_once(option, shown):
    """Whatever line they come from, unless the user says otherwise."""
    code = "import torch; x = torch.ones(2, 2, device='spyre')\n"
    code += "torch.igamma(x, x)\n" * 3
    run = [sys.executable, *filter(None, [option]), "-c", code]
    result = subprocess.run(run, capture_output=True, text=True, check=True)
    assert result.stderr.count("FallbackWarning: aten::") == shown


def test_pytest_takes_the_warning_by_its_name(tmp_path):
    category = "torch_spyre.ops.fallbacks.FallbackWarning"
    (tmp_path / "test_it.py").write_text(
        "import torch\n"
        "def test_it():\n"
        "    torch.special.erfcx(torch.ones(2, device='spyre'))\n"
    )
    for option, status in ((f"error::{category}", 1), (f"ignore::{category}", 0)):
        result = run_module("pytest", "-q", "-W", option, tmp_path)
        assert result.returncode == status, result.stdout
        assert ("FallbackWarning" in result.stdout) == bool(status), result.stdout


def test_warn_fallback_is_attributed_to_its_caller():
    with pytest.warns(
        FallbackWarning, match=r"^aten::x is falling back to cpu$"
    ) as seen:
        warn_fallback("aten::x")
    assert seen[0].filename == __file__


def test_decompositions_can_be_iterated():
    """spyre-inference copies those whose name holds "addm", if any, into Inductor's."""
    names = [op.name() for op in spyre_decompositions]
    assert names and all("::" in name for name in names)
    assert all(callable(function) for function in spyre_decompositions.values())


def test_unsupported_says_what():
    with pytest.raises(RuntimeError, match=r"^Spyre backend does not support: x$"):
        raise errors.Unsupported("x")


def test_hints_by_their_known_names():
    assert _inductor.spyre_hint is torch_spyre.spyre_hint
    assert propagate_named_dims.name_tensor_dims is torch_spyre.name_tensor_dims
    x = torch.ones(2, 65, device="spyre")
    propagate_named_dims.declare_tensor_dim("rows", 2)
    assert propagate_named_dims.name_tensor_dims(x, ["rows", "columns"]) is x
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = _inductor.no_such_name
