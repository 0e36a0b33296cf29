# SPDX-License-Identifier: Apache-2.0
"""Names that other code refers to."""

DEVICE_NAME = "spyre"
#: Of torch.distributed.
DISTRIBUTED_BACKEND_NAME = "spyreccl"
