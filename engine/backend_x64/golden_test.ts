/**
 * Goldens of the backend: tests/golden/x64/, see codegen/testing/goldens.ts.
 */
import { BUILTIN_ROWS } from "../abi/builtins.ts";
import { type MachineCode, STUB } from "../codegen/machine_code.ts";
import { testGoldens } from "../codegen/testing/goldens.ts";
import { TRAP_NAMES } from "../ir/print.ts";
import { disassemble } from "./disassemble.ts";
import { SHARED } from "./image_constants.ts";
import { BASELINE, compileIr, type CompileSettings } from "./testing/compile_ir.ts";

function listing(text: string, settings: CompileSettings): string {
  const { code } = compileIr([text], settings);
  const lines = disassemble(code.bytes, code.functionStart[0], code.functionEnd[0]);
  return lines.replace(/offset (\d+)/g, (_, offset) => placeName(code, Number(offset)));
}

/** Name of an offset outside the function, so that goldens do not depend on the offsets of the image's stubs. */
function placeName(code: MachineCode, offset: number): string {
  const stub = code.stubStart.indexOf(offset);
  if (stub > STUB.TRAP) return `trap ${TRAP_NAMES[stub - STUB.TRAP]}`;
  if (stub >= STUB.BUILTIN) return `builtin ${BUILTIN_ROWS[stub - STUB.BUILTIN].name}`;
  const constant = Object.entries(SHARED).find(([, at]) => code.stubStart[STUB.CONSTANTS] + at === offset);
  return constant !== undefined ? constant[0] : offset >= code.functionEnd[0] ? "pool" : `offset ${offset}`;
}

testGoldens({ name: "x64", baseline: BASELINE, listing });
