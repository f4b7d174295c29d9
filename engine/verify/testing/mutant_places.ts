/**
 * The parts of mutants that all architectures share: the places of code that are broken, and the questions about them
 * whose answers do not depend on the encoding. In: decoded functions of proven code. Out: places for mutants.ts and
 * arm64_mutants.ts.
 */
import { CONTEXT } from "../../abi/context_layout.ts";
import { STUB } from "../../codegen/machine_code.ts";
import { TRAP } from "../../base/traps.ts";
import { isSubtypeId } from "../../wasm/subtype.ts";
import { type Instructions, KIND } from "../instructions.ts";
import type { MachineModule } from "../machine_module.ts";

/** One mutant: `bytes` replace those at offset `at` of the image, in function `index`. */
export interface Mutant<Kind extends string> {
  readonly kind: Kind;
  readonly index: number;
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** Bytes that take the place of instructions, to ask the verifier whether control comes there (mutant_reasons.ts). */
export interface Patches {
  /** The branch, with a target that is the start of no instruction of its function. */
  nowhere(branch: Uint8Array): Uint8Array;
  /** Bytes that are no instruction of functions. */
  readonly foreign: Uint8Array;
  /** Instructions without effect. */
  nothing(bytes: number): Uint8Array;
}

/** An instruction in its function. */
export interface Place {
  readonly module: MachineModule;
  readonly code: Instructions;
  readonly n: number;
  /** The trap to whose stub the branch at this place leads, 0: none. */
  readonly trap: number;
  /** The function calls others. */
  readonly calls: boolean;
}

/** Traps whose checks keep code in its sandbox. */
export const SANDBOX_TRAPS: ReadonlySet<number> = new Set([
  TRAP.MEMORY_OUT_OF_BOUNDS,
  TRAP.UNDEFINED_ELEMENT,
  TRAP.INDIRECT_CALL_TYPE,
  TRAP.STACK_EXHAUSTED,
  TRAP.CAST_FAILURE,
  TRAP.ARRAY_OUT_OF_BOUNDS,
]);

/** Whether register `r` holds the address of the overflow buffer, which is larger than any field's offset. */
export function isOverflowBuffer({ code, n }: Place, r: number, context: number): boolean {
  let k = n - 1;
  while (k > 0 && !(code.kind[k] === KIND.MOVE && code.rm[k] < 0 && code.reg[k] === r)) k--;
  return code.base[k] === context && code.displacement[k] === CONTEXT.OVERFLOW;
}

/** The next instruction that always transfers control. */
export function nextTransfer({ code, n }: Place): number {
  let k = n + 1;
  while (k < code.count - 1 && !(code.kind[k] >= KIND.JUMP && code.kind[k] <= KIND.RETURN)) k++;
  return k;
}

export function isIndirect(kind: number): boolean {
  return kind === KIND.CALL_INDIRECT || kind === KIND.JUMP_INDIRECT;
}

/** Whether the record that was tested is called, not that of an import; `record`: the register of records. */
export function isRecordCallNext(place: Place, record: number): boolean {
  const { code, n } = place;
  const end = nextTransfer(place);
  for (let k = n; k < end; k++) if (code.kind[k] === KIND.LEA && code.reg[k] === record) return false;
  return isIndirect(code.kind[end]);
}

/** Whether a routine of the image is called next. */
export function isNativeCallNext(place: Place): boolean {
  const { module, code } = place;
  const k = nextTransfer(place);
  return code.kind[k] === KIND.CALL && module.stubs.start.includes(code.at[k + 1] + code.immediate[k]);
}

/**
 * Offset in the context of the id of a type of the module that is unrelated to the one whose id the instruction loads;
 * −1: there is none.
 */
export function otherType({ module, code, n }: Place): number {
  const { typeIdsOffset } = module.code.layout;
  const own = module.typeId[(code.displacement[n] - typeIdsOffset) / 4];
  const other = module.typeId.findIndex((id) => !isSubtypeId(id, own) && !isSubtypeId(own, id));
  return other < 0 ? -1 : typeIdsOffset + 4 * other;
}

/** Traps by the offset of the call of their stub, or of the push in front of it. */
export function trapCalls({ stubs }: MachineModule, code: Instructions): ReadonlyMap<number, number> {
  const traps = new Map<number, number>(), numbers = new Map<number, number>();
  stubs.start.forEach((start, number) => {
    if (number > STUB.TRAP && start >= 0) numbers.set(start, number - STUB.TRAP);
  });
  for (let n = 0; n < code.count; n++) {
    const trap = code.kind[n] === KIND.CALL ? numbers.get(code.at[n + 1] + code.immediate[n]) : undefined;
    if (trap === undefined) continue;
    traps.set(code.at[n], trap);
    if (n > 0 && code.kind[n - 1] === KIND.PUSH) traps.set(code.at[n - 1], trap);
  }
  return traps;
}

/** Whether the code calls functions of modules. */
export function callsOthers({ tables }: MachineModule, code: Instructions): boolean {
  const functions = new Set(tables.functionStart);
  for (let n = 0; n < code.count; n++) {
    if (code.kind[n] === KIND.CALL_INDIRECT) return true;
    if (code.kind[n] === KIND.CALL && functions.has(code.at[n + 1] + code.immediate[n])) return true;
  }
  return false;
}
