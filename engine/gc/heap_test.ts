/**
 * The heap against a model: JavaScript plays the program, with random graphs of structures and arrays of many sizes,
 * interior pointers, host handles and exceptions; after every collection exactly the objects that the model reaches are
 * there, with their contents, and the rest is reused.
 */
import { collectorModule } from "../runtime/realm_store.ts";
import assert from "node:assert/strict";
import { NewEngine } from "../api/engine.ts";
import {
  layoutFields,
  MAX_SMALL_BYTES,
  OBJECT,
  REF_TAG,
  REF_TAG_MASK,
  SIZE_CLASSES,
  sizeClassOf,
} from "../abi/gc_layout.ts";
import { collectorCode } from "../runtime/intrinsics.ts";
import { canonicalTypeIds } from "../wasm/subtype.ts";
import { HEAP, I32, I64, I8, isRef, refType, type SubType } from "../wasm/types.ts";
import type { HeapBudget, HeapOwner } from "./heap_owner.ts";
import { BLOCK_BYTES } from "./collector_layout.ts";
import { CELLS } from "../abi/gc_layout.ts";
import { Heap, HeapFull, type HeapRoots } from "./heap.ts";

const { store } = NewEngine().compile("(module)").instantiate().internal;
const { host } = store.thread;
const ANY = refType(true, HEAP.any);
const NO_LIMIT = 2 ** 40;

const struct = (...storages: number[]): SubType => ({
  final: true,
  supertypes: [],
  composite: { kind: "struct", fields: storages.map((storage) => ({ storage, mutable: true })) },
});
const array = (storage: number): SubType => ({
  final: true,
  supertypes: [],
  composite: { kind: "array", field: { storage, mutable: true } },
});

const LONG = Array.from({ length: 200 }, (_, k) => k % 3 === 0 ? ANY : I64);
const TYPES = [
  struct(I64, ANY, ANY),
  struct(I32, I8, ANY, I64, ANY, I8, ANY),
  struct(I64, ...LONG),
  array(ANY),
  array(I8),
  struct(I64),
  struct(I64, refType(true, 4), ANY, refType(true, 5)),
  array(refType(true, 5)),
];
/** By type: possible targets of its references, where they are restricted. */
const LEAF_OF: Readonly<Record<number, readonly number[]>> = { 6: [4, -1, 5], 7: [5] };
const IDS = canonicalTypeIds({ types: TYPES, recGroups: TYPES.map((_, start) => ({ start, count: 1 })) });

/** A 64-bit word of memory. */
function peek(address: number): number {
  const u32 = new Uint32Array(host.view(address, 8));
  return u32[0] + u32[1] * 0x1_0000_0000;
}

function poke(address: number, value: number): void {
  const u32 = new Uint32Array(host.view(address, 8));
  u32[0] = value;
  u32[1] = value / 0x1_0000_0000;
}

/** An object of the model: its address and its references. */
interface Modelled {
  address: number;
  bytes: number;
  type: number;
  length: number;
  /** Offset of every reference field, and the word that is there. */
  references: Map<number, number>;
  stamp: number;
}

