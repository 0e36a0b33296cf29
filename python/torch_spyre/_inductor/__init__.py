# SPDX-License-Identifier: Apache-2.0
"""The names of torch-spyre's compiler that its users import.

Importing this package must stay cheap: it loads none of its modules, as clients import
``torch_spyre._inductor.config`` before they know whether they compile anything.
"""
