# SPDX-License-Identifier: Apache-2.0
"""Names that other code refers to."""

DEVICE_NAME = "spyre"
