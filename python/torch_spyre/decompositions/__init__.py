# SPDX-License-Identifier: Apache-2.0
"""ATen operators in terms of other ATen operators."""
