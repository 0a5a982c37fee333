# SPDX-License-Identifier: Apache-2.0
"""Random JSON schemas, and values that are likely to satisfy them.

A schema is drawn from what people write: nested objects and arrays, enums, bounds, patterns, formats, combinations, $ref with recursion.
Values are drawn by following the schema; whoever uses them asks a validator whether they really are valid."""
import random

KEYS = ["id", "name", "kind", "a", "b", "c", "x-1", "Größe", "list", "next", "q\"t", "back\\slash", "tab\t"]
WORDS = ["red", "green", "blue", "", "a b", "\"", "\\", "é", "𝄞", "line\nend", "0", "null"]
PATTERNS = ["^[a-z]+$", "^[A-Z][a-z]{0,5}$", "^\\d{3}-\\d{4}$", "ab", "^x", "y$", "^(foo|bar)+$", "[0-9]", "^.{2,4}$", "^[^ab]*$", "^$|^z+$", "^\\w+@\\w+\\.com$", "\\u00e9"]
FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "ipv6", "email", "hostname", "uri", "duration"]


class Maker:
    """Draws one schema with its definitions."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.definitions = {}

    def make(self):
        r = self.random
        for name in r.sample(["node", "item", "point"], r.choice([0, 0, 1, 2])):
            self.definitions[name] = {}
        schema = self.schema(3)
        for name in list(self.definitions):
            self.definitions[name] = self.schema(2)
        if self.definitions:
            if not isinstance(schema, dict):
                schema = {"allOf": [schema]}
            schema["$defs"] = self.definitions
        return schema

    def schema(self, depth):
        r = self.random
        kinds = ["null", "boolean", "integer", "number", "string", "string", "enum", "const", "mixed"]
        if depth > 0:
            kinds += ["object"] * 5 + ["array"] * 3 + ["anyOf", "anyOf", "allOf", "oneOf", "if", "not", "any"]
            if self.definitions:
                kinds += ["ref"] * 3
        kind = r.choice(kinds)
        made = getattr(self, "make_" + kind)(depth)
        if r.random() < 0.15 and isinstance(made, dict):
            made["description"] = "what it is"
        return made

    def make_null(self, depth):
        return {"type": "null"}

    def make_boolean(self, depth):
        return {"type": "boolean"}

    def make_any(self, depth):
        return self.random.choice([True, {}, {"title": "anything"}])

    def make_integer(self, depth):
        return self.bounds({"type": "integer"}, lambda: self.random.choice([self.random.randint(-30, 300), self.random.randint(-10**6, 10**6)]))

    def make_number(self, depth):
        return self.bounds({"type": "number"}, lambda: round(self.random.uniform(-100, 100), self.random.randint(0, 4)))

    def bounds(self, schema, draw):
        r = self.random
        low, high = sorted([draw(), draw()])
        if r.random() < 0.5:
            schema[r.choice(["minimum", "exclusiveMinimum"])] = low
        if r.random() < 0.5:
            schema[r.choice(["maximum", "exclusiveMaximum"])] = high
        if r.random() < 0.2:
            schema["multipleOf"] = r.choice([1, 2, 3, 5, 7, 10, 12, 60, 100, 250])
        return schema

    def make_string(self, depth):
        r = self.random
        schema = {"type": "string"}
        choice = r.random()
        if choice < 0.3:
            schema["pattern"] = r.choice(PATTERNS)
        elif choice < 0.5:
            schema["format"] = r.choice(FORMATS)
        if choice < 0.15 or choice > 0.6:
            low = r.randint(0, 4)
            if r.random() < 0.6:
                schema["minLength"] = low
            if r.random() < 0.6:
                schema["maxLength"] = low + r.randint(0, 8)
        return schema

    def value(self, depth=2):
        r = self.random
        kind = r.randrange(8 if depth else 6)
        if kind == 0:
            return r.choice([None, True, False])
        if kind == 1:
            return r.randint(-5, 5)
        if kind == 2:
            return r.choice([0.5, -1.25, 1e20, 1.0, 3e-7])
        if kind < 6:
            return r.choice(WORDS)
        if kind == 6:
            return [self.value(depth - 1) for _ in range(r.randint(0, 3))]
        return {key: self.value(depth - 1) for key in r.sample(KEYS, r.randint(0, 2))}

    def make_enum(self, depth):
        return {"enum": [self.value() for _ in range(self.random.randint(1, 5))]}

    def make_const(self, depth):
        return {"const": self.value()}

    def make_mixed(self, depth):
        r = self.random
        schema = {"type": r.sample(["null", "boolean", "integer", "string", "number"], r.randint(1, 3))}
        if r.random() < 0.5:
            schema["minimum"] = r.randint(-5, 5)
        if r.random() < 0.5:
            schema["maxLength"] = r.randint(0, 5)
        return schema

    def make_object(self, depth):
        r = self.random
        keys = r.sample(KEYS, r.randint(0, 5))
        schema = {"type": "object"}
        if keys or r.random() < 0.3:
            schema["properties"] = {key: self.schema(depth - 1) for key in keys}
        required = [key for key in keys if r.random() < 0.5]
        if required or r.random() < 0.1:
            schema["required"] = required
        choice = r.random()
        if choice < 0.3:
            schema["additionalProperties"] = False
        elif choice < 0.5:
            schema["additionalProperties"] = self.schema(depth - 1)
        if r.random() < 0.1:
            schema["patternProperties"] = {r.choice(PATTERNS): self.schema(depth - 1) for _ in range(r.randint(1, 2))}
        if r.random() < 0.08:
            schema["propertyNames"] = r.choice([{"maxLength": 5}, {"pattern": "^[a-z]+$"}, {"enum": KEYS[:6]}, {"minLength": 1}])
        if r.random() < 0.1:
            schema["minProperties"] = r.randint(0, max(1, len(keys)))
        if r.random() < 0.1:
            schema["maxProperties"] = max(len(required), r.randint(0, 4))
        if keys and r.random() < 0.06:
            schema["dependentRequired"] = {r.choice(keys): [r.choice(keys)]}
        return schema

    def make_array(self, depth):
        r = self.random
        schema = {"type": "array"}
        if r.random() < 0.8:
            schema["items"] = self.schema(depth - 1)
        if r.random() < 0.2:
            schema["prefixItems"] = [self.schema(depth - 1) for _ in range(r.randint(1, 3))]
        low = r.randint(0, 3)
        if r.random() < 0.4:
            schema["minItems"] = low
        if r.random() < 0.6:
            schema["maxItems"] = low + r.randint(0, 3)
        if r.random() < 0.1:
            schema["items"] = {"enum": r.sample(WORDS, r.randint(1, 5))}
            schema["uniqueItems"] = True
        return schema

    def make_anyOf(self, depth):
        r = self.random
        schema = {"anyOf": [self.schema(depth - 1) for _ in range(r.randint(1, 3))]}
        return schema

    def make_allOf(self, depth):
        r = self.random
        if r.random() < 0.5:
            return {"allOf": [self.make_object(depth - 1) if depth > 1 else self.make_integer(0) for _ in range(2)]}
        return {"allOf": [self.schema(depth - 1)]}

    def make_oneOf(self, depth):
        r = self.random
        kinds = r.sample(["make_null", "make_boolean", "make_integer", "make_string"] + (["make_array"] if depth > 1 else []), r.randint(2, 3))
        if r.random() < 0.6:
            return {"oneOf": [getattr(self, kind)(depth - 1) for kind in kinds]}
        tagged = []
        for tag in r.sample(WORDS, r.randint(2, 3)):
            each = self.make_object(depth - 1)
            each.setdefault("properties", {})["kind"] = {"const": tag}
            each["required"] = sorted(set(each.get("required", []) + ["kind"]))
            tagged.append(each)
        return {"oneOf": tagged}

    def make_not(self, depth):
        r = self.random
        if r.random() < 0.5:
            return {"type": "string", "maxLength": 6, "not": r.choice([{"enum": ["red", "a b"]}, {"pattern": "^[a-z]+$"}, {"maxLength": 1}, {"const": ""}])}
        schema = self.make_object(depth - 1)
        schema["not"] = {"required": [r.choice(KEYS)]}
        return schema

    def make_if(self, depth):
        schema = self.make_object(depth - 1)
        schema.setdefault("properties", {})["kind"] = {"enum": ["red", "blue"]}
        schema["if"] = {"properties": {"kind": {"const": "red"}}, "required": ["kind"]}
        schema["then"] = {"required": ["a"]}
        if self.random.random() < 0.5:
            schema["else"] = {"properties": {"a": False}}
        return schema

    def make_ref(self, depth):
        return {"$ref": "#/$defs/" + self.random.choice(list(self.definitions))}


class Drawer:
    """Draws values by following a schema; most of them are valid."""

    def __init__(self, schema, seed):
        self.root = schema
        self.random = random.Random(seed)

    def draw(self):
        try:
            return self.follow([self.root], 0)
        except RecursionError:
            return None

    def flatten(self, schemas):
        """Schemas without combinations: one of each anyOf is taken."""
        flat, todo, seen = [], list(schemas), 0
        while todo and seen < 200:
            seen += 1
            schema = todo.pop(0)
            if not isinstance(schema, dict):
                continue
            flat.append(schema)
            if "$ref" in schema:
                todo.append(self.root["$defs"][schema["$ref"].split("/")[-1]])
            todo += schema.get("allOf", [])
            for word in ("anyOf", "oneOf"):
                if word in schema:
                    todo.append(self.random.choice(schema[word]))
            if "if" in schema:
                todo += [schema["if"], schema.get("then", True)] if self.random.random() < 0.5 else [schema.get("else", True)]
        return flat

    def follow(self, schemas, depth):
        r = self.random
        flat = self.flatten(schemas)
        for schema in flat:
            if "const" in schema:
                return schema["const"]
            if "enum" in schema:
                return r.choice(schema["enum"])
        kinds = {"null", "boolean", "integer", "number", "string", "array", "object"}
        for schema in flat:
            if "type" in schema:
                mine = {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"])
                if "number" in mine:
                    mine |= {"integer"}
                kinds &= mine
        if depth > 5:
            kinds = kinds - {"array", "object"} or kinds
        kind = r.choice(sorted(kinds) or ["null"])
        return getattr(self, "draw_" + kind)(flat, depth)

    def draw_null(self, flat, depth):
        return None

    def draw_boolean(self, flat, depth):
        return self.random.random() < 0.5

    def limit(self, flat, word, best, start):
        return best([schema[word] for schema in flat if word in schema] + [start])

    def draw_integer(self, flat, depth):
        low = max(self.limit(flat, "minimum", max, -1000), self.limit(flat, "exclusiveMinimum", max, -1001))
        high = min(self.limit(flat, "maximum", min, low + 2000), self.limit(flat, "exclusiveMaximum", min, low + 2000))
        value = self.random.randint(int(low), max(int(low), int(high)))
        for schema in flat:
            if "multipleOf" in schema:
                value -= value % schema["multipleOf"]
        return value

    def draw_number(self, flat, depth):
        low = max(self.limit(flat, "minimum", max, -1000), self.limit(flat, "exclusiveMinimum", max, -1001))
        high = min(self.limit(flat, "maximum", min, low + 2000), self.limit(flat, "exclusiveMaximum", min, low + 2000))
        return self.random.choice([self.draw_integer(flat, depth), round(self.random.uniform(low, max(low, high)), self.random.randint(1, 4)), low, high])

    def draw_string(self, flat, depth):
        r = self.random
        low = self.limit(flat, "minLength", max, 0)
        high = self.limit(flat, "maxLength", min, low + 6)
        text = "".join(r.choice("abxyz019 \"\\é𝄞\n/") for _ in range(r.randint(low, max(low, high))))
        return r.choice([text, text, r.choice(WORDS), r.choice(["abc", "foobar", "555-1234", "x", "yy", "Abc", "zz", "2024-02-29", "12:30:00Z", "2021-06-01T10:00:00+02:00", "127.0.0.1", "::1", "a@b.c",
                                                               "b1f5a2b4-0000-4000-8000-0123456789ab", "example.org", "https://example.org/a?b#c", "P3DT4H", "me@x.com", "é"])])

    def draw_array(self, flat, depth):
        r = self.random
        low = self.limit(flat, "minItems", max, 0)
        high = self.limit(flat, "maxItems", min, low + 2)
        first = max([len(schema.get("prefixItems", [])) for schema in flat] + [0])
        items = []
        for i in range(r.randint(low, max(low, high))):
            mine = [schema["prefixItems"][i] if i < len(schema.get("prefixItems", [])) else schema.get("items", True) for schema in flat]
            items.append(self.follow(mine, depth + 1) if any(schema is not True for schema in mine) or i < first else r.choice([1, "x", None]))
        return items

    def draw_object(self, flat, depth):
        r = self.random
        keys, required = [], set()
        for schema in flat:
            keys += [key for key in schema.get("properties", {}) if key not in keys]
        for schema in flat:
            required |= set(schema.get("required", []))
            keys += [key for key in schema.get("required", []) if key not in keys]
        made = {}
        for key in keys:
            mine = [schema["properties"][key] for schema in flat if key in schema.get("properties", {})]
            if key in required or (r.random() < 0.5 and depth < 4):
                made[key] = self.follow(mine, depth + 1)
        more = [schema["additionalProperties"] for schema in flat if "additionalProperties" in schema]
        if more and all(schema is not False for schema in more):
            for key in r.sample(["zz", "more", "é"], r.randint(0, 2)):
                if key not in made and key not in keys:
                    made[key] = self.follow(more, depth + 1)
        return made
