#!/usr/bin/env python3
"""Writes the hand-made seeds of corpus/gguf/: one small file for each thing a GGUF file can be or claim.
Usage: tests/fuzz/seed_gguf.py    (files that fuzzing found lie beside them and are left alone)"""
import os
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "gguf")
U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, content):
    return string(content) if kind == STRING else struct.pack("<" + FORMATS[kind], content)


def key(name, kind, content):
    return string(name) + struct.pack("<I", kind) + value(kind, content)


def array(name, item, contents, count=None):
    head = struct.pack("<IIQ", ARRAY, item, len(contents) if count is None else count)
    return string(name) + head + b"".join(value(item, content) for content in contents)


def tensor(name, ne, kind, offset):
    return string(name) + struct.pack(f"<I{len(ne)}QIQ", len(ne), *ne, kind, offset)


def file(keys, tensors, n_data=0, version=3, alignment=32, n_tensors=None, n_keys=None):
    counts = (len(tensors) if n_tensors is None else n_tensors, len(keys) if n_keys is None else n_keys)
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(keys) + b"".join(tensors)
    return head + (b"\0" * (-len(head) % alignment) + bytes(range(n_data)) if n_data else b"")


ALL_TYPES = [key(f"s{kind}", kind, "text" if kind == STRING else 1) for kind in range(13) if kind != ARRAY]
ALL_ARRAYS = [array(f"a{kind}", kind, ["x", ""] if kind == STRING else [1, 0]) for kind in range(13) if kind != ARRAY]
ARCHITECTURE = key("general.architecture", STRING, "llama")

SEEDS = {
    "nothing": b"",
    "no_tensors": file([], []),
    "all_types": file(ALL_TYPES, []),
    "all_arrays": file(ALL_ARRAYS, []),
    "empty_array": file([array("a", U32, []), array("b", STRING, [])], []),
    "version_2": file([ARCHITECTURE], [tensor("t", [8], 0, 0)], 32, version=2),
    "quantized": file([ARCHITECTURE], [tensor("a", [32, 2], 8, 0), tensor("b", [256], 12, 96)], 240),
    "alignment_64": file([key("general.alignment", U32, 64)], [tensor("a", [3], 0, 0), tensor("b", [3], 0, 64)], 76, alignment=64),
    "alignment_1": file([key("general.alignment", U32, 1)], [tensor("a", [3], 24, 0), tensor("b", [3], 24, 3)], 6, alignment=1),
    "out_of_order": file([], [tensor("b", [8], 0, 64), tensor("a", [8], 0, 0)], 96),
    "zero_dimension": file([], [tensor("z", [0, 5], 0, 0), tensor("n", [], 0, 0)], 4),
    "first_shard": file([key("split.no", U16, 0), key("split.count", U16, 2), key("split.tensors.count", I32, 2)], [tensor("t", [1], 0, 0)], 4),
    "typed": file([key("n", U32, 5), array("n.each", I32, [1, 2, 3]), key("r", F64, 0.5), array("flags", BOOL, [0, 1, 2])], []),
    "claims_keys": file([], [], n_keys=1 << 60),
    "claims_tensors": file([], [], n_tensors=1 << 60),
    "claims_items": file([array("a", U64, [], 1 << 60)], []),
    "claims_strings": file([array("a", STRING, [], 1 << 25)], []),
    "claims_string": file([string("s") + struct.pack("<IQ", STRING, 1 << 60)], []),
    "claims_key_length": file([struct.pack("<Q", 1 << 60)], [], n_keys=1) + b"\0" * 16,
    "nested_array": file([array("a", ARRAY, [], 1) + struct.pack("<IQ", U8, 0)], []),
    "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "version_1": b"GGUF" + struct.pack("<III", 1, 0, 0),
    "duplicate_key": file([key("k", U8, 1), key("k", U8, 1)], []),
    "duplicate_name": file([], [tensor("t", [1], 0, 0), tensor("t", [1], 0, 32)], 36),
    "overlap": file([], [tensor("a", [16], 0, 0), tensor("b", [8], 0, 32)], 64),
    "beyond_end": file([], [tensor("a", [1 << 20], 0, 0)], 32),
    "offset_wraps": file([], [tensor("a", [8], 0, (1 << 64) - 32)], 32),
    "dimensions_overflow": file([], [tensor("a", [1 << 32, 1 << 32, 2, 2], 24, 0)], 32),
    "removed_type": file([], [tensor("a", [32], 4, 0)], 32),
    "partial_block": file([], [tensor("a", [33], 8, 0)], 68),
    "alignment_24": file([key("general.alignment", U32, 24)], [], 0),
    "key_with_nul": file([key(b"a\0b", U8, 1)], []),
    "key_not_utf8": file([key(b"\xc0\x80", U8, 1)], []),
    "cut_short": file(ALL_TYPES, [tensor("t", [8], 0, 0)], 31),
}


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for name, data in SEEDS.items():
        with open(os.path.join(FOLDER, name), "wb") as out:
            out.write(data)
    print(f"{len(SEEDS)} seeds in {FOLDER}")


if __name__ == "__main__":
    main()
