# SPDX-License-Identifier: Apache-2.0
import pytest
import torch_spyre


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
