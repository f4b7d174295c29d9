/**
 * Summaries of bodies by an instance of the compiler. In: its exports, and a module whose bodies are valid. Out: the
 * summaries that translate/summaries.ts makes, without the table of opcodes.
 */
import { joinBodies } from "../translate/describe_module.ts";
import type { Summaries } from "../translate/summaries.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { type CompilerExports, SCAN_COLUMNS } from "./compiler_interface.ts";

type ColumnName = typeof SCAN_COLUMNS[number];

/** Scans the bodies of `valid`. */
export function scanBodies(exports: CompilerExports, valid: ValidModule): Summaries {
  const { funcs, tableTypes, importedFuncCount } = valid;
  const { starts, bodies } = joinBodies(valid);
  exports.reset();
  const at = exports.reserveScan(funcs.length, tableTypes.length, bodies.length);
  new Int32Array(exports.memory.buffer, at, starts.length).set(starts);
  new Uint8Array(exports.memory.buffer, exports.bodiesAddress(), bodies.length).set(bodies);
  exports.scanBodies(importedFuncCount);
  const { buffer } = exports.memory; // the scan may have replaced it
  const address = (name: ColumnName) => exports.scanColumn(SCAN_COLUMNS.indexOf(name));
  const words = (name: ColumnName, length: number) => new Int32Array(buffer, address(name), length).slice();
  const flags = (name: ColumnName, length: number) => new Uint8Array(buffer, address(name), length).slice();
  return {
    bytes: words("bytes", funcs.length),
    locals: words("locals", funcs.length),
    flags: flags("flags", funcs.length),
    callSites: words("callSites", funcs.length),
    tableWritten: flags("tableWritten", tableTypes.length),
    calleeStart: words("calleeStart", starts.length),
    callees: words("callees", exports.scannedCalls()),
    calleesFirst: words("calleesFirst", funcs.length),
  };
}
