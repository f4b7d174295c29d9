/**
 * Damaged and hostile binaries: any input bytes decode and validate to a module, or to one MalformedError or
 * InvalidError that names a place. growth_test.ts measures the cost. Set HOSTILE_FULL for every prefix of every module
 * and more mutations.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { ByteWriter } from "../../engine/base/bytes.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { InvalidError, MalformedError } from "../../engine/base/errors.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { HAS_TESTSUITE } from "../support/testsuite.ts";
import { ownModules, suiteModules } from "./corpus.ts";

/** Appended to the names of tests that damage the corpus. */
const CORPUS = HAS_TESTSUITE ? "" : " (own modules only: set WASM_TESTSUITE for those of the spec suite)";
const FULL = process.env.HOSTILE_FULL !== undefined;
const FEATURES = featureSet();

/** Decodes and validates; returns the error's message, or "" for a valid module. Any other outcome fails the test. */
function verdict(bytes: Uint8Array): string {
  try {
    validateModule(decodeModule(bytes), FEATURES);
  } catch (error) {
    if (!(error instanceof MalformedError || error instanceof InvalidError)) {
      const hex = [...bytes.subarray(0, 2000)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      throw new assert.AssertionError({ message: `${error} for ${bytes.length} bytes ${hex}` });
    }
    assert.ok(!error.message.includes("\n") && error.message !== "", error.message);
    assert.ok(error.place.offset !== undefined && error.place.offset <= bytes.length, `no place: ${error.message}`);
    return error.message;
  }
  return "";
}

/** A small deterministic generator (xorshift32): numbers from 0 to `below` − 1. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

function corpus(): Uint8Array[] {
  return [...ownModules(), ...(HAS_TESTSUITE ? suiteModules(FULL ? 40_000 : 600) : [])];
}

Deno.test("the modules of the corpus that are here are valid", () => {
  for (const bytes of ownModules()) assert.equal(verdict(bytes), "");
});

Deno.test(`every prefix of a module is rejected, or is a module${CORPUS}`, () => {
  const modules = corpus();
  let rejected = 0;
  for (const [i, bytes] of modules.entries()) {
    // Without HOSTILE_FULL, all prefixes of a few modules and some of the others.
    const step = FULL || i % 16 < 2 ? 1 : 7;
    for (let length = i % step; length < bytes.length; length += step) {
      if (verdict(bytes.subarray(0, length)) !== "") rejected++;
    }
  }
  assert.ok(rejected > 500, `${rejected}`);
});

Deno.test(`flipped bits, changed, inserted and removed bytes do not crash the decoder${CORPUS}`, () => {
  const modules = corpus().filter((bytes) => bytes.length > 10);
  const next = randomNumbers(20201);
  const rounds = FULL ? 2_000_000 : 30_000;
  const counts = { valid: 0, rejected: 0 };
  for (let round = 0; round < rounds; round++) {
    const bytes = modules[next(modules.length)];
    const at = 8 + next(bytes.length - 8);
    const other = modules[next(modules.length)];
    let changed: Uint8Array;
    switch (next(5)) {
      case 0:
        changed = bytes.slice();
        for (let flips = 1 + next(3); flips > 0; flips--) changed[8 + next(bytes.length - 8)] ^= 1 << next(8);
        break;
      case 1:
        changed = bytes.slice();
        changed[at] = next(256);
        break;
      case 2:
        changed = bytes.slice();
        changed[at] = other[8 + next(other.length - 8)];
        break;
      case 3:
        changed = Uint8Array.from([
          ...bytes.subarray(0, at),
          other[8 + next(other.length - 8)],
          ...bytes.subarray(at),
        ]);
        break;
      default:
        changed = Uint8Array.from([...bytes.subarray(0, at), ...bytes.subarray(at + 1)]);
    }
    if (verdict(changed) === "") counts.valid++;
    else counts.rejected++;
  }
  // Both outcomes must occur, or the mutations are too weak or too strong.
  assert.ok(counts.valid > rounds / 100 && counts.rejected > rounds / 3, JSON.stringify(counts));
});

Deno.test("a huge integer in place of any byte ends in a module or an error", () => {
  const huge = [[0xff, 0xff, 0xff, 0xff, 0x0f], [0xff, 0xff, 0xff, 0xff, 0x07], [0x80, 0x80, 0x80, 0x80, 0x01]];
  for (const bytes of ownModules()) {
    for (let at = 8; at < bytes.length; at++) {
      for (const integer of huge) {
        verdict(Uint8Array.from([...bytes.subarray(0, at), ...integer, ...bytes.subarray(at + 1)]));
      }
    }
  }
});

/** A module of one function without parameters, with this body after the local declarations. */
function moduleWithBody(write: (writer: ByteWriter) => void, locals: number[] = [0]): Uint8Array {
  const writer = new ByteWriter();
  writer.raw(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10));
  const section = writer.beginSized();
  writer.u32(1);
  const body = writer.beginSized();
  writer.raw(Uint8Array.from(locals));
  write(writer);
  writer.endSized(body);
  writer.endSized(section);
  return writer.finish();
}

