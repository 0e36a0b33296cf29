# SPDX-License-Identifier: Apache-2.0
"""From PyTorch's graphs and calls to compiled programs."""
