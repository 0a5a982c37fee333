"""Reads and writes small GGUF files, for cases that need one with other metadata or in several parts. Little-endian, version 3."""
import struct

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


class Gguf:
    """keys: {name: (type, raw bytes of the value)}; tensors: [(name, shape, type, data)]."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 8
        n_tensors, n_keys = self.take("<QQ")
        self.keys = {}
        for _ in range(n_keys):
            name = self.take_string()
            kind, = self.take("<I")
            start = self.at
            self.skip_value(kind)
            self.keys[name] = (kind, self.data[start:self.at])
        infos = []
        for _ in range(n_tensors):
            name = self.take_string()
            n_dims, = self.take("<I")
            shape = self.take(f"<{n_dims}Q")
            infos.append((name, shape, *self.take("<IQ")))
        base = (self.at + 31) // 32 * 32
        ends = sorted([info[3] for info in infos] + [len(self.data) - base])
        self.tensors = [(name, shape, kind, self.data[base + offset:base + next(e for e in ends if e > offset)])
                        for name, shape, kind, offset in infos]

    def take(self, layout):
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values

    def take_string(self):
        size, = self.take("<Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def skip_value(self, kind):
        if kind == STRING:
            self.take_string()
        elif kind == ARRAY:
            inner, count = self.take("<IQ")
            for _ in range(count):
                self.skip_value(inner)
        else:
            self.at += struct.calcsize("<" + SCALARS[kind])


def write(path, keys, tensors):
    out = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)))
    for name, (kind, raw) in keys.items():
        out += string(name) + struct.pack("<I", kind) + raw
    offset = 0
    for name, shape, kind, data in tensors:
        out += string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, offset)
        offset += (len(data) + 31) // 32 * 32
    out += bytes(-len(out) % 32)
    for _, _, _, data in tensors:
        out += data + bytes(-len(data) % 32)
    with open(path, "wb") as file:
        file.write(out)


def with_template(source, path, template):
    """The same model with a chat template."""
    gguf = Gguf(source)
    keys = dict(gguf.keys)
    keys["tokenizer.chat_template"] = (STRING, string(template))
    write(path, keys, gguf.tensors)
    return path


def split(source, folder, name, n):
    """The same model in n parts; returns their paths."""
    gguf = Gguf(source)
    each = -(-len(gguf.tensors) // n)
    paths = []
    for i in range(n):
        keys = dict(gguf.keys) if i == 0 else {}
        keys["split.no"] = (2, struct.pack("<H", i))
        keys["split.count"] = (2, struct.pack("<H", n))
        keys["split.tensors.count"] = (5, struct.pack("<i", len(gguf.tensors)))
        paths.append(f"{folder}/{name}-{i + 1:05d}-of-{n:05d}.gguf")
        write(paths[-1], keys, gguf.tensors[i * each:(i + 1) * each])
    return paths
