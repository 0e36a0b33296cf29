# SPDX-License-Identifier: Apache-2.0
"""Kernels made of specifications (``torch_spyre._inductor.op_spec``), and runs."""
