/**
 * One quick scan over every function body of a module, before any is translated: size, loops and calls, the number of
 * direct calls of each function, and the tables written at run time. In: a ValidModule whose bodies may not
 * have been validated. Out: Summaries, by defined function index, for inlining and table analysis.
 *
 * The scan trusts nothing: it ignores indices out of range, which validation rejects later.
 */
import { BODY } from "../wasm/body_flags.ts";
import { doubled } from "../base/columns.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import { idOf, OPCODES } from "../wasm/opcodes.ts";
import { readValType } from "../wasm/type_reader.ts";
import { IS_CAST } from "./frame_actions.ts";
import type { BodyFacts } from "./module_facts.ts";

export interface Summaries extends BodyFacts {
  /** All defined functions, callees before their callers as far as recursion allows. */
  readonly calleesFirst: Int32Array;
  /**
   * Direct calls between defined functions: the callees of function k are callees[calleeStart[k] … calleeStart[k + 1]),
   * with repetitions.
   */
  readonly calleeStart: Int32Array;
  readonly callees: Int32Array;
  /** By table index: 1 if an instruction may write the table (set, grow, fill, copy, init). */
  readonly tableWritten: Uint8Array;
}

const NOTHING = 0;
const CALL = 1;
const TABLE_FIRST = 2;
const TABLE_SECOND = 3;
const FLAG_ONLY = 4;

const UNREACHABLE_BYTE = 0x00;
const PLAIN_CALL = idOf("call");
/** Action of the scan by row, and the BODY bits that the row implies. */
const ACTION: Uint8Array = new Uint8Array(OPCODES.length);
const BITS: Uint8Array = new Uint8Array(OPCODES.length);
for (const row of OPCODES) {
  const { id, mnemonic } = row;
  let bits = 0;
  if (mnemonic === "loop") bits |= BODY.LOOP;
  if (/call|throw/.test(mnemonic)) bits |= BODY.CALL;
  if (/call/.test(mnemonic) && mnemonic !== "call") bits |= BODY.RETURNING_CALL;
  if (/^(try|catch|delegate|rethrow)/.test(mnemonic)) bits |= BODY.EXCEPTIONS;
  if (mnemonic === "rethrow") bits |= BODY.RETHROW;
  if (IS_CAST[id] !== 0) bits |= BODY.CAST;
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
  const edges = new CallEdges(count);
  for (let k = 0; k < count; k++) {
    const { body } = valid.funcs[k];
    reader.reset(body.bytes, 0, body.bytes.length, body.offset);
    locals[k] = skipLocals(reader);
    bytes[k] = reader.left;
    edges.begin(k);
    flags[k] = scanBody(reader, imported + k, imported, callSites, tableWritten, edges);
  }
  edges.begin(count);
  const { start: calleeStart, callees } = edges;
  return { bytes, locals, flags, callSites, tableWritten, calleeStart, callees, calleesFirst: edges.calleesFirst() };
}

/** Direct calls in the order in which they are found. */
class CallEdges {
  readonly start: Int32Array;
  #callees: Int32Array = new Int32Array(1024);
  #count = 0;

  constructor(functions: number) {
    this.start = new Int32Array(functions + 1);
  }

  /** Begins the calls of function `k`. */
  begin(k: number): void {
    this.start[k] = this.#count;
  }

  add(callee: number): void {
    if (this.#count === this.#callees.length) {
      this.#callees = doubled(this.#callees, this.#count + 1);
    }
    this.#callees[this.#count++] = callee;
  }

  get callees(): Int32Array {
    return this.#callees.subarray(0, this.#count);
  }

  /** Postorder of a depth-first search over the call graph, iterative because call chains may be long. */
  calleesFirst(): Int32Array {
    const start = this.start;
    const callees = this.#callees;
    const functions = start.length - 1;
    const order = new Int32Array(functions);
    const seen = new Uint8Array(functions);
    const stack = new Int32Array(functions);
    const next = start.slice();
    let ordered = 0;
    for (let root = 0; root < functions; root++) {
      if (seen[root] === 1) continue;
      seen[root] = 1;
      stack[0] = root;
      let depth = 1;
      while (depth > 0) {
        const k = stack[depth - 1];
        if (next[k] === start[k + 1]) {
          order[ordered++] = k;
          depth--;
          continue;
        }
        const callee = callees[next[k]++];
        if (seen[callee] === 1) continue;
        seen[callee] = 1;
        stack[depth++] = callee;
      }
    }
    return order;
  }
}

/** Moves `reader` from the start of a body to its first instruction; returns the number of locals declared. */
export function skipLocals(reader: CodeReader): number {
  const runs = reader.u32();
  let total = 0;
  for (let n = 0; n < runs; n++) {
    total += reader.u32();
    readValType(reader);
  }
  return Math.min(total, 0x7fffffff);
}

/**
 * Whether the instruction at `at` of a body's bytes is `unreachable`. A call before it leads to an error, and is rarely
 * executed.
 */
function isUnreachable(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === UNREACHABLE_BYTE;
}

function scanBody(
  reader: CodeReader,
  self: number,
  imported: number,
  callSites: Int32Array,
  tableWritten: Uint8Array,
  edges: CallEdges,
): number {
  const { imm } = reader;
  let flags = 0;
  while (!reader.done) {
    const id = reader.next();
    const action = ACTION[id];
    if (action === NOTHING) continue;
    flags |= BITS[id];
    switch (action) {
      case CALL:
        if (id === PLAIN_CALL && !isUnreachable(reader.bytes, reader.pos)) flags |= BODY.RETURNING_CALL;
        if (imm.index === self) flags |= BODY.SELF_CALL;
        if (imm.index >= imported && imm.index - imported < callSites.length) {
          callSites[imm.index - imported]++;
          edges.add(imm.index - imported);
        }
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
