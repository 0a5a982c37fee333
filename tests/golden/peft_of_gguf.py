#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the PEFT folder that a LoRA in GGUF could have come from: tests/data/adapter/peft-a was made so from lora-a.gguf, F32 values as they are.

usage: peft_of_gguf.py LORA.gguf FOLDER HEAD_DIM RANK ALPHA       rows of q and k go back to the original order, for llama"""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import tiny_gguf

MODULES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
           "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def original_rows(data, row_bytes, head_dim):
    """Row 2j + p of a head was row p * head_dim / 2 + j."""
    rows = [data[i:i + row_bytes] for i in range(0, len(data), row_bytes)]
    out = list(rows)
    for at, row in enumerate(rows):
        head, inside = divmod(at, head_dim)
        out[head * head_dim + inside % 2 * (head_dim // 2) + inside // 2] = row
    return b"".join(out)


def main():
    source, folder, head_dim, rank, alpha = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    header, data = {}, b""
    for name, shape, kind, values in tiny_gguf.Gguf(source).tensors:
        _, layer, weight, _, half = name.split(".")
        values = values[:shape[0] * shape[1] * 4]
        assert kind == 0, "F32 only"
        if half == "lora_b" and weight in ("attn_q", "attn_k"):
            values = original_rows(values, shape[0] * 4, head_dim)
        header[f"base_model.model.model.layers.{layer}.{MODULES[weight]}.lora_{half[-1].upper()}.weight"] = {
            "dtype": "F32", "shape": [shape[1], shape[0]], "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "adapter_model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
        json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "use_rslora": False, "use_dora": False, "bias": "none",
                   "target_modules": sorted({m.split(".")[-1] for m in MODULES.values()}), "base_model_name_or_path": "tiny-llama"},
                  file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