const DEPTH = 1_000_000;

function repeat(writer: ByteWriter, count: number, ...bytes: number[]): void {
  const unit = Uint8Array.from(bytes);
  for (let i = 0; i < count; i++) writer.raw(unit);
}

Deno.test("a million nested blocks validate, and are rejected when one end is missing", () => {
  for (const [open, before] of [[[0x02, 0x40], []], [[0x03, 0x40], []], [[0x41, 0, 0x04, 0x40], []]] as const) {
    const nested = (ends: number) =>
      moduleWithBody((writer) => {
        repeat(writer, DEPTH, ...before, ...open);
        repeat(writer, ends, 0x0b);
      });
    assert.equal(verdict(nested(DEPTH + 1)), "");
    assert.match(verdict(nested(DEPTH)), /unexpected end of section or function/);
    assert.notEqual(verdict(nested(DEPTH + 2)), "");
  }
});

Deno.test("a million nested blocks in a constant expression are rejected", () => {
  const writer = new ByteWriter();
  writer.raw(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 6));
  const section = writer.beginSized();
  writer.raw(Uint8Array.of(1, 0x7f, 0));
  repeat(writer, DEPTH, 0x02, 0x40);
  repeat(writer, DEPTH + 1, 0x0b);
  writer.endSized(section);
  assert.match(verdict(writer.finish()), /^constant expression required/);
});

Deno.test("a body of a million constants, and of a million drops, ends in a type error", () => {
  assert.match(verdict(moduleWithBody((w) => (repeat(w, DEPTH, 0x41, 0), w.u8(0x0b)))), /^type mismatch/);
  assert.match(verdict(moduleWithBody((w) => (repeat(w, DEPTH, 0x1a), w.u8(0x0b)))), /^type mismatch/);
});

Deno.test("branch tables of a hundred thousand labels validate", () => {
  const bytes = moduleWithBody((writer) => {
    for (let i = 0; i < 20; i++) {
      writer.raw(Uint8Array.of(0x41, 0, 0x0e));
      writer.u32(100_000);
      repeat(writer, 100_001, 0);
    }
    writer.u8(0x0b);
  });
  assert.equal(verdict(bytes), "");
});

Deno.test("declaring many locals in few bytes is bounded", () => {
  const most = [0xff, 0xff, 0xff, 0xff, 0x0f];
  assert.match(verdict(moduleWithBody((w) => w.u8(0x0b), [1, ...most, 0x7f])), /^too many locals/);
  assert.equal(verdict(moduleWithBody((w) => w.u8(0x0b), [1, 0xd0, 0x86, 0x03, 0x7f])), "");
  assert.match(verdict(moduleWithBody((w) => w.u8(0x0b), [1, 0xd1, 0x86, 0x03, 0x7f])), /^too many locals: 50001/);
  const count = 100_000;
  const writer = new ByteWriter();
  writer.raw(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3));
  const functions = writer.beginSized();
  writer.u32(count);
  repeat(writer, count, 0);
  writer.endSized(functions);
  writer.u8(10);
  const code = writer.beginSized();
  writer.u32(count);
  repeat(writer, count, 6, 1, 0xd0, 0x86, 0x03, 0x7f, 0x0b);
  writer.endSized(code);
  assert.match(verdict(writer.finish()), /^too many locals of all functions: \d+, at most 50000000 are possible/);
});

