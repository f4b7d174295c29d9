/**
 * Goldens of the backend: tests/golden/arm64/, see codegen/testing/goldens.ts. They are data: every host can check
 * them.
 */
import { BUILTIN_ROWS } from "../abi/builtins.ts";
import { type MachineCode, STUB } from "../codegen/machine_code.ts";
import { compileFor, type CompileSettings } from "../codegen/testing/compile_ir.ts";
import { testGoldens } from "../codegen/testing/goldens.ts";
import { TRAP_NAMES } from "../ir/print.ts";
import { disassemble } from "./disassemble.ts";
import { OPTIMIZING_ARM64 as ARM64 } from "./optimizing_target.ts";

/** CPUs to test on: Armv8.0, and one with the atomic instructions of Armv8.1. */
const BASELINE: ReadonlySet<string> = new Set();
const MODERN: ReadonlySet<string> = new Set(["lse"]);

/** An instruction whose operand is a distance from itself. */
const RELATIVE = /^( {2}(?:b|bl|b\.\w+|cbz|cbnz|tbz|tbnz|adr|ldr|ldrsw) (?:.*, )?)#(-?\d+)$/;

function listing(text: string, settings: CompileSettings): string {
  const { code } = compileFor(ARM64, [text], { cpu: MODERN, ...settings });
  const first = code.functionStart[0];
  const lines = disassemble(code.bytes, first, code.functionEnd[0]).trimEnd().split("\n");
  const targets = lines.map((line, k) => {
    const distance = RELATIVE.exec(line)?.[2];
    return distance === undefined ? undefined : 4 * k + Number(distance);
  });
  const inside = (at: number) => at >= 0 && at < 4 * lines.length;
  const places = [...new Set(targets.filter((at) => at !== undefined && inside(at)))].sort((a, b) => a! - b!);
  return lines.map((line, k) => {
    const at = targets[k];
    const named = at === undefined
      ? line
      : line.replace(RELATIVE, `$1${inside(at) ? `L${places.indexOf(at)}` : placeName(code, first + at)}`);
    const label = places.indexOf(4 * k);
    return `${label < 0 ? "" : `L${label}:\n`}${named}\n`;
  }).join("");
}

/** Name of an offset outside the function, so that goldens do not depend on the offsets of the image's stubs. */
function placeName(code: MachineCode, offset: number): string {
  const stub = code.stubStart.indexOf(offset);
  if (stub > STUB.TRAP) return `trap ${TRAP_NAMES[stub - STUB.TRAP]}`;
  if (stub >= STUB.BUILTIN) return `builtin ${BUILTIN_ROWS[stub - STUB.BUILTIN].name}`;
  return offset >= code.functionEnd[0] ? "pool" : `offset ${offset}`;
}

testGoldens({ name: "arm64", baseline: BASELINE, listing });
