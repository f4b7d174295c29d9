/**
 * Validation without compilation: quick forms of the most frequent instructions. In: a body whose locals are declared
 * and whose frame is open (kernel.ts). Out: the position of the first instruction that has no quick form here, or whose
 * operands need a closer look, and the operand stack before it. Invariant: what passes here, the rules of kernel.ts
 * accept with the same effect on types and frames.
 *
 * The operands are types only, and `frames.live` is false: nothing is emitted. A quick form applies where immediates
 * are short and the operands are those of the innermost frame, with exactly the expected types.
 */
import * as control from "./control.ts";
import * as frames from "./frames.ts";
import * as layout from "./layout.ts";
import { type i32, load32, load8, loadAny32 } from "./memory.ts";
import * as module from "./module.ts";
import * as operands from "./operands.ts";
import { ENTRY, OPERANDS_LIMIT } from "./operands.ts";
import * as reader from "./reader.ts";
import { isMemory64 } from "./storage.ts";
import { F32, F64, I32, I64, typeRow, V128 } from "./types.ts";

/** Bytes that a quick form may read, immediates included. */
const REACH: i32 = 16;

// Opcodes.
const BLOCK: i32 = 0x02;
const LOOP: i32 = 0x03;
const IF: i32 = 0x04;
const ELSE: i32 = 0x05;
const END: i32 = 0x0b;
const BR: i32 = 0x0c;
const BR_IF: i32 = 0x0d;
const RETURN: i32 = 0x0f;
const CALL: i32 = 0x10;
const DROP: i32 = 0x1a;
const SELECT: i32 = 0x1b;
const LOCAL_GET: i32 = 0x20;
const LOCAL_SET: i32 = 0x21;
const LOCAL_TEE: i32 = 0x22;
const GLOBAL_GET: i32 = 0x23;
const GLOBAL_SET: i32 = 0x24;
const FIRST_ACCESS: i32 = 0x28;
const LAST_ACCESS: i32 = 0x3e;
const I32_CONST: i32 = 0x41;
const I64_CONST: i32 = 0x42;
const F64_CONST: i32 = 0x44;
const FIRST_NUMERIC: i32 = 0x45;
const LAST_NUMERIC: i32 = 0xbf;

/** Address after the LEB128 integer at `at` if it takes at most four bytes, else 0. */
function afterShort(at: i32): i32 {
  if (load8(at) < 0x80) return at + 1;
  if (load8(at + 1) < 0x80) return at + 2;
  if (load8(at + 2) < 0x80) return at + 3;
  return load8(at + 3) < 0x80 ? at + 4 : 0;
}

/** The unsigned LEB128 integer of at most two bytes at `at`; −1 if it is longer. */
function short(at: i32): i32 {
  const low = load8(at);
  if (low < 0x80) return low;
  const high = load8(at + 1);
  return high < 0x80 ? (low & 0x7f) | (high << 7) : -1;
}

/** Whether the entry below `top` is of `type` and belongs to the frame that begins at `base`. */
function has(top: i32, base: i32, type: i32): boolean {
  return top - ENTRY >= base && load32(top - ENTRY) === type;
}

/** Puts an operand of `type` at `at`. */
function put(at: i32, type: i32): void {
  operands.putType(at, type);
}