/** A module of one section. */
function moduleWithSection(id: number, write: (writer: ByteWriter) => void): Uint8Array {
  const writer = new ByteWriter();
  writer.raw(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
  writer.u8(id);
  const section = writer.beginSized();
  write(writer);
  writer.endSized(section);
  return writer.finish();
}

Deno.test("large sections of small entries validate up to the limits", () => {
  const count = 200_000;
  const entries: readonly (readonly [string, number, number[], RegExp])[] = [
    ["types", 1, [0x60, 0, 0], /^$/],
    ["open subtypes", 1, [0x50, 0, 0x5f, 0], /^$/],
    ["empty groups", 1, [0x4e, 0], /^$/],
    ["a subtype of itself", 1, [0x50, 1, 0, 0x5f, 0], /^sub type 0 is declared before its supertype 0/],
    ["imports", 2, [0, 0, 3, 0x7f, 0], /^$/],
    ["tables", 4, [0x70, 0, 0], /^too many tables/],
    ["memories", 5, [0, 0], /^too many memories/],
    ["globals", 6, [0x7f, 0, 0x41, 0, 0x0b], /^$/],
    ["exports", 7, [0, 0, 0], /^unknown function 0/],
    ["element segments", 9, [1, 0, 0], /^$/],
    ["data segments", 11, [1, 0], /^too many data segments/],
  ];
  for (const [what, id, entry, message] of entries) {
    const bytes = moduleWithSection(id, (writer) => {
      writer.u32(count);
      repeat(writer, count, ...entry);
    });
    assert.match(verdict(bytes), message, what);
  }
});

Deno.test("a recursive group may be large, a chain of supertypes may not be long", () => {
  const group = moduleWithSection(1, (writer) => {
    writer.raw(Uint8Array.of(1, 0x4e));
    writer.u32(100_000);
    repeat(writer, 100_000, 0x5f, 1, 0x63, 0, 0);
  });
  assert.equal(verdict(group), "");
  const chain = (length: number) =>
    moduleWithSection(1, (writer) => {
      writer.u32(length);
      for (let i = 0; i < length; i++) {
        writer.u8(0x50);
        writer.u32(i === 0 ? 0 : 1);
        if (i > 0) writer.u32(i - 1);
        writer.raw(Uint8Array.of(0x5f, 0));
      }
    });
  assert.equal(verdict(chain(64)), "");
  assert.match(verdict(chain(65)), /^sub type 64 has more than 63 supertypes/);
  assert.match(verdict(chain(20_000)), /^sub type 64 has more than 63 supertypes/);
});

Deno.test("name sections of garbage are ignored, however many there are", () => {
  const next = randomNumbers(5);
  const garbage = (size: number) => {
    const bytes = new Uint8Array(size);
    for (let i = 0; i < size; i++) bytes[i] = next(256);
    return bytes;
  };
  for (let round = 0; round < 20; round++) {
    assert.equal(verdict(moduleWithSection(0, (w) => (w.name("name"), w.raw(garbage(100_000))))), "");
  }
  const writer = new ByteWriter();
  writer.raw(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
  for (let i = 0; i < 100_000; i++) {
    writer.u8(0);
    const section = writer.beginSized();
    writer.name(i < 50_000 ? "x" : "name");
    writer.endSized(section);
  }
  assert.equal(verdict(writer.finish()), "");
});

Deno.test("random bytes after the header are rejected, except for the rare module among them", () => {
  const next = randomNumbers(77);
  let rejected = 0;
  for (let round = 0; round < 5000; round++) {
    const bytes = new Uint8Array(8 + next(64));
    bytes.set([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
    for (let i = 8; i < bytes.length; i++) bytes[i] = next(256);
    if (verdict(bytes) !== "") rejected++;
  }
  assert.ok(rejected > 4800, `${rejected} of 5000`);
});
