# SPDX-License-Identifier: Apache-2.0
"""How long a model would take on the card, by its shapes alone.

The model is traced on fake tensors, so no weight is ever allocated; its parts are
compiled as ``torch.compile`` compiles them, and the device model predicts them without
data. Equal layers are one program, predicted once.
"""

from torch_spyre.predict.api import predict, predict_mlir, what_if
from torch_spyre.predict.models import ModelError

__all__ = ["ModelError", "predict", "predict_mlir", "what_if"]