/** Handles instructions up to one that has no quick form; the rules of kernel.ts continue there. */
export function skim(): void {
  const last = reader.end - REACH;
  const firstLocal = layout.LOCALS;
  const hasPlainMemory = load32(layout.H_MEMORY_COUNT) > 0 && !isMemory64(0);
  let pos = reader.pos;
  let top = operands.top;
  let base = frames.base;
  while (pos <= last) {
    const opcode = load8(pos);
    if (opcode >= LOCAL_GET && opcode <= LOCAL_TEE) {
      const index = short(pos + 1);
      if (index < 0 || index >= operands.localCount || !operands.isLocalSet(index)) break;
      const type = load32(firstLocal + index * operands.LOCAL);
      if (opcode === LOCAL_GET) {
        if (top > OPERANDS_LIMIT) break;
        put(top, type);
        top += ENTRY;
      } else {
        if (!has(top, base, type)) break;
        if (opcode === LOCAL_SET) top -= ENTRY;
      }
      pos = afterShort(pos + 1);
      continue;
    }
    if (opcode >= I32_CONST && opcode <= F64_CONST) {
      let next: i32 = pos + 5;
      let type: i32 = F32;
      if (opcode === F64_CONST) {
        next = pos + 9;
        type = F64;
      } else if (opcode <= I64_CONST) {
        next = afterShort(pos + 1);
        type = opcode === I32_CONST ? I32 : I64;
      }
      if (next === 0 || top > OPERANDS_LIMIT) break;
      put(top, type);
      top += ENTRY;
      pos = next;
      continue;
    }
    if (opcode >= FIRST_NUMERIC && opcode <= LAST_NUMERIC) {
      const row = loadAny32(layout.OPCODES + opcode * 2) & 0xffff;
      if (!has(top, base, load8(row + layout.ROW_TOP))) break;
      if (load8(row + layout.ROW_OPERANDS) === 2) {
        if (!has(top - ENTRY, base, load8(row + layout.ROW_TOP + 1))) break;
        top -= ENTRY;
      }
      put(top - ENTRY, load8(row + layout.ROW_RESULT));
      pos += 1;
      continue;
    }
    if (opcode >= FIRST_ACCESS && opcode <= LAST_ACCESS) {
      const row = loadAny32(layout.OPCODES + opcode * 2) & 0xffff;
      if (!hasPlainMemory || load8(pos + 1) > load8(row + layout.ROW_WIDTH)) break;
      const next = afterShort(pos + 2);
      if (next === 0 || !has(top, base, load8(row + layout.ROW_TOP))) break;
      if (load8(row + layout.ROW_OPERANDS) === 1) put(top - ENTRY, load8(row + layout.ROW_RESULT));
      else {
        if (!has(top - ENTRY, base, I32)) break;
        top -= 2 * ENTRY;
      }
      pos = next;
      continue;
    }
    if (opcode === CALL) {
      const func = short(pos + 1);
      if (func < 0 || func >= load32(layout.H_FUNC_COUNT)) break;
      const after = called(func, top, base);
      if (after === 0) break;
      top = after;
      pos = afterShort(pos + 1);
      continue;
    }
    if (opcode === BR_IF) {
      const depth = load8(pos + 1);
      if (depth >= 0x80 || !has(top, base, I32)) break;
      const target = frames.frame - depth * frames.FRAME;
      if (target < layout.FRAMES || frames.labelCount(target) !== 0) break;
      top -= ENTRY;
      pos += 2;
      continue;
    }
    if (opcode === DROP) {
      if (top <= base) break;
      top -= ENTRY;
      pos += 1;
      continue;
    }
    if (opcode === SELECT) {
      if (!has(top, base, I32) || top - 3 * ENTRY < base) break;
      const type = load32(top - 2 * ENTRY);
      if (type < V128 || type > I32 || load32(top - 3 * ENTRY) !== type) break;
      top -= 2 * ENTRY;
      pos += 1;
      continue;
    }
    if (opcode === GLOBAL_GET || opcode === GLOBAL_SET) {
      const index = short(pos + 1);
      if (index < 0 || index >= load32(layout.H_GLOBAL_COUNT)) break;
      const row = load32(layout.H_GLOBALS) + index * layout.GLOBAL_ROW;
      const type = load32(row + layout.GLOBAL_TYPE);
      if (opcode === GLOBAL_GET) {
        if (top > OPERANDS_LIMIT) break;
        put(top, type);
        top += ENTRY;
      } else {
        if ((load32(row + layout.GLOBAL_FLAGS) & layout.GLOBAL_IS_MUTABLE) === 0 || !has(top, base, type)) break;
        top -= ENTRY;
      }
      pos = afterShort(pos + 1);
      continue;
    }
    // Control instructions: only decoding is quicker.
    reader.seek(pos + 1);
    operands.setTypes(top);
    if (!visitControl(opcode)) {
      reader.seek(pos);
      return;
    }
    if (reader.status !== layout.STATUS_DONE || !frames.isOpen()) return;
    pos = reader.pos;
    top = operands.top;
    base = frames.base;
  }
  reader.seek(pos);
  operands.setTypes(top);
}

/** Replaces the arguments of function `func` by its results; returns the new top, or 0. */
function called(func: i32, top: i32, base: i32): i32 {
  const type = typeRow(module.typeIndexOf(func));
  const count = load32(type + layout.TYPE_PARAM_COUNT);
  const params = load32(type + layout.TYPE_PARAMS);
  const first = top - count * ENTRY;
  if (first < base) return 0;
  for (let k: i32 = 0; k < count; k++) {
    if (load32(first + k * ENTRY) !== load32(params + k * 4)) return 0;
  }
  const results = load32(type + layout.TYPE_RESULTS);
  const after = first + load32(type + layout.TYPE_RESULT_COUNT) * ENTRY;
  if (after > OPERANDS_LIMIT) return 0;
  for (let at = first, k: i32 = 0; at < after; at += ENTRY, k++) put(at, load32(results + k * 4));
  return after;
}

/** Validates a control instruction whose opcode has been read; returns false if it has no quick form. */
function visitControl(opcode: i32): boolean {
  switch (opcode) {
    case BLOCK:
    case LOOP:
    case IF:
      if (!reader.readShortBlockType()) return false;
      if (opcode === BLOCK) control.visitBlock();
      else if (opcode === LOOP) control.visitLoop();
      else control.visitIf();
      return true;
    case END:
      control.visitEnd();
      return true;
    case ELSE:
      control.visitElse();
      return true;
    case BR:
      reader.readIndex();
      control.visitBranch();
      return true;
    case RETURN:
      control.visitReturn();
      return true;
  }
  return false;
}