class Mutator implements HeapRoots {
  readonly heap: Heap;
  readonly objects = new Map<number, Modelled>();
  roots: number[] = [];
  hostCount = 1;
  exceptionCount = 1;
  /** Payload of exceptions by number. */
  readonly payloads = new Map<number, number[]>();
  hostMarks: Uint8Array = new Uint8Array(0);
  exceptionMarks: Uint8Array = new Uint8Array(0);
  /** Owners of objects besides the common one, with the bytes that each has been granted. */
  readonly owners: { owner: HeapOwner; granted: () => number }[] = [];
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = generator(seed);
    this.heap = new Heap(host, this, (control) => collectorCode(store, collectorModule(store), control));
    this.heap.types.define(IDS, true);
  }

  below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  handleCounts() {
    return { host: this.hostCount, exceptions: this.exceptionCount };
  }

  visit(_range: (low: number, high: number) => void, word: (word: number) => void): void {
    this.roots.forEach(word);
  }

  visitException(number: number, word: (word: number) => void): void {
    this.payloads.get(number)!.forEach(word);
  }

  marked(hostMarks: Uint8Array, exceptions: Uint8Array): void {
    this.hostMarks = hostMarks.slice();
    this.exceptionMarks = exceptions.slice();
  }

  make(type: number, length = 0): Modelled {
    const { composite } = TYPES[type];
    const offsets: number[] = [];
    let bytes: number;
    if (composite.kind === "struct") {
      const layout = layoutFields(composite.fields.map(({ storage }) => storage === I8 ? 1 : storage === I32 ? 4 : 8));
      bytes = layout.bytes;
      composite.fields.forEach(({ storage }, k) => isRef(storage) && offsets.push(layout.offsets[k]));
    } else {
      bytes = OBJECT.FIELDS + length * (type === 4 ? 1 : 8);
      if (type !== 4) { for (let k = 0; k < length; k++) offsets.push(OBJECT.FIELDS + 8 * k); }
    }
    const address = this.heap.allocate(bytes, NO_LIMIT, this.owners[this.below(this.owners.length + 1)]?.owner);
    assert.equal(address % 8, 0);
    for (let at = 8; at + 8 <= bytes; at += Math.max(8, (bytes >> 5) & ~7)) {
      assert.equal(peek(address + at), 0, "zeroed");
    }
    if (this.below(10) > 0) return this.#added(address, bytes, type, length, offsets);
    for (const [other, { bytes: size }] of this.objects) {
      if (other < address + bytes && address < other + size) throw new Error("overlaps an object that is alive");
    }
    return this.#added(address, bytes, type, length, offsets);
  }

  #added(address: number, bytes: number, type: number, length: number, offsets: readonly number[]): Modelled {
    poke(address, IDS[type] + length * 0x1_0000_0000);
    const made = { address, bytes, type, length, references: new Map(offsets.map((at) => [at, 0])), stamp: 0 };
    if (TYPES[type].composite.kind === "struct" && type !== 1) {
      made.stamp = this.below(2 ** 40);
      poke(address + OBJECT.FIELDS, made.stamp);
    }
    this.objects.set(address, made);
    return made;
  }

  addOwner(): void {
    const { contexts } = store.thread;
    const { region: { u32 }, offset, address } = contexts.allocate(CELLS.SIZE);
    let granted = 0;
    const budget: HeapBudget = {
      take: (_, from, to) => {
        granted += to - from;
        return true;
      },
      give: (bytes) => granted -= bytes,
    };
    const words = u32.subarray(offset >> 2, (offset + CELLS.SIZE) >> 2);
    this.owners.push({ owner: this.heap.addOwner({ address, words }, budget), granted: () => granted });
  }

  /** Removes the oldest owner; its objects stay. */
  removeOwner(): void {
    const { owner, granted } = this.owners.shift()!;
    this.heap.removeOwner(owner);
    owner.words.fill(0x55555555); // nothing reads it any more
    assert.equal(granted(), 0);
  }

  set(object: Modelled, at: number, word: number): void {
    object.references.set(at, word);
    poke(object.address + at, word);
  }

  /** Objects reachable from the roots. */
  reachable(): { objects: Set<number>; hosts: Set<number>; exceptions: Set<number> } {
    const objects = new Set<number>();
    const hosts = new Set<number>();
    const exceptions = new Set<number>();
    const work: number[] = [];
    const follow = (word: number) => {
      const tag = word & REF_TAG_MASK;
      const number = Math.floor(word / 8);
      if (tag === REF_TAG.HOST) hosts.add(number);
      else if (tag === REF_TAG.EXCEPTION && number < this.exceptionCount) {
        if (exceptions.has(number)) return;
        exceptions.add(number);
        this.payloads.get(number)!.forEach(follow);
      } else if (this.objects.has(word) && !objects.has(word)) {
        objects.add(word);
        work.push(word);
      }
    };
    for (const root of this.roots) follow(this.#startOf(root));
    for (let address = work.pop(); address !== undefined; address = work.pop()) {
      for (const word of this.objects.get(address)!.references.values()) follow(word);
    }
    return { objects, hosts, exceptions };
  }

  /** The beginning of the object that a root points into. */
  #startOf(word: number): number {
    if (this.objects.has(word)) return word;
    for (const [address, { bytes }] of this.objects) if (word > address && word < address + bytes) return address;
    return word;
  }

  /** Collects and compares with the model. */
  collect(): void {
    const { objects, hosts, exceptions } = this.reachable();
    this.heap.collect();
    let small = 0;
    for (const [address, object] of this.objects) {
      if (!objects.has(address)) {
        this.objects.delete(address);
        continue;
      }
      if (object.bytes <= MAX_SMALL_BYTES) small++;
      assert.equal(peek(address), IDS[object.type] + object.length * 0x1_0000_0000);
      if (object.stamp !== 0) assert.equal(peek(address + OBJECT.FIELDS), object.stamp);
      for (const [at, word] of object.references) assert.equal(peek(address + at), word);
    }
    assert.equal(this.heap.statistics.liveObjects, small, "exactly the reachable objects survive");
    let blocks = this.heap.common.count, live = this.heap.common.live;
    for (const { owner, granted } of this.owners) {
      assert.equal(granted(), owner.count * BLOCK_BYTES);
      blocks += owner.count;
      live += owner.live;
    }
    assert.equal(blocks * BLOCK_BYTES, this.heap.statistics.heapBytes, "each block has one owner");
    assert.equal(live, this.heap.statistics.liveBytes);
    for (let k = 1; k < this.hostCount; k++) assert.equal(this.hostMarks[k] !== 0, hosts.has(k));
    for (let k = 1; k < this.exceptionCount; k++) assert.equal(this.exceptionMarks[k] !== 0, exceptions.has(k));
  }
}

