/**
 * One quick scan over every function body of a module, before any is translated: how big it is, whether it loops, calls or
 * writes, how often each function is called directly, and which tables are written at run time. In: a ValidModule whose bodies
 * need not have been validated. Out: Summaries, by defined function index. Build-time inlining and table analysis use it.
 *
 * The scan believes nothing: indices out of range are ignored here and rejected by validation later.
 */
import type { ValidModule } from "../validate/valid_module.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import { idOf, OPCODES } from "../wasm/opcodes.ts";
import { readValType } from "../wasm/type_reader.ts";

/** What a body contains: bits of {@linkcode Summaries.flags}. */
export const BODY = { LOOP: 1, CALL: 2, MEMORY: 4, WRITE: 8, SELF_CALL: 16, EXCEPTIONS: 32 } as const;

export interface Summaries {
  /** Length of the expression in bytes, by defined function. */
  readonly bytes: Int32Array;
  /** Number of declared locals, by defined function; at most 2^31 − 1. */
  readonly locals: Int32Array;
  /** BODY bits, by defined function. */
  readonly flags: Uint8Array;
  /** Number of direct call sites in the module, by defined function. */
  readonly callSites: Int32Array;
  /** 1 when an instruction may write the table (set, grow, fill, copy, init), by table index. */
  readonly tableWritten: Uint8Array;
}

const NOTHING = 0;
const CALL = 1;
const TABLE_FIRST = 2;
const TABLE_SECOND = 3;
const FLAG_ONLY = 4;

/** What the scan does at a row, and the BODY bits that the row implies. */
const ACTION: Uint8Array = new Uint8Array(OPCODES.length);
const BITS: Uint8Array = new Uint8Array(OPCODES.length);
for (const row of OPCODES) {
  const { id, mnemonic, immediates } = row;
  let bits = 0;
  if (mnemonic === "loop") bits |= BODY.LOOP;
  if (/call|throw/.test(mnemonic)) bits |= BODY.CALL;
  if (/^(try|catch|delegate|rethrow)/.test(mnemonic)) bits |= BODY.EXCEPTIONS;
  if (immediates.includes("memarg") || immediates.includes("memory")) bits |= BODY.MEMORY;
  if (/store|\.set|\.grow|\.copy|\.fill|\.init|\.drop|atomic/.test(mnemonic) && mnemonic !== "local.set") {
    bits |= BODY.WRITE;
  }
  BITS[id] = bits;
  if (bits !== 0) ACTION[id] = FLAG_ONLY;
}
ACTION[idOf("call")] = CALL;
ACTION[idOf("return_call")] = CALL;
ACTION[idOf("table.set")] = TABLE_FIRST;
ACTION[idOf("table.grow")] = TABLE_FIRST;
ACTION[idOf("table.fill")] = TABLE_FIRST;
ACTION[idOf("table.copy")] = TABLE_FIRST;
ACTION[idOf("table.init")] = TABLE_SECOND;

/** Scans all bodies of `valid`. */
export function summarize(valid: ValidModule): Summaries {
  const count = valid.funcs.length;
  const bytes = new Int32Array(count);
  const locals = new Int32Array(count);
  const flags = new Uint8Array(count);
  const callSites = new Int32Array(count);
  const tableWritten = new Uint8Array(valid.tableTypes.length);
  const reader = new CodeReader(new Uint8Array(0));
  const imported = valid.importedFuncCount;
  for (let k = 0; k < count; k++) {
    const { body } = valid.funcs[k]!;
    reader.reset(body.bytes, 0, body.bytes.length, body.offset);
    locals[k] = skipLocals(reader);
    bytes[k] = reader.left;
    flags[k] = scanBody(reader, imported + k, imported, callSites, tableWritten);
  }
  return { bytes, locals, flags, callSites, tableWritten };
}

/** Moves `reader` from the start of a body to its first instruction; returns the number of locals declared. */
function skipLocals(reader: CodeReader): number {
  const runs = reader.u32();
  let total = 0;
  for (let n = 0; n < runs; n++) {
    total += reader.u32();
    readValType(reader);
  }
  return Math.min(total, 0x7fffffff);
}

function scanBody(
  reader: CodeReader,
  self: number,
  imported: number,
  callSites: Int32Array,
  tableWritten: Uint8Array,
): number {
  const { imm } = reader;
  let flags = 0;
  while (!reader.done) {
    const id = reader.next();
    const action = ACTION[id]!;
    if (action === NOTHING) continue;
    flags |= BITS[id]!;
    switch (action) {
      case CALL:
        if (imm.index === self) flags |= BODY.SELF_CALL;
        if (imm.index >= imported && imm.index - imported < callSites.length) callSites[imm.index - imported]!++;
        break;
      case TABLE_FIRST:
        if (imm.index < tableWritten.length) tableWritten[imm.index] = 1;
        break;
      case TABLE_SECOND:
        if (imm.index2 < tableWritten.length) tableWritten[imm.index2] = 1;
        break;
    }
  }
  return flags;
}
