/** Canonical type ids and type matching: equal recursive groups, chains of supertypes, abstract heap types, limits. */
import assert from "node:assert/strict";
import { InvalidError } from "../base/errors.ts";
import {
  bottomOf,
  canonicalFuncTypeId,
  canonicalType,
  canonicalTypeIds,
  closeFuncType,
  closeGlobalType,
  closeTableType,
  closeValType,
  HEAP_BOTTOM,
  heapMatches,
  isSubtypeId,
  matchesFuncType,
  matchesGlobalType,
  matchesIn,
  matchesLimits,
  matchesMemoryType,
  matchesTableType,
  matchesTagType,
  matchesValType,
  MAX_SUBTYPE_DEPTH,
  REF_BOTTOM,
  subtypeDepth,
  supertypeDisplay,
  supertypeId,
  topHeap,
} from "./subtype.ts";
import {
  BOTTOM,
  type CompositeType,
  EXNREF,
  EXTERNREF,
  F32,
  FUNCREF,
  HEAP,
  type HeapType,
  heapTypeName,
  I32,
  I64,
  I8,
  refType,
  type SubType,
  type ValType,
} from "./types.ts";

function func(params: ValType[], results: ValType[] = []): CompositeType {
  return { kind: "func", params, results };
}

function struct(...fields: (ValType | [ValType])[]): CompositeType {
  return {
    kind: "struct",
    fields: fields.map((field) =>
      Array.isArray(field) ? { storage: field[0], mutable: true } : { storage: field, mutable: false }
    ),
  };
}

function array(storage: ValType, mutable = false): CompositeType {
  return { kind: "array", field: { storage, mutable } };
}

function final(composite: CompositeType): SubType {
  return { final: true, supertypes: [], composite };
}

function open(composite: CompositeType, ...supertypes: number[]): SubType {
  return { final: false, supertypes, composite };
}

/** Each argument is a recursive group. */
function groups(...list: SubType[][]): { types: SubType[]; recGroups: { start: number; count: number }[] } {
  const types: SubType[] = [];
  const recGroups = list.map((group) => {
    const start = types.length;
    types.push(...group);
    return { start, count: group.length };
  });
  return { types, recGroups };
}

function ids(...list: SubType[][]): number[] {
  return [...canonicalTypeIds(groups(...list))];
}

Deno.test("equal types of any modules have one id, different types have different ones", () => {
  const [a, b, c, d] = ids([final(func([I32]))], [final(func([I32]))], [final(func([I64]))], [final(func([], [I32]))]);
  assert.equal(a, b);
  assert.equal(new Set([a, c, d]).size, 3);
  assert.deepEqual(ids([final(func([I64]))], [final(func([I32]))]), [c, a]);
  assert.ok(a >= 1);
});

Deno.test("finality, mutability, supertypes and group membership are part of a type", () => {
  const f = func([]);
  const all = [
    ids([final(f)])[0],
    ids([open(f)])[0],
    ids([open(f)], [open(f, 0)])[1],
    ids([open(f)], [{ final: true, supertypes: [0], composite: f }])[1],
    ids([final(f), final(f)])[0],
    ids([final(f), final(f)])[1],
    ids([final(f), final(f), final(f)])[1],
    ids([final(struct(I32))])[0],
    ids([final(struct([I32]))])[0],
    ids([final(struct(I32, I32))])[0],
    ids([final(array(I32))])[0],
    ids([final(array(I32, true))])[0],
    ids([final(array(I8))])[0],
  ];
  assert.equal(new Set(all).size, all.length);
});

Deno.test("equal recursive groups have equal ids at any position", () => {
  // (rec (type (struct (ref 1))) (type (struct (ref 0)))) twice, the second after another type.
  const pair = (at: number) => [final(struct(refType(false, at + 1))), final(struct(refType(false, at)))];
  const [a, b, other, c, d] = ids(pair(0), [final(func([F32, F32]))], pair(3));
  assert.deepEqual([c, d], [a, b]);
  assert.notEqual(a, b);
  assert.notEqual(other, a);
  // A reference into an equal group outside differs from a reference within: rolling does not extend beyond the group.
  const [first, outside] = ids([final(struct(refType(false, 0)))], [final(struct(refType(false, 0)))]);
  assert.notEqual(first, outside);
});

Deno.test("a single recursive type is equal in every module", () => {
  const list = (at: number) => [open(struct(I32, refType(true, at)))];
  assert.equal(ids(list(0))[0], ids([final(func([]))], list(1))[1]);
});

