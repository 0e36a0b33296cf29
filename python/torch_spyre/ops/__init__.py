# SPDX-License-Identifier: Apache-2.0
"""Operators: which run on the CPU."""
