/**
 * Names of the code of an image by offset: functions, thunks and stubs. In: compiled code. Out: a lookup for listings.
 */
import { BUILTIN_ROWS } from "../abi/builtins.ts";
import { type MachineCode, STUB } from "../codegen/machine_code.ts";
import type { CompiledCode } from "../compile/compile.ts";
import { TRAP } from "../base/traps.ts";

const TRAP_STUBS = new Map<number, string>(Object.entries(TRAP).map(([name, code]) => [STUB.TRAP + code, name]));
const NAMED_STUBS = new Map<number, string>([
  [STUB.PARK, "park"],
  [STUB.POLL, "poll"],
  [STUB.CONSTANTS, "constants"],
  [STUB.ALLOCATE, "allocate"],
  [STUB.COMPILE, "compile"],
]);

/** The name of the stub with this number. */
function stubName(stub: number): string {
  const trap = TRAP_STUBS.get(stub);
  if (trap !== undefined) return `trap ${trap.toLowerCase().replaceAll("_", " ")}`;
  return NAMED_STUBS.get(stub) ?? `builtin ${BUILTIN_ROWS[stub - STUB.BUILTIN]?.name ?? stub}`;
}

/** The name of the function, thunk or stub that begins at an offset of the image. `label` names a function by index. */
export function codeNames(
  { tables, valid }: CompiledCode,
  { stubStart }: MachineCode,
  label: (index: number) => string,
): (offset: number) => string | undefined {
  const names = new Map<number, () => string>();
  stubStart.forEach((offset, stub) => offset >= 0 && names.set(offset, () => stubName(stub)));
  tables.functionStart.forEach((offset, k) => names.set(offset, () => label(valid.importedFuncCount + k)));
  return (offset) => names.get(offset)?.();
}