const UNKNOWN: readonly [string, SubType[][], RegExp][] = [
  ["a field beyond the group", [[final(struct(refType(true, 1)))]], /^unknown type 1/],
  ["a parameter of a later group", [[final(func([refType(true, 1)]))], [final(func([]))]], /^unknown type 1/],
  ["a result beyond all types", [[final(func([], [refType(false, 7)]))]], /^unknown type 7/],
  ["an element type", [[final(array(refType(true, 10)))]], /^unknown type 10/],
  ["a supertype beyond the group", [[open(func([]), 5)]], /^unknown type 5/],
  ["itself as supertype", [[open(func([]), 0)]], /^sub type 0 is declared before/],
  ["a later supertype in its group", [[open(func([]), 1), open(func([]))]], /^sub type 0 is declared before/],
  ["two supertypes", [[open(func([]))], [open(func([]))], [open(func([]), 0, 1)]], /^sub type 2 has 2 supertypes/],
];

for (const [what, list, message] of UNKNOWN) {
  Deno.test(`a type cannot have ${what}`, () => {
    assert.throws(() => ids(...list), (error) => error instanceof InvalidError && message.test(error.message));
  });
}

Deno.test("errors carry the offset that the caller knows", () => {
  const bad = groups([final(func([]))], [final(func([refType(true, 9)]))]);
  assert.throws(
    () => canonicalTypeIds(bad, (index) => 100 + index),
    (error) => error instanceof InvalidError && error.place.offset === 101,
  );
});

Deno.test("chains of supertypes: depth, display, subtyping, and the limit", () => {
  const chain = (length: number) => {
    const list: SubType[][] = [[open(struct())]];
    for (let i = 1; i < length; i++) list.push([open(struct(), i - 1)]);
    return list;
  };
  const got = ids(...chain(MAX_SUBTYPE_DEPTH + 1));
  const last = got.at(-1)!;
  assert.equal(subtypeDepth(last), MAX_SUBTYPE_DEPTH);
  assert.equal(supertypeId(got[0]), 0);
  assert.equal(supertypeId(last), got.at(-2));
  assert.deepEqual([...supertypeDisplay(last)], got);
  for (let i = 0; i < got.length; i++) {
    assert.equal(isSubtypeId(last, got[i]), true);
    assert.equal(isSubtypeId(got[i], last), i === got.length - 1);
  }
  assert.throws(() => ids(...chain(MAX_SUBTYPE_DEPTH + 2)), /^InvalidError: sub type 64 has more than 63 supertypes/);
  // The rejected type has no id, and a type outside the chain is not a subtype of its end.
  const [root, left, right] = ids([open(struct())], [open(struct(I32), 0)], [open(struct(I64), 0)]);
  assert.equal(root, got[0]);
  assert.equal(isSubtypeId(left, right), false);
  assert.equal(isSubtypeId(left, root), true);
});

/** The abstract heap types with their strict supertypes, as in the specification, 3.3.3. */
const ABOVE: Readonly<Record<string, readonly string[]>> = {
  any: [],
  eq: ["any"],
  i31: ["eq", "any"],
  struct: ["eq", "any"],
  array: ["eq", "any"],
  none: ["i31", "struct", "array", "eq", "any"],
  func: [],
  nofunc: ["func"],
  extern: [],
  noextern: ["extern"],
  exn: [],
  noexn: ["exn"],
  cont: [],
  nocont: ["cont"],
};

Deno.test("abstract heap types match exactly as the specification says", () => {
  const names = Object.keys(HEAP) as (keyof typeof HEAP)[];
  assert.equal(names.length, Object.keys(ABOVE).length);
  for (const a of names) {
    for (const b of names) {
      assert.equal(heapMatches(HEAP[a], HEAP[b]), a === b || ABOVE[a].includes(b), `${a} <: ${b}`);
    }
    assert.equal(heapMatches(HEAP_BOTTOM, HEAP[a]), true);
    assert.equal(heapMatches(HEAP[a], HEAP_BOTTOM), false);
  }
});

Deno.test("concrete types match the abstract ones above, and their bottoms match them", () => {
  const [f, s, a] = ids([final(func([]))], [final(struct())], [final(array(I32))]);
  const cases: readonly [number, readonly HeapType[], HeapType][] = [
    [f, [HEAP.func], HEAP.nofunc],
    [s, [HEAP.struct, HEAP.eq, HEAP.any], HEAP.none],
    [a, [HEAP.array, HEAP.eq, HEAP.any], HEAP.none],
  ];
  for (const [id, above, bottom] of cases) {
    for (const heap of Object.values(HEAP)) {
      assert.equal(heapMatches(id, heap), above.includes(heap), heapTypeName(heap));
      assert.equal(heapMatches(heap, id), heap === bottom, heapTypeName(heap));
    }
    assert.equal(bottomOf(id), bottom);
    assert.equal(topHeap(id), above.at(-1));
  }
  assert.equal(topHeap(HEAP.noexn), HEAP.exn);
  assert.equal(bottomOf(HEAP.extern), HEAP.noextern);
});

