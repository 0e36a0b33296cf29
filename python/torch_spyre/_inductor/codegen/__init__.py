# SPDX-License-Identifier: Apache-2.0
"""SuperDSC bundles of specifications (``torch_spyre._inductor.op_spec``)."""
