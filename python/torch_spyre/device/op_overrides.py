# SPDX-License-Identifier: Apache-2.0
"""The lines of code about devices that Inductor would write for spyre."""

from __future__ import annotations

from textwrap import dedent

from torch._inductor.codegen.common import DeviceOpOverrides


class SpyreDeviceOpOverrides(DeviceOpOverrides):
    """Programs of this package choose their device and stream when they run."""

    def import_get_raw_stream_as(self, name: str) -> str:
        """The definition of a function that gives the default stream's number."""
        return dedent(f"""
            def {name}(_):
                return 0
        """)

    def set_device(self, device_idx: int) -> str:
        """Nothing to do."""
        return "pass"

    def synchronize(self) -> str:
        """Nothing to do."""
        return "pass"

    def device_guard(self, device_idx: int) -> str:
        """Nothing to do."""
        return "pass"


__all__ = ["SpyreDeviceOpOverrides"]
