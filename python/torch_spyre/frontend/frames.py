# SPDX-License-Identifier: Apache-2.0
"""Room for the frames of Python functions that call each other deeply."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

#: Words of 8 bytes. Some thousand frames have room in so many.
_ROOM = 1 << 17


def with_room_for_frames(
    function: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Calls a function. The frames of all that it calls lie in one piece of memory.

    CPython gets memory for frames in pieces of 16 KiB, which some 25 of them fill, and
    gives a piece back when the first frame in it returns. If a function calls others
    where a piece ends, each call gets and frees one: a tenth of the time that Dynamo
    takes to trace a graph may go into that.
    """
    return function(*args, **kwargs)


# A frame that is larger than a piece gets one of the next power of two of bytes, of
# which later frames use the rest: so this frame says that it needs half and a little
# more. Nothing touches what it does not use. Before 3.11 frames were objects.
if sys.version_info >= (3, 11):
    with_room_for_frames.__code__ = with_room_for_frames.__code__.replace(
        co_stacksize=_ROOM
    )
