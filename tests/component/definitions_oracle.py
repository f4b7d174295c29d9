"""Answers questions about lifting and lowering with the specification's definitions.py.

In: one JSON request per line: {types, encoding, pointer, values} asks to lower, {types, encoding, pointer, memory, flat}
asks to lift. Out: one JSON answer per line. Types and values are in the notation of random_values.ts. Argument: the
folder of definitions.py.
"""
import json
import math
import struct
import sys

sys.path.insert(0, sys.argv[1])
import definitions as d  # noqa: E402

d.DETERMINISTIC_PROFILE = True

PRIMITIVES = {
    "bool": d.BoolType, "s8": d.S8Type, "u8": d.U8Type, "s16": d.S16Type, "u16": d.U16Type, "s32": d.S32Type,
    "u32": d.U32Type, "s64": d.S64Type, "u64": d.U64Type, "f32": d.F32Type, "f64": d.F64Type, "char": d.CharType,
    "string": d.StringType,
}


def type_of(t):
    kind = t["kind"]
    if kind in PRIMITIVES:
        return PRIMITIVES[kind]()
    some = lambda u: None if u is None else type_of(u)
    match kind:
        case "list": return d.ListType(type_of(t["element"]), t.get("length"))
        case "map": return d.MapType(type_of(t["key"]), type_of(t["value"]))
        case "record": return d.RecordType([d.FieldType(f["name"], type_of(f["type"])) for f in t["fields"]])
        case "tuple": return d.TupleType([type_of(u) for u in t["types"]])
        case "variant": return d.VariantType([d.CaseType(c["name"], some(c.get("type"))) for c in t["cases"]])
        case "enum": return d.EnumType(t["names"])
        case "flags": return d.FlagsType(t["names"])
        case "option": return d.OptionType(type_of(t["type"]))
        case "result": return d.ResultType(some(t.get("ok")), some(t.get("err")))
    raise ValueError(kind)


def float_bits(value, format, word):
    return "nan" if math.isnan(value) else str(struct.unpack(word, struct.pack(format, value))[0])


def float_of(text, format, word):
    return math.nan if text == "nan" else struct.unpack(format, struct.pack(word, int(text)))[0]


def units(text, encoding):
    """The length of a text in its source, as store_string expects it."""
    if encoding == "utf8": return len(text.encode("utf-8"))
    return len(text.encode("utf-16-le")) // 2


def value_of(t, v, source):
    t = d.despecialize(t)
    match t:
        case d.BoolType(): return v
        case d.F32Type(): return float_of(v, "<f", "<I")
        case d.F64Type(): return float_of(v, "<d", "<Q")
        case d.CharType(): return v
        case d.StringType(): return (v, source, units(v, source))
        case d.ListType(u, _): return [value_of(u, e, source) for e in v]
        case d.RecordType(fields):
            return {f.label: value_of(f.t, v[f.label], source) for f in fields}
        case d.VariantType(cases):
            [(label, payload)] = v.items()
            [case] = [c for c in cases if c.label == label]
            return {label: None if case.t is None else value_of(case.t, payload, source)}
        case d.FlagsType(): return v
        case _: return int(v)


def json_of(t, v):
    t = d.despecialize(t)
    match t:
        case d.BoolType() | d.CharType(): return v
        case d.F32Type(): return float_bits(v, "<f", "<I")
        case d.F64Type(): return float_bits(v, "<d", "<Q")
        case d.StringType(): return v[0]
        case d.ListType(u, _): return [json_of(u, e) for e in v]
        case d.RecordType(fields): return {f.label: json_of(f.t, v[f.label]) for f in fields}
        case d.VariantType(cases):
            [(label, payload)] = v.items()
            [case] = [c for c in cases if c.label == label]
            return {label: None if case.t is None else json_of(case.t, payload)}
        case d.FlagsType(): return v
        case _: return str(v)


class Heap:
    """A memory whose allocations follow each other."""
    def __init__(self, pointer):
        self.memory = d.MemInst(bytearray(1 << 16), pointer)
        self.last = 8

    def context(self, encoding):
        opts = d.LiftLowerOptions(encoding, self.memory)
        cx = d.LiftLowerContext(opts, None)

        def reallocate(old, old_bytes, alignment, new_bytes):
            if new_bytes <= old_bytes: return old
            pointer = d.align_to(self.last, alignment)
            self.last = pointer + new_bytes
            self.memory.bytes[pointer:pointer + old_bytes] = self.memory.bytes[old:old + old_bytes]
            return pointer

        cx.reallocate = reallocate
        return cx


def core_text(v):
    return "nan" if isinstance(v, float) and math.isnan(v) else repr(v) if isinstance(v, float) else str(v)


def lower(request):
    ts = [type_of(t) for t in request["types"]]
    heap = Heap(request["pointer"])
    cx = heap.context(request["encoding"])
    source = "utf16" if request["encoding"] != "utf8" else "utf8"
    values = [value_of(t, v, source) for t, v in zip(ts, request["values"])]
    flat = d.lower_flat_values(cx, d.MAX_FLAT_PARAMS, values, ts)
    kinds = ["i64" if request["pointer"] == "i64" else "i32"]
    flattened = d.flatten_types(ts, cx.opts)
    if len(flattened) <= d.MAX_FLAT_PARAMS: kinds = flattened
    return {"flat": [[k, core_text(v)] for k, v in zip(kinds, flat)], "memory": bytes(heap.memory.bytes[:heap.last]).hex()}


def lift(request):
    ts = [type_of(t) for t in request["types"]]
    heap = Heap(request["pointer"])
    content = bytes.fromhex(request["memory"])
    heap.memory.bytes[:len(content)] = content
    cx = heap.context(request["encoding"])
    flat = [float(v) if k[0] == "f" else int(v) for k, v in request["flat"]]
    values = d.lift_flat_values(cx, d.MAX_FLAT_PARAMS, d.CoreValueIter(flat), ts)
    return {"values": [json_of(t, v) for t, v in zip(ts, values)]}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(lift(request) if "memory" in request else lower(request)), flush=True)
