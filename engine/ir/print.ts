/**
 * The stable text of an IrFunction, for goldens, dumps and messages; ir/parse.ts reads it back. In: a function. Out:
 * text.
 *
 *     func 3 (i32 i64) -> (i32)
 *     sig 1 (i32) -> (i32)                     signatures that the function's calls refer to
 *     site 1 parent=0 call=0x40 func=7         inlined calls
 *     layout b0 b2 b1                          only when it is not the identity
 *     b0(v1:i32 v2:i64):                       block flags and depth precede the colon: `b1() loop cold depth=1:`
 *       v3:i32 = ADD v1 v1
 *       v4:i32 = LOAD memory0[v3+16]           regions: REGION_NAMES; `.const`, `.sizes` or `.7`: alias class
 *       v5:i32 = CALL f2(v4) sig1
 *       BRANCH v5 b1() b2(v3) unlikely
 *
 * Invariant: values keep their ids, so that parsing and printing again gives the same text. Instructions without a
 * result have no visible id. Positions are printed on request: ` @0x1f`, and ` @0x1f/2` for inlined call site 2.
 */
import { BUILTIN_ROWS } from "../abi/builtins.ts";
import { TRAP } from "../base/traps.ts";
import { BLOCK_COLD, BLOCK_LOOP, type IrFunction } from "./function.ts";
import {
  atomicRegion,
  atomicWidth,
  boundsBytes,
  boundsMemory,
  CLASS_CONSTANT,
  CLASS_SIZES,
  regionClass,
} from "./regions.ts";
import { CALL_NULL_CODE, CALL_OWN, CHARGE_OWES, OP, OP_HAS_LIST, OP_ROWS, OP_VALUE_MASK } from "./ops.ts";
import { type Signature, TY, TY_NAMES } from "./types.ts";

/** Optional parts of the text that {@linkcode printFunction} gives. */
export interface PrintOptions {
  /** Byte offsets and inline sites of instructions that have one. */
  positions?: boolean;
}

/** Names of trap codes, by code. */
export const TRAP_NAMES: readonly string[] = Object.entries(TRAP).sort((x, y) => x[1] - y[1]).map((entry) => entry[0]);

/** Names of region kinds, by kind. */
export const REGION_NAMES = ["memory0", "context", "pointer", "struct"] as const;

/** Words for the bits of the immediate of divisions. */
export const DIVIDE_FLAGS = ["zero", "overflow"] as const;
/** Words for the hint of BRANCH. */
export const HINT_NAMES = ["", "likely", "unlikely"] as const;

/** Whether `op` is a load or store that is not atomic. */
export function isAccess(op: number): boolean {
  return op >= OP.LOAD && op <= OP.STORE32;
}

/** Whether `op` is an atomic access; FENCE is not. */
export function isAtomic(op: number): boolean {
  return op >= OP.ATOMIC_LOAD && op <= OP.ATOMIC_CMPXCHG;
}

/** `(i32 i64) -> (f32)`. */
function printSignature(signature: Signature): string {
  const names = (types: Uint8Array) => `(${Array.from(types, (ty) => TY_NAMES[ty]).join(" ")})`;
  return `${names(signature.params)} -> ${names(signature.results)}`;
}

/** The function as text. */
export function printFunction(f: IrFunction, options: PrintOptions = {}): string {
  const lines = [`func ${f.funcIndex} ${printSignature(f.signature)}`];
  for (const id of usedSignatures(f)) {
    const signature = f.signatures[id];
    lines.push(`sig ${id} ${signature === undefined ? "?" : printSignature(signature)}`);
  }
  f.inlineSites.forEach((site, index) => {
    if (index === 0) return;
    lines.push(`site ${index} parent=${site.parent} call=0x${site.callPos.toString(16)} func=${site.funcIndex}`);
  });
  const layout = Array.from(f.layout.subarray(0, f.blockCount));
  if (layout.some((block, index) => block !== index)) lines.push(`layout ${layout.map((k) => `b${k}`).join(" ")}`);
  for (let k = 0; k < f.blockCount; k++) lines.push(...printBlock(f, k, options));
  return lines.join("\n") + "\n";
}