/** Numbers in [0, 1) from a seed (xorshift). */
function generator(seed: number): () => number {
  let x = seed | 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) / 0x1_0000_0000;
  };
}

Deno.test("size classes: every size has the smallest class that holds it", () => {
  for (let bytes = 8; bytes <= MAX_SMALL_BYTES; bytes += 8) {
    const number = sizeClassOf(bytes);
    assert.ok(SIZE_CLASSES[number] >= bytes && (number === 0 || SIZE_CLASSES[number - 1] < bytes));
  }
  assert.equal(sizeClassOf(MAX_SMALL_BYTES + 8), -1);
});

for (const [stress, owners] of [[0, 0], [7, 0], [0, 3], [7, 3]]) {
  Deno.test(`random graphs survive collections as the model says (stress ${stress}, ${owners} more owners)`, () => {
    for (let seed = 1; seed <= 3; seed++) {
      const m = new Mutator(seed * 7919);
      for (let k = 0; k < owners; k++) m.addOwner();
      m.hostCount = 50;
      m.exceptionCount = 20;
      for (let k = 1; k < 20; k++) m.payloads.set(k, []);
      for (let round = 0; round < 6; round++) {
        const made: Modelled[] = [...m.objects.values()];
        // Nothing is lost while objects are made under stress.
        const roots = m.roots;
        if (stress > 0) m.heap.stress(0);
        if (owners > 0 && round % 2 === 1) {
          m.removeOwner();
          m.addOwner();
        }
        for (let k = 0; k < 120; k++) {
          const type = m.below(TYPES.length);
          const length = type < 3 || type === 5 || type === 6 ? 0 : m.below(20) === 0 ? m.below(9000) : m.below(40);
          made.push(m.make(type, length));
        }
        const anything = () => {
          const choice = m.below(12);
          if (choice === 0) return m.below(2 ** 31) * 2 + 1;
          if (choice === 1) return (1 + m.below(49)) * 8 + REF_TAG.HOST;
          if (choice === 2) return (1 + m.below(19)) * 8 + REF_TAG.EXCEPTION;
          if (choice === 3) return 0;
          return made[m.below(made.length)].address;
        };
        for (const object of made) {
          let k = 0;
          for (const at of object.references.keys()) {
            const leaves = LEAF_OF[object.type];
            const wanted = leaves === undefined ? -1 : leaves[k++ % leaves.length];
            if (m.below(object.references.size) >= 4) continue;
            if (wanted < 0) m.set(object, at, anything());
            else {
              const fitting = made.filter(({ type }) => type === wanted);
              m.set(object, at, fitting.length === 0 ? 0 : fitting[m.below(fitting.length)].address);
            }
          }
        }
        for (let k = 1; k < 20; k++) m.payloads.set(k, m.below(2) === 0 ? [] : [anything(), anything()]);
        m.roots = [...roots.slice(0, 3)];
        for (let k = 0; k < 6; k++) {
          const object = made[m.below(made.length)];
          m.roots.push(m.below(2) === 0 ? object.address : object.address + m.below(object.bytes));
        }
        // Words that resemble references.
        m.roots.push(3, 2 ** 46, made[0].address - 2 ** 37, (2 ** 20) * 8 + REF_TAG.HOST, m.below(2 ** 31));
        m.collect();
        m.roots = m.roots.filter((word) => m.objects.has(word));
        if (stress > 0) {
          m.heap.stress(stress);
          m.roots = [...m.objects.keys()];
          for (let k = 0; k < 40; k++) m.roots.push(m.make(m.below(2)).address);
        }
      }
    }
  });
}

