# SPDX-License-Identifier: Apache-2.0
"""Streams, by the names that users of torch-spyre import; all are in torch.spyre."""

from torch_spyre.device.devices import synchronize
from torch_spyre.device.streams import Stream, current_stream, default_stream, stream

__all__ = ["Stream", "current_stream", "default_stream", "stream", "synchronize"]
