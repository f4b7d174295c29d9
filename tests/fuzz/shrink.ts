/**
 * Reduces a module while a condition holds: bodies become `unreachable`, exports are removed, and runs of instructions
 * are deleted or replaced by a constant or a drop. In: modules and the condition. Out: modules for which it still
 * holds.
 *
 * Edits are blind; V8's validator rejects invalid results.
 */
import { Bytes } from "./module_bytes.ts";

type Modules = readonly Uint8Array<ArrayBuffer>[];

interface Section {
  id: number;
  body: Uint8Array;
}

/** A split module: sections, with bodies and exports as lists. */
interface Parts {
  sections: Section[];
  /** Local declarations and instructions of each body. */
  bodies: { locals: Uint8Array; code: Uint8Array[] }[];
  exports: Uint8Array[];
}

/** Shrinks every module of `modules`, for which `holds` must be true. */
export function shrink(
  modules: Modules,
  holds: (modules: Modules) => boolean,
  note: (modules: Modules) => void,
): Modules {
  let best = modules.slice();
  const attempt = (index: number, parts: Parts): boolean => {
    const bytes = join(parts);
    if (!WebAssembly.validate(bytes)) return false;
    const next = best.map((m, i) => i === index ? bytes : m);
    if (!holds(next)) return false;
    best = next;
    note(best);
    return true;
  };
  for (let index = modules.length - 1; index >= 0; index--) {
    for (let before = -1; before !== best[index].length;) {
      before = best[index].length;
      shrinkExports(index, () => split(best[index]), attempt);
      shrinkBodies(index, () => split(best[index]), attempt);
    }
  }
  return best;
}

type Attempt = (index: number, parts: Parts) => boolean;

function shrinkExports(index: number, current: () => Parts, attempt: Attempt): void {
  for (let i = current().exports.length - 1; i >= 0; i--) {
    const parts = current();
    parts.exports.splice(i, 1);
    attempt(index, parts);
  }
}

function shrinkBodies(index: number, current: () => Parts, attempt: Attempt): void {
  const count = current().bodies.length;
  for (let b = 0; b < count; b++) {
    const parts = current();
    if (parts.bodies[b].code.length <= 2) continue;
    parts.bodies[b] = { locals: Uint8Array.of(0), code: [Uint8Array.of(0x00), Uint8Array.of(0x0b)] };
    attempt(index, parts);
  }
  for (let b = 0; b < count; b++) {
    for (let size = current().bodies[b].code.length >> 1; size > 0; size = size > 6 ? size * 2 / 3 | 0 : size - 1) {
      for (let from = 0; from + size < current().bodies[b].code.length;) {
        if (
          !REPLACEMENTS.some((replacement) => {
            if (replacement.length >= size) return false;
            const parts = current();
            parts.bodies[b].code.splice(from, size, ...replacement);
            return attempt(index, parts);
          })
        ) from++;
      }
    }
  }
}

/** Replacements for a run of instructions, shortest first. */
const REPLACEMENTS: readonly (readonly Uint8Array[])[] = [
  [],
  [Uint8Array.of(0x1a)],
  [Uint8Array.of(0x41, 1)],
  [Uint8Array.of(0x42, 1)],
  [Uint8Array.of(0x43, 0, 0, 0x80, 0x3f)],
  [Uint8Array.of(0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f)],
  [Uint8Array.of(0xd0, 0x70)],
  [Uint8Array.of(0xd0, 0x6f)],
  [Uint8Array.of(0x1a), Uint8Array.of(0x1a)],
  [Uint8Array.of(0x1a), Uint8Array.of(0x41, 1)],
];

function leb(bytes: Uint8Array, at: number): { value: number; next: number } {
  let value = 0;
  for (let shift = 0;; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return { value, next: at };
  }
}

/** Splits a module. */
export function split(bytes: Uint8Array): Parts {
  const parts: Parts = { sections: [], bodies: [], exports: [] };
  for (let at = 8; at < bytes.length;) {
    const id = bytes[at];
    const { value, next } = leb(bytes, at + 1);
    const body = bytes.slice(next, next + value);
    at = next + value;
    if (id === 0) continue;
    parts.sections.push({ id, body });
    if (id === 10) parts.bodies = splitBodies(body);
    if (id === 7) parts.exports = splitExports(body);
  }
  return parts;
}

function splitExports(section: Uint8Array): Uint8Array[] {
  const list: Uint8Array[] = [];
  let { value: count, next: at } = leb(section, 0);
  for (; count > 0; count--) {
    const start = at;
    const name = leb(section, at);
    at = leb(section, name.next + name.value + 1).next;
    list.push(section.slice(start, at));
  }
  return list;
}

