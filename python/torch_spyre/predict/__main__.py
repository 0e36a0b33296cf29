# SPDX-License-Identifier: Apache-2.0
"""``python -m torch_spyre.predict``, which is ``spyre-predict``."""

import sys

from torch_spyre.predict.cli import main

sys.exit(main())
