"""Every annotated shape of the package is checked while the tests run."""

import os

from jaxtyping import install_import_hook

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
install_import_hook("gspo", "beartype.beartype")
