# SPDX-License-Identifier: Apache-2.0
import os
import tempfile

import pytest

# Who reads freed or undefined memory sees infinities, NaN in fp32.
os.environ["SPYRE_POISON_FREED"] = "1"

import torch_spyre


@pytest.fixture(autouse=True, scope="session")
def _empty_program_cache():
    """Tests neither use nor leave programs in the user's cache."""
    before = os.environ.get("SPYRE_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="spyre-tests-") as folder:
        os.environ["SPYRE_CACHE_DIR"] = folder
        yield
    if before is None:
        del os.environ["SPYRE_CACHE_DIR"]
    else:
        os.environ["SPYRE_CACHE_DIR"] = before


@pytest.fixture(autouse=True)
def _fresh_fallback_report():
    """Each test sees its own fallbacks, and their warnings."""
    torch_spyre.reset_fallback_report()
    yield


@pytest.fixture
def no_fallback():
    """Fails the test if an operator ran on the CPU."""
    yield
    assert torch_spyre.fallback_report() == {}
