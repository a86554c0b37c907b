"""glibc's malloc under a large vocabulary.

glibc raises the size from which a block is mapped by itself, up to 32 MiB, as such blocks are freed.
Activations and chunks of logits below it then come from the heap and leave holes that nothing else
fits: at 151,936 words and 8 responses of 512 tokens 501 MB above the weights, against 218 with the
size held at 512 KiB (252 at 4 MiB, 209 at 128 KiB). Mapping costs page faults, within the noise at
that vocabulary; models of a small one keep glibc's own rule.
"""

from __future__ import annotations

import ctypes
import os
import platform

MAPPED_FROM_BYTES = 2**19
MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD in malloc.h
USERS_OWN = "MALLOC_MMAP_THRESHOLD_"


def map_large_blocks() -> bool:
    """For the rest of this process, blocks from MAPPED_FROM_BYTES go back to the system when freed.

    False where that is not ours to say: another C library, or the user set the threshold.
    """
    if USERS_OWN in os.environ or platform.libc_ver()[0] != "glibc":
        return False
    return bool(ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, MAPPED_FROM_BYTES))
