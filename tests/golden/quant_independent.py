#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the goldens of tests/data/quant/ without pith.

Decoded values come from the Python package `gguf` (module gguf.quants) where it knows the type, else
from the few numpy lines below, which were written from the format's description alone; encoded bytes
come from gguf.quants; row sizes from Python's unbounded integers. tests/unit/quant/test_quant_golden.c
reads the files and needs no Python.

usage: quant_independent.py            compare the files in the tree with what is computed now
       quant_independent.py --write    write them
"""
import os
import sys

import gguf
import numpy as np
from gguf import quants

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "quant")
T = gguf.GGMLQuantizationType

# name: id, elements a block, bytes a block, offsets of f16 fields. From the format's table; this list
# is deliberately not taken from pith's sources.
TYPES = {
    "F32": (0, 1, 4, ()), "F16": (1, 1, 2, ()), "Q4_0": (2, 32, 18, (0,)), "Q4_1": (3, 32, 20, (0, 2)),
    "Q5_0": (6, 32, 22, (0,)), "Q5_1": (7, 32, 24, (0, 2)), "Q8_0": (8, 32, 34, (0,)),
    "Q8_1": (9, 32, 36, (0, 2)), "Q2_K": (10, 256, 84, (80, 82)), "Q3_K": (11, 256, 110, (108,)),
    "Q4_K": (12, 256, 144, (0, 2)), "Q5_K": (13, 256, 176, (0, 2)), "Q6_K": (14, 256, 210, (208,)),
    "Q8_K": (15, 256, 292, ()), "IQ2_XXS": (16, 256, 66, (0,)), "IQ2_XS": (17, 256, 74, (0,)),
    "IQ3_XXS": (18, 256, 98, (0,)), "IQ1_S": (19, 256, 50, (0,)), "IQ4_NL": (20, 32, 18, (0,)),
    "IQ3_S": (21, 256, 110, (0,)), "IQ2_S": (22, 256, 82, (0,)), "IQ4_XS": (23, 256, 136, (0,)),
    "I8": (24, 1, 1, ()), "I16": (25, 1, 2, ()), "I32": (26, 1, 4, ()), "I64": (27, 1, 8, ()),
    "F64": (28, 1, 8, ()), "IQ1_M": (29, 256, 56, ()), "BF16": (30, 1, 2, ()),
    "TQ1_0": (34, 256, 54, (52,)), "TQ2_0": (35, 256, 66, (64,)), "MXFP4": (39, 32, 17, ()),
    "NVFP4": (40, 64, 36, ()), "Q1_0": (41, 128, 18, (0,)), "Q2_0": (42, 64, 18, (0,)),
}
ENCODED = ["BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"]


def f16(block, at):
    return np.float32(block[at:at + 2].view("<f2")[0])


def decode_plainly(name, b):
    """One block of a type (or n scalars) that gguf.quants does not know."""
    if name in ("I8", "I16", "I32", "I64", "F32", "F16", "F64"):
        dtype = {"I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "F32": "<f4", "F16": "<f2",
                 "F64": "<f8"}[name]
        return b.view(dtype).astype(np.float32)
    if name == "Q8_1":
        return b[4:].view("i1").astype(np.float32) * f16(b, 0)
    if name == "Q8_K":
        return b[4:260].view("i1").astype(np.float32) * b[:4].view("<f4")[0]
    if name == "Q1_0":
        bits = np.unpackbits(b[2:], bitorder="little")
        return np.where(bits == 1, f16(b, 0), -f16(b, 0)).astype(np.float32)
    if name == "Q2_0":
        codes = (b[2:, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
        return (codes.reshape(-1).astype(np.float32) - 1) * f16(b, 0)
    raise KeyError(name)


def decode(name, b):
    if hasattr(T, name) and getattr(T, name) in quants._type_traits:
        return quants.dequantize(b, getattr(T, name)).astype(np.float32).reshape(-1)
    return np.concatenate([decode_plainly(name, x) for x in b.reshape(-1, TYPES[name][2])]) \
        if TYPES[name][1] > 1 else decode_plainly(name, b)


def random_blocks(name, rng, count):
    _, elems, size, fields = TYPES[name]
    if elems == 1:
        if name in ("F32", "F64", "F16"):
            dtype = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[name]
            return rng.normal(0, 2, 16).astype(dtype).view(np.uint8)
        if name == "BF16":
            return (rng.normal(0, 2, 16).astype("<f4").view("<u4") >> 16).astype("<u2").view(np.uint8)
        return rng.integers(0, 256, 16 * size, dtype=np.uint8)
    b = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for j in range(count):
        for at in fields:
            b[j, at:at + 2] = np.array([rng.normal(0, 0.05)], "<f2").view(np.uint8)
        if name == "Q8_K":
            b[j, :4] = np.array([rng.normal(0, 0.05)], "<f4").view(np.uint8)
        if name == "IQ1_M":  # the four top nibbles are one f16
            h = int(np.array([rng.normal(0, 0.05)], "<f2").view("<u2")[0])
            for k in range(4):
                b[j, 49 + 2 * k] = (b[j, 49 + 2 * k] & 15) | ((h >> 4 * k & 15) << 4)
        if name == "MXFP4":
            b[j, 0] = (0, 1, 2, 100, 127, 128, 140, 254)[j % 8]
        if name == "NVFP4":
            b[j, :4] &= 0x7F
    return b.reshape(-1)


def decode_lines():
    rng = np.random.default_rng(20240917)
    yield "# type, bytes (hex), f32 values (hex of their little-endian bytes); see quant_independent.py"
    for name, (_, elems, _, _) in TYPES.items():
        b = random_blocks(name, rng, 2 if elems > 32 else 8)
        y = decode(name, b)
        yield f"{name} {b.tobytes().hex()} {y.astype('<f4').tobytes().hex()}"


def encode_lines():
    rng = np.random.default_rng(20240918)
    yield "# type, f32 values (hex of their little-endian bytes), bytes (hex); see quant_independent.py"
    for name in ENCODED:
        elems = max(TYPES[name][1], 32)
        x = np.concatenate([rng.normal(0, 0.7, elems), rng.standard_t(3, elems) * 0.01,
                            np.zeros(elems)]).astype("<f4")
        b = quants.quantize(x.reshape(1, -1), getattr(T, name))
        yield f"{name} {x.tobytes().hex()} {b.tobytes().hex()}"


def row_bytes_lines():
    """Sizes around each block, and around 2^64 bytes; `-` where the answer must be false."""
    yield "# id, elements of a row, its bytes or - (not whole blocks, no such type, or 2^64 and more)"
    known = {v[0]: v for v in TYPES.values()}
    top = 2 ** 64
    for i in range(45):
        if i not in known:
            yield f"{i} 0 -"
            yield f"{i} 256 -"
            continue
        _, elems, size, _ = known[i]
        last = (top - 1) // size * elems  # the longest row whose bytes fit in 64 bits
        asked = {0, 1, elems - 1, elems, elems + 1, 4096 * elems, top - 1, top - elems, 2 ** 63,
                 last - elems, last, last + 1, last + elems, 2 ** 32 * elems}
        for ne0 in sorted(n for n in asked if 0 <= n < top):
            total = ne0 // elems * size
            yield f"{i} {ne0} {total if ne0 % elems == 0 and total < top else '-'}"


def main():
    bad = 0
    os.makedirs(DATA, exist_ok=True)
    for file, lines in (("decode.txt", decode_lines()), ("encode.txt", encode_lines()),
                        ("row_bytes.txt", row_bytes_lines())):
        path, text = os.path.join(DATA, file), "\n".join(lines) + "\n"
        if sys.argv[1:] == ["--write"]:
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
            continue
        with open(path, encoding="ascii") as f:
            same = f.read() == text
        print(f"{file}: {'same' if same else 'DIFFERS'}")
        bad += not same
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