Deno.test("a list of a million structures, and an array of a million, are marked with a short stack", () => {
  const m = new Mutator(1);
  const { heap } = m;
  const big = heap.allocate(OBJECT.FIELDS + 8 * 1_000_000, NO_LIMIT);
  poke(big, IDS[3] + 1_000_000 * 0x1_0000_0000);
  const elements = new Float64Array(host.view(big + OBJECT.FIELDS, 8_000_000));
  const bits = new BigInt64Array(elements.buffer, 0, elements.length);
  m.roots = [big];
  let before = 0;
  for (let k = 0; k < 200_000; k++) {
    const address = heap.allocateWithoutCollecting(32, NO_LIMIT);
    poke(address, IDS[0]);
    poke(address + 16, before);
    before = address;
    if (k % 2 === 0) bits[k] = BigInt(address);
    if (k % 50_000 === 0) heap.collect();
    m.roots = [big, before];
  }
  heap.collect();
  assert.equal(heap.statistics.liveObjects, 200_000);
  m.roots = [big];
  bits.fill(0n, 0, 100_000);
  heap.collect();
  assert.equal(heap.statistics.liveObjects, 199_999); // the newest but one leads to all before it
  m.roots = [];
  heap.collect();
  assert.equal(heap.statistics.liveObjects, 0);
  assert.equal(heap.statistics.heapBytes, 0);
});

Deno.test("the limit: a program that keeps everything gets an error, and one that does not continues", () => {
  const m = new Mutator(2);
  const limit = 2 ** 20;
  m.roots = [];
  for (let k = 0; k < 100_000; k++) m.heap.allocate(64, limit);
  assert.ok(m.heap.statistics.heapBytes <= limit);
  assert.ok(m.heap.statistics.collections >= 5);
  m.heap.collect();
  assert.throws(() => {
    for (;;) {
      const address = m.heap.allocate(64, limit);
      poke(address, IDS[0]);
      m.roots.push(address);
    }
  }, HeapFull);
  assert.ok(m.roots.length > 14_000 && m.roots.length * 64 <= limit);
  m.roots.length = 100;
  poke(m.heap.allocate(64, limit), IDS[0]);
  assert.throws(() => m.heap.allocate(2 ** 20, limit), /out of memory/);
  assert.throws(() => m.heap.allocate(2 ** 31, NO_LIMIT), /allocation size too large/);
});

Deno.test("the limit of one owner does not bind another, and both get their own garbage back", () => {
  const m = new Mutator(4);
  const limit = 2 ** 20;
  m.addOwner();
  m.addOwner();
  const [a, b] = m.owners.map(({ owner }) => owner);
  let length = 0;
  assert.throws(() => {
    for (;; length++) {
      const address = m.heap.allocate(64, limit, a);
      poke(address, IDS[0]);
      poke(address + 16, m.roots[0] ?? 0);
      m.roots = [address];
    }
  }, HeapFull);
  assert.ok(a.count * BLOCK_BYTES <= limit && length * 64 > limit * 0.9);
  const other = m.heap.allocate(64, limit, b);
  poke(other, IDS[0]);
  m.roots.push(other);
  poke(m.heap.allocate(64, NO_LIMIT), IDS[0]);
  assert.throws(() => m.heap.allocate(64, limit, a), HeapFull, "garbage of others is no room for it");
  m.roots = [other];
  for (let k = 0; k < 50_000; k++) poke(m.heap.allocate(64, limit, a), IDS[5]);
  assert.ok(a.count * BLOCK_BYTES <= limit);
  assert.throws(() => m.heap.allocate(limit + 8, limit, b), /more than the limit of 1048576 bytes/);
  m.heap.removeOwner(a);
  m.heap.collect();
  assert.equal(m.heap.statistics.liveObjects, 1);
});

Deno.test("objects held by JavaScript are roots, and each has one wrapper", () => {
  const m = new Mutator(3);
  const a = m.make(0);
  const b = m.make(0);
  m.set(a, 16, b.address);
  const held = m.heap.references.objectAt(a.address);
  assert.equal(m.heap.references.objectAt(a.address), held);
  assert.equal(m.heap.references.addressOf(held), a.address);
  assert.equal(m.heap.references.addressOf({}), undefined);
  assert.ok(Object.isFrozen(held) && Object.getPrototypeOf(held) === null);
  m.heap.collect();
  assert.equal(m.heap.statistics.liveObjects, 2);
});
