/**
 * Summaries of the bodies of a module, for inlining and table analysis. In: a ValidModule whose bodies may not have
 * been validated. Out: columns by defined function (body_scan.ts).
 */
import type { ValidModule } from "../validate/valid_module.ts";
import { BodyScan } from "./body_scan.ts";
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

/** Scans all bodies of `valid`. */
export function summarize({ funcs, tableTypes, importedFuncCount }: ValidModule): Summaries {
  const scan = new BodyScan(funcs.length, tableTypes.length);
  for (const [k, { body }] of funcs.entries()) scan.scan(k, body.bytes, importedFuncCount);
  scan.markMutualCalls();
  const { bytes, locals, flags, callSites, tableWritten, calleeStart } = scan;
  const callees = scan.callees.subarray(0, scan.calleeCount);
  const calleesFirst = scan.calleesFirst();
  return { bytes, locals, flags, callSites, tableWritten, calleeStart, callees, calleesFirst };
}