function usedSignatures(f: IrFunction): number[] {
  const used = new Set<number>();
  for (let k = 0; k < f.blockCount; k++) {
    for (let s = f.blockStart[k]; s < f.blockEnd[k]; s++) {
      const i = f.sched[s];
      if (hasSignature(f.op[i])) used.add(f.imm[i]);
    }
  }
  return [...used].sort((x, y) => x - y);
}

/** Whether `op` names a signature in its immediate. */
export function hasSignature(op: number): boolean {
  return (op >= OP.CALL && op <= OP.CALL_BUILTIN) || (op >= OP.TAIL_CALL && op <= OP.TAIL_CALL_IMPORT);
}

function printBlock(f: IrFunction, k: number, options: PrintOptions): string[] {
  const start = f.blockStart[k];
  const params: string[] = [];
  for (let s = 0; s < f.blockParams[k]; s++) {
    const i = f.sched[start + s];
    params.push(`v${i}:${TY_NAMES[f.ty[i]]}`);
  }
  const flags = f.blockFlags[k];
  const loop = flags & BLOCK_LOOP ? " loop" : "";
  const cold = flags & BLOCK_COLD ? " cold" : "";
  const depth = f.blockDepth[k] ? ` depth=${f.blockDepth[k]}` : "";
  const lines = [`b${k}(${params.join(" ")})${loop}${cold}${depth}:`];
  for (let s = start + f.blockParams[k]; s < f.blockEnd[k]; s++) {
    lines.push(`  ${printInstruction(f, f.sched[s], options)}`);
  }
  return lines;
}

/** One instruction as text, without indentation. */
export function printInstruction(f: IrFunction, i: number, options: PrintOptions = {}): string {
  const op = f.op[i];
  const named = f.ty[i] !== TY.NONE || (hasSignature(op) && (f.signatures[f.imm[i]]?.results.length ?? 0) > 1);
  const result = named ? `v${i}:${TY_NAMES[f.ty[i]]} = ` : "";
  let position = "";
  if (options.positions && (f.pos[i] !== 0 || f.site[i] !== 0)) {
    position = ` @0x${f.pos[i].toString(16)}${f.site[i] ? `/${f.site[i]}` : ""}`;
  }
  const operands = printOperands(f, i, op);
  return `${result}${OP_ROWS[op]?.name ?? `op${op}`}${operands === "" ? "" : ` ${operands}`}${position}`;
}

function printOperands(f: IrFunction, i: number, op: number): string {
  const { a, b, c, imm } = f;
  if (op === OP.CONST) return printConstant(f, i);
  if (isAccess(op)) {
    const where = printAddress(f, i, printRegion(c[i]));
    if (op >= OP.STORE) return `${where} v${b[i]}`;
    return b[i] ? `${where} ${TRAP_NAMES[b[i]] ?? b[i]}` : where;
  }
  if (isAtomic(op)) return printAtomic(f, i, op);
  if (op === OP.BOUNDS) return `${printAddress(f, i, `memory${boundsMemory(c[i])}`)} ${boundsBytes(c[i])}`;
  if (OP_HAS_LIST[op]) {
    const list = `(${listText(f, a[i], b[i])})`;
    if (op === OP.RETURN) return list;
    let text: string;
    if (op === OP.CALL_BUILTIN) text = `${BUILTIN_ROWS[c[i]]?.name ?? c[i]}${list}`;
    else if (op === OP.CALL_RECORD || op === OP.TAIL_CALL_RECORD) text = list;
    else text = `f${c[i]}${list}`;
    text += ` sig${imm[i]}`;
    if ((op === OP.CALL_RECORD || op === OP.TAIL_CALL_RECORD) && c[i]) text += recordText(c[i]);
    return text;
  }
  switch (op) {
    case OP.JUMP:
      return edgeText(f, a[i]);
    case OP.BRANCH:
      return `v${a[i]} ${edgeText(f, b[i])} ${edgeText(f, c[i])}${imm[i] ? ` ${HINT_NAMES[imm[i]]}` : ""}`;
    case OP.SWITCH: {
      let text = `v${a[i]}`;
      for (let n = 0; n < c[i]; n++) text += ` ${edgeText(f, b[i] + n)}`;
      return text;
    }
    case OP.TRAP:
      return TRAP_NAMES[imm[i]] ?? String(imm[i]);
    case OP.TRAP_IF:
      return `v${a[i]} ${TRAP_NAMES[imm[i]] ?? imm[i]}`;
    case OP.CHECK_INDEX:
      return `v${a[i]}${c[i] ? `+${c[i]}` : ""} v${b[i]} ${TRAP_NAMES[imm[i]] ?? imm[i]}`;
    case OP.CHARGE:
      return `v${a[i]}${b[i] ? ` after ${b[i]}` : ""}${imm[i] === CHARGE_OWES ? " owes" : ""}`;
    case OP.RESULT:
      return `v${a[i]} ${imm[i]}`;
    case OP.CONTEXT:
      return `+${imm[i] >>> 0}`;
    case OP.PARAM:
      return String(imm[i]);
  }
  const mask = OP_VALUE_MASK[op];
  const parts: string[] = [];
  if (mask & 1) parts.push(`v${a[i]}`);
  if (mask & 2) parts.push(`v${b[i]}`);
  if (mask & 4) parts.push(`v${c[i]}`);
  if (op >= OP.DIV_S && op <= OP.REM_U) {
    DIVIDE_FLAGS.forEach((name, bit) => {
      if (imm[i] & (1 << bit)) parts.push(name);
    });
  } else if (imm[i]) {
    parts.push(`#${imm[i]}`);
  }
  return parts.join(" ");
}