function splitBodies(section: Uint8Array): Parts["bodies"] {
  const list: Parts["bodies"] = [];
  let { value: count, next: at } = leb(section, 0);
  for (; count > 0; count--) {
    const size = leb(section, at);
    const start = size.next;
    const end = start + size.value;
    let runs = leb(section, start);
    at = runs.next;
    for (let n = runs.value; n > 0; n--) {
      runs = leb(section, at);
      const type = section[runs.next];
      at = type === 0x63 || type === 0x64 ? leb(section, runs.next + 1).next : runs.next + 1;
    }
    const locals = section.slice(start, at);
    const code: Uint8Array[] = [];
    while (at < end) {
      const next = instructionEnd(section, at);
      code.push(section.slice(at, next));
      at = next;
    }
    list.push({ locals, code });
  }
  return list;
}

/** The first instruction of wide arithmetic behind 0xfc; the last ones have no immediates. */
const WIDE_ARITHMETIC = 0x13;

/** Number of LEB immediates of the 0xfb instructions (a cast's flags count as one). */
const GC_IMMEDIATES: readonly number[] = [
  ...[1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 2, 1, 1, 1, 1, 0],
  ...[1, 2, 2, 2, 1, 1, 1, 1, 4, 4, 0, 0, 0, 0, 0],
];

/** The end offset of the instruction at `at`. */
function instructionEnd(code: Uint8Array, at: number): number {
  const op = code[at++];
  const skip = (count: number) => {
    for (; count > 0; count--) at = leb(code, at).next;
    return at;
  };
  if (op === 0xfc) {
    const sub = leb(code, at);
    at = sub.next;
    if (sub.value < 8 || sub.value >= WIDE_ARITHMETIC) return at;
    return skip([8, 10, 12, 14].includes(sub.value) ? 2 : 1);
  }
  // A block type or value type: one byte or LEB, or a reference type of two parts.
  const blockType = () => code[at] === 0x63 || code[at] === 0x64 ? skip(2) : skip(1);
  const memarg = () => {
    const flags = leb(code, at);
    return skip((flags.value & 0x40) !== 0 ? 3 : 2);
  };
  if (op === 0xfb) {
    const sub = leb(code, at);
    at = sub.next;
    return skip(GC_IMMEDIATES[sub.value] ?? 0);
  }
  if (op === 0xfd) {
    const sub = leb(code, at);
    at = sub.next;
    if (sub.value <= 11 || sub.value === 92 || sub.value === 93) return memarg();
    if (sub.value === 12 || sub.value === 13) return at + 16;
    if (sub.value >= 21 && sub.value <= 34) return at + 1;
    if (sub.value >= 84 && sub.value <= 91) return memarg() + 1;
    return at;
  }
  if (op === 0xfe) {
    const sub = leb(code, at);
    at = sub.next;
    return sub.value === 3 ? at + 1 : sub.value === 4 ? at : memarg();
  }
  if (op >= 0x02 && op <= 0x04 || op === 0x06) return blockType();
  if (op === 0x1f) {
    blockType();
    const count = leb(code, at);
    at = count.next;
    for (let n = count.value; n > 0; n--) skip(code[at++] < 2 ? 2 : 1);
    return at;
  }
  if (op === 0x0e) {
    const count = leb(code, at);
    at = count.next;
    return skip(count.value + 1);
  }
  if (op === 0x11 || op === 0x13) return skip(2);
  if (op === 0x1c) {
    const count = leb(code, at);
    at = count.next;
    for (let n = count.value; n > 0; n--) blockType();
    return at;
  }
  if (op >= 0x28 && op <= 0x3e) return memarg();
  if (op === 0x43) return at + 4;
  if (op === 0x44) return at + 8;
  if (
    op === 0x0c || op === 0x0d || op === 0x10 || (op >= 0x20 && op <= 0x26) || (op >= 0x3f && op <= 0x42) ||
    (op >= 0x07 && op <= 0x09) || op === 0x12 || op === 0x14 || op === 0x15 || op === 0x18 ||
    op === 0xd0 || op === 0xd2 || op === 0xd5 || op === 0xd6
  ) return skip(1);
  return at;
}

/** Joins the parts to a module. */
export function join({ sections, bodies, exports }: Parts): Uint8Array<ArrayBuffer> {
  const out = new Bytes().bytes([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  for (const { id, body } of sections) {
    if (id === 10) {
      const entries = bodies.map(({ locals, code }) => {
        const entry = new Bytes().bytes(locals);
        for (const instruction of code) entry.bytes(instruction);
        return new Bytes().u32(entry.length).bytes(entry.taken());
      });
      out.section(10, new Bytes().vector(entries));
    } else if (id === 7) out.section(7, new Bytes().vector(exports.map((entry) => new Bytes().bytes(entry))));
    else out.section(id, new Bytes().bytes(body));
  }
  return out.taken() as Uint8Array<ArrayBuffer>;
}