Deno.test("value types: nullability, bottom, numbers", () => {
  const ref = refType(false, HEAP.func);
  assert.equal(matchesValType(ref, FUNCREF), true);
  assert.equal(matchesValType(FUNCREF, ref), false);
  assert.equal(matchesValType(I32, I32), true);
  assert.equal(matchesValType(I32, I64), false);
  assert.equal(matchesValType(I32, FUNCREF), false);
  assert.equal(matchesValType(FUNCREF, I32), false);
  assert.equal(matchesValType(BOTTOM, I32), true);
  assert.equal(matchesValType(BOTTOM, ref), true);
  assert.equal(matchesValType(REF_BOTTOM, ref), true);
  assert.equal(matchesValType(REF_BOTTOM, refType(false, HEAP.exn)), true);
  assert.equal(matchesValType(REF_BOTTOM, I32), false);
  assert.equal(matchesValType(EXTERNREF, EXNREF), false);
});

Deno.test("types of a module match through their canonical ids", () => {
  const table = canonicalTypeIds(groups([open(struct())], [open(struct(I32), 0)], [open(struct())], [final(func([]))]));
  assert.equal(matchesIn(table, refType(false, 1), refType(true, 2)), true);
  assert.equal(matchesIn(table, refType(true, 0), refType(true, 2)), true);
  assert.equal(matchesIn(table, refType(true, 2), refType(true, 1)), false);
  assert.equal(matchesIn(table, refType(true, 3), FUNCREF), true);
  assert.equal(matchesIn(table, refType(true, 3), refType(true, HEAP.any)), false);
  assert.equal(matchesIn(table, refType(true, HEAP.nofunc), refType(true, 3)), true);
});

Deno.test("closed types mean the same in every module", () => {
  const one = canonicalTypeIds(groups([final(struct(I32))]));
  const two = canonicalTypeIds(groups([final(func([]))], [final(struct(I32))]));
  assert.equal(closeValType(refType(true, 0), one), closeValType(refType(true, 1), two));
  assert.equal(closeValType(FUNCREF, one), FUNCREF);
  assert.equal(closeValType(I32, one), I32);
  const closed = closeFuncType({ kind: "func", params: [refType(true, 1)], results: [I32] }, two);
  assert.deepEqual(closed.params, [closeValType(refType(true, 0), one)]);
  assert.equal(canonicalType(one[0]).composite.kind, "struct");
  assert.equal(canonicalFuncTypeId({ kind: "func", params: [], results: [] }), two[0]);
});

Deno.test("function types are contravariant in their parameters", () => {
  const f = (params: ValType[], results: ValType[]) => ({ kind: "func", params, results }) as const;
  const ref = refType(false, HEAP.func);
  assert.equal(matchesFuncType(f([FUNCREF], [ref]), f([ref], [FUNCREF])), true);
  assert.equal(matchesFuncType(f([ref], [FUNCREF]), f([FUNCREF], [ref])), false);
  assert.equal(matchesFuncType(f([I32], []), f([I32, I32], [])), false);
});

Deno.test("limits, memories, tables, globals, tags", () => {
  const limits = (min: bigint, max?: bigint) => ({ address: I32, min, max }) as const;
  assert.equal(matchesLimits(limits(2n), limits(1n)), true);
  assert.equal(matchesLimits(limits(1n), limits(2n)), false);
  assert.equal(matchesLimits(limits(1n), limits(1n, 5n)), false);
  assert.equal(matchesLimits(limits(1n, 5n), limits(1n, 5n)), true);
  assert.equal(matchesLimits(limits(1n, 6n), limits(1n, 5n)), false);
  assert.equal(matchesLimits(limits(1n, 4n), limits(1n)), true);
  assert.equal(matchesLimits({ ...limits(1n), address: I64 }, limits(1n)), false);
  const memory = { limits: limits(1n, 2n), shared: false };
  assert.equal(matchesMemoryType(memory, memory), true);
  assert.equal(matchesMemoryType({ ...memory, shared: true }, memory), false);
  const table = { limits: limits(0n), element: FUNCREF };
  assert.equal(matchesTableType(table, closeTableType(table, new Int32Array(0))), true);
  assert.equal(matchesTableType({ ...table, element: refType(false, HEAP.func) }, table), false);
  const constant = { type: refType(false, HEAP.func), mutable: false };
  assert.equal(matchesGlobalType(constant, { type: FUNCREF, mutable: false }), true);
  assert.equal(matchesGlobalType({ ...constant, mutable: true }, { type: FUNCREF, mutable: true }), false);
  assert.equal(matchesGlobalType(constant, { type: FUNCREF, mutable: true }), false);
  assert.equal(matchesGlobalType(closeGlobalType(constant, new Int32Array(0)), constant), true);
  assert.equal(matchesTagType(3, 3), true);
  assert.equal(matchesTagType(3, 4), false);
});

Deno.test("100,000 types that refer to each other have the same ids in a second module", () => {
  const list: SubType[][] = [];
  for (let i = 0; i < 100_000; i++) list.push([final(func(i === 0 ? [] : [refType(true, i - 1)], [I64, F32, I64]))]);
  const once = canonicalTypeIds(groups(...list));
  assert.deepEqual(canonicalTypeIds(groups(...list)), once);
  assert.equal(new Set(once).size, 100_000);
});
