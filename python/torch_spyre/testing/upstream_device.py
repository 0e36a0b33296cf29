# SPDX-License-Identifier: Apache-2.0
"""What TORCH_TEST_DEVICES names: PyTorch runs it in its own module's names."""

from torch_spyre.testing.upstream_base import SpyreTestBase, use_base

# common_device_type's list, given by runpy.
use_base(globals().get("device_type_test_bases", []))
TEST_CLASS = SpyreTestBase
