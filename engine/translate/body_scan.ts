/**
 * One quick scan over every function body of a module, before any is translated: size, loops and calls, the number of
 * direct calls of each function, and the tables written at run time. In: bodies, which may not have been validated.
 * Out: columns by defined function (summaries.ts).
 *
 * The scan trusts nothing: it ignores indices out of range, and ends at a malformed instruction; validation rejects
 * both later.
 */
import { doubled } from "../base/columns.ts";
import { isBelow } from "../base/numbers.ts";
import { BODY } from "../wasm/body_flags.ts";
import { BodyReader, FAULT } from "../wasm/body_reader.ts";
import { idOf, OPCODES } from "../wasm/opcodes.ts";
import { IS_CAST } from "./frame_actions.ts";

const NOTHING = 0;
const CALL = 1;
const TABLE_FIRST = 2;
const TABLE_SECOND = 3;

const UNREACHABLE_BYTE = 0x00;
/** Size limit of functions that call each other for MUTUAL_CALL. */
const MUTUAL_BYTES = 160;
const PLAIN_CALL: number = idOf("call");
/** Action of the scan by row, and the BODY bits that the row implies. */
const ACTION: Uint8Array = new Uint8Array(OPCODES.length);
const BITS: Uint8Array = new Uint8Array(OPCODES.length);
for (const row of OPCODES) {
  const { id, mnemonic } = row;
  let bits = 0;
  if (mnemonic === "loop") bits |= BODY.LOOP;
  if (/call|throw|^(suspend|resume|switch)/.test(mnemonic)) bits |= BODY.CALL;
  if (/call|^(suspend|resume|switch)/.test(mnemonic) && mnemonic !== "call") bits |= BODY.RETURNING_CALL;
  if (/^(try|catch|delegate|rethrow)/.test(mnemonic)) bits |= BODY.EXCEPTIONS;
  if (mnemonic === "rethrow") bits |= BODY.RETHROW;
  if (IS_CAST[id] !== 0) bits |= BODY.CAST;
  BITS[id] = bits;
}
ACTION[idOf("call")] = CALL;
ACTION[idOf("return_call")] = CALL;
ACTION[idOf("table.set")] = TABLE_FIRST;
ACTION[idOf("table.grow")] = TABLE_FIRST;
ACTION[idOf("table.fill")] = TABLE_FIRST;
ACTION[idOf("table.copy")] = TABLE_FIRST;
ACTION[idOf("table.init")] = TABLE_SECOND;

export class BodyScan {
  readonly bytes: Int32Array;
  readonly locals: Int32Array;
  readonly flags: Uint8Array;
  readonly callSites: Int32Array;
  readonly tableWritten: Uint8Array;
  readonly calleeStart: Int32Array;
  callees: Int32Array = new Int32Array(256);
  calleeCount = 0;
  readonly #reader: BodyReader = new BodyReader();

  /** A scan of a module with so many defined functions, and so many tables, imports included. */
  constructor(functions: number, tables: number) {
    this.bytes = new Int32Array(functions);
    this.locals = new Int32Array(functions);
    this.flags = new Uint8Array(functions);
    this.callSites = new Int32Array(functions);
    this.tableWritten = new Uint8Array(tables);
    this.calleeStart = new Int32Array(functions + 1);
  }

  /** Scans the body of defined function `k`, after those before it; `imported` is the number of imported functions. */
  scan(k: number, body: Uint8Array, imported: number): void {
    const reader = this.#reader;
    reader.reset(body, 0, body.length, 0);
    this.locals[k] = reader.readLocals(undefined);
    this.bytes[k] = Math.max(0, body.length - reader.pos);
    this.flags[k] = this.#scanInstructions(reader, imported + k, imported);
    this.calleeStart[k + 1] = this.calleeCount;
  }

  #scanInstructions(reader: BodyReader, self: number, imported: number): number {
    const { imm, bytes } = reader;
    let flags = 0;
    if (reader.fault !== FAULT.NONE) return flags;
    for (let id = reader.next(); id >= 0; id = reader.next()) {
      flags |= BITS[id];
      const action = ACTION[id];
      if (action === NOTHING) continue;
      if (action === CALL) {
        const { index } = imm;
        const { pos } = reader;
        // A call before `unreachable` leads to an error, and is rarely executed.
        const returns = pos >= bytes.length || bytes[pos] !== UNREACHABLE_BYTE;
        if (id === PLAIN_CALL && returns) flags |= BODY.RETURNING_CALL;
        if (index === self) flags |= BODY.SELF_CALL;
        if (index >= imported && isBelow(index - imported, this.callSites.length)) this.#addCall(index - imported);
      } else {
        const table = action === TABLE_SECOND ? imm.index2 : imm.index;
        if (isBelow(table, this.tableWritten.length)) this.tableWritten[table] = 1;
      }
    }
    return flags;
  }

  #addCall(callee: number): void {
    this.callSites[callee]++;
    if (this.calleeCount === this.callees.length) this.callees = doubled(this.callees, this.calleeCount + 1);
    this.callees[this.calleeCount++] = callee;
  }

  /** Sets MUTUAL_CALL of small functions that call each other, once all bodies have been scanned. */
  markMutualCalls(): void {
    const { bytes, flags, callees, calleeStart } = this;
    for (let k = 0; k < flags.length; k++) {
      if (bytes[k] > MUTUAL_BYTES) continue;
      for (let at = calleeStart[k]; at < calleeStart[k + 1]; at++) {
        const other = callees[at];
        // The pair is found from the function that comes first.
        if (other <= k || bytes[other] > MUTUAL_BYTES || !this.#calls(other, k)) continue;
        flags[k] |= BODY.MUTUAL_CALL;
        flags[other] |= BODY.MUTUAL_CALL;
      }
    }
  }

  #calls(caller: number, callee: number): boolean {
    const { callees, calleeStart } = this;
    for (let at = calleeStart[caller]; at < calleeStart[caller + 1]; at++) if (callees[at] === callee) return true;
    return false;
  }

  /** Postorder of a depth-first search over the call graph, iterative because call chains may be long. */
  calleesFirst(): Int32Array {
    const { callees, calleeStart } = this;
    const functions = calleeStart.length - 1;
    const order = new Int32Array(functions);
    const seen = new Uint8Array(functions);
    const stack = new Int32Array(functions);
    const next = calleeStart.slice();
    let ordered = 0;
    for (let root = 0; root < functions; root++) {
      if (seen[root] === 1) continue;
      seen[root] = 1;
      stack[0] = root;
      let depth = 1;
      while (depth > 0) {
        const k = stack[depth - 1];
        const at = next[k];
        if (at === calleeStart[k + 1]) {
          order[ordered++] = k;
          depth--;
          continue;
        }
        next[k] = at + 1;
        const callee = callees[at];
        if (seen[callee] === 1) continue;
        seen[callee] = 1;
        stack[depth++] = callee;
      }
    }
    return order;
  }
}