/** Text of column c of a call of a record. */
function recordText(c: number): string {
  const code = c & CALL_NULL_CODE;
  return `${(c & CALL_OWN) !== 0 ? " own" : ""}${code === 0 ? "" : ` ${TRAP_NAMES[code] ?? code}`}`;
}

function printAddress(f: IrFunction, i: number, space: string, address: number = f.a[i]): string {
  const offset = f.imm[i] >>> 0;
  if (address === 0) return `${space}[${offset}]`;
  return offset === 0 ? `${space}[v${address}]` : `${space}[v${address}+${offset}]`;
}

/** `memory0[v3+16] 4 v5`: place, bytes, value operands. */
function printAtomic(f: IrFunction, i: number, op: number): string {
  const { a, b, c, pool } = f;
  const exchange = op === OP.ATOMIC_CMPXCHG;
  const where = printAddress(f, i, printRegion(atomicRegion(c[i])), exchange ? pool[a[i]] : a[i]);
  const values = exchange ? ` v${pool[a[i] + 1]} v${pool[a[i] + 2]}` : op === OP.ATOMIC_LOAD ? "" : ` v${b[i]}`;
  return `${where} ${1 << atomicWidth(c[i])}${values}`;
}

function printRegion(word: number): string {
  const kind = REGION_NAMES[word & 0xff] ?? `region${word & 0xff}`;
  const aliasClass = regionClass(word);
  if (aliasClass === 0) return kind;
  if (aliasClass === CLASS_CONSTANT) return `${kind}.const`;
  if (aliasClass === CLASS_SIZES) return `${kind}.sizes`;
  return `${kind}.${aliasClass}`;
}

function printConstant(f: IrFunction, i: number): string {
  const hex = (word: number) => (word >>> 0).toString(16).padStart(8, "0");
  switch (f.ty[i]) {
    case TY.I32:
      return String(f.imm[i]);
    case TY.I64:
      return String((BigInt(f.c[i]) << 32n) | BigInt(f.imm[i] >>> 0));
    case TY.F32:
      return `0x${hex(f.imm[i])}`;
    case TY.F64:
      return `0x${hex(f.c[i])}${hex(f.imm[i])}`;
    case TY.V128: {
      const bytes = f.vectors.subarray(f.imm[i] * 16, f.imm[i] * 16 + 16);
      return `0x${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    }
    default:
      return f.imm[i] === 0 ? "null" : String(f.imm[i]);
  }
}

function listText(f: IrFunction, first: number, count: number): string {
  let text = "";
  for (let n = 0; n < count; n++) text += `${n === 0 ? "" : " "}v${f.pool[first + n]}`;
  return text;
}

function edgeText(f: IrFunction, e: number): string {
  const to = f.edgeTo[e];
  return `b${to}(${listText(f, f.edgeArgs[e], f.blockParams[to] ?? 0)})`;
}
