/**
 * The reasons for which mutants that the verifier accepts stay in their sandbox. In: an accepted mutant, and proofs of
 * the same function with another change. Out: the first reason that holds. A reason is a statement about few
 * instructions that can be checked by reading them. Most are found by bytes that are no instruction: control does not
 * come to a place if the function is proven with such bytes there.
 *
 *     not reached        control does not come to the place, whatever is there
 *     never fails        the check that is left out or inverted is never false
 *     ends               control does not come behind the mutant, behind the first access through the register that it
 *                        changes or leaves, or out of its loop: it traps, faults (at null) or goes on forever
 *     constant table     the mutant is refused unless tables that nothing writes have the elements of their segments
 *     repeated           another branch makes the same check
 *     overwritten        the register that the mutant changes is written again before it is read
 *     unchanged          the return address that the mutant does not load is still in its register: no call or other
 *                        instruction that writes the register leads there
 *     same base          the mutant loads the base of the memory to the register that has it
 *     another memory     the address is in bounds of the memory whose base the mutant uses
 *     another function   the jump is a tail call of a function with the same results
 */
import { CONTEXT, MEMORY } from "../../abi/context_layout.ts";
import { Instructions, KIND, NO_REGISTER } from "../instructions.ts";
import type { Machine } from "../machine.ts";
import type { MachineModule } from "../machine_module.ts";
import { functionVerifier } from "../verify_code.ts";
import type { Mutant, Patches } from "./mutant_places.ts";

/** Whether the module's code proves function `index`. */
type Proves = (index: number) => boolean;

const REASONS = [
  "not reached",
  "never fails",
  "ends",
  "constant table",
  "repeated",
  "overwritten",
  "unchanged",
  "same base",
  "another memory",
  "another function",
] as const;
/** Instructions in front of a mutant and behind it among which a branch may repeat its check. */
const NEAR = 64;
/** Kinds of mutants of checks. */
const OF_CHECKS: readonly string[] = ["drop check", "invert check", "check off by one", "another type"];
type MutantReason = (typeof REASONS)[number];

/** A mutant of decoded code in its module. */
interface Accepted {
  readonly machine: Machine;
  readonly patches: Patches;
  readonly module: MachineModule;
  /** The original code. */
  readonly code: Instructions;
  readonly mutant: Mutant<string>;
  readonly n: number;
  readonly proves: Proves;
}

const HOLDS: Readonly<Record<MutantReason, (accepted: Accepted) => boolean>> = {
  "not reached": isNotReached,
  "never fails": neverFails,
  "ends": ends,
  "constant table": relyOnConstants,
  "repeated": isRepeated,
  "overwritten": isOverwritten,
  "unchanged": isUnchanged,
  "same base": isSameBase,
  "another memory": isInOtherMemory,
  "another function": callsOther,
};

/** The reason of the accepted mutant; undefined if none is known. `module` has the original bytes. */
export function reasonOf(
  machine: Machine,
  patches: Patches,
  module: MachineModule,
  mutant: Mutant<string>,
  proves: Proves,
): MutantReason | undefined {
  const code = new Instructions();
  decodeInto(code, machine, module, mutant.index);
  const n = code.at.subarray(0, code.count).indexOf(mutant.at);
  const accepted: Accepted = { machine, patches, module, code, mutant, n, proves };
  return REASONS.find((reason) => HOLDS[reason](accepted));
}

/** Runs `action` while `bytes` are at offset `at` of the image. */
function withBytes<T>({ bytes }: MachineModule, at: number, patch: Uint8Array, action: () => T): T {
  const original = bytes.slice(at, at + patch.length);
  bytes.set(patch, at);
  const result = action();
  bytes.set(original, at);
  return result;
}

function isNotReached({ patches, module, mutant: { at, index }, proves }: Accepted): boolean {
  return withBytes(module, at, patches.foreign, () => proves(index));
}

function neverFails({ patches, module, code, mutant, n, proves }: Accepted): boolean {
  if (code.kind[n] !== KIND.BRANCH) return false;
  const nowhere = patches.nowhere(module.bytes.slice(code.at[n], code.at[n + 1]));
  return withBytes(module, mutant.at, nowhere, () => proves(mutant.index));
}

function ends(accepted: Accepted): boolean {
  const { patches, module, code, mutant: { at, bytes, index }, n, proves } = accepted;
  const behind = (k: number) => {
    const next = code.at[k + 1];
    if (k >= code.count - 1 || next < at + bytes.length) return false;
    return withBytes(module, at, bytes, () => withBytes(module, next, patches.foreign, () => proves(index)));
  };
  return behind(n) || behind(firstAccess(accepted)) || behind(nextBranch(accepted));
}

/** The first access behind the mutant through a register that it, or the original, changes; otherwise the last one. */
function firstAccess(accepted: Accepted): number {
  const { machine, code, n } = accepted;
  const changed = changedRegisters(accepted) | machine.written(code, n);
  let k = n + 1;
  while (k < code.count - 1 && (code.base[k] < 0 || !isIn(machine, changed, code.base[k]))) k++;
  return k;
}

function nextBranch({ code, n }: Accepted): number {
  let k = n + 1;
  while (k < code.count - 1 && code.kind[k] !== KIND.BRANCH) k++;
  return k;
}

/** The mask of registers that the mutant writes, and the original does not. */
function changedRegisters({ machine, module, code, mutant: { at, bytes, index }, n }: Accepted): number {
  const changed = new Instructions();
  withBytes(module, at, bytes, () => decodeInto(changed, machine, module, index));
  return changed.count === code.count ? machine.written(changed, n) & ~machine.written(code, n) : 0;
}

function decodeInto(code: Instructions, machine: Machine, module: MachineModule, index: number): void {
  const { functionStart, functionEnd } = module.tables;
  code.begin(functionStart[index], functionEnd[index]);
  machine.decode(module.bytes, functionStart[index], functionEnd[index], code);
}

/** Whether the register at location `r` is in a mask. */
function isIn({ locations }: Machine, mask: number, r: number): boolean {
  const at = locations.indexOf(r);
  return at >= 0 && (mask >>> at & 1) !== 0;
}

function relyOnConstants({ machine, module, mutant }: Accepted): boolean {
  const tableIsPrivate = module.tableIsPrivate.map(() => false);
  const tableType = new Int32Array(module.tableType.length);
  const verifier = functionVerifier(machine, { ...module, tableIsPrivate, tableType });
  const isProven = () => verifier.verify(mutant.index) === undefined;
  return isProven() && withBytes(module, mutant.at, mutant.bytes, () => !isProven());
}

/**
 * Whether another branch near the mutant makes its check: the function is proven without either of them, but not
 * without both; or the same compare, of a sum that is as large, precedes the mutant.
 */
function isRepeated(accepted: Accepted): boolean {
  const { patches, module, code, mutant: { at, bytes, index, kind }, n, proves } = accepted;
  if (!OF_CHECKS.includes(kind)) return false;
  const without = (k: number, action: () => boolean) =>
    withBytes(module, code.at[k], patches.nothing(code.at[k + 1] - code.at[k]), action);
  for (let k = Math.max(n - NEAR, 0); k < Math.min(n + NEAR, code.count); k++) {
    if (k === n || code.kind[k] !== KIND.BRANCH) continue;
    if (k < n && isSameCheck(accepted, k)) return true;
    const isNeeded = withBytes(module, at, bytes, () => without(k, () => !proves(index)));
    if (isNeeded && without(k, () => proves(index))) return true;
  }
  return false;
}

/**
 * Whether the branch at `k` follows an equal compare as the mutant: of registers that nothing writes in between, or of
 * equal sums but for a constant that is not smaller at `k`.
 */
function isSameCheck({ machine, module, code, n }: Accepted, k: number): boolean {
  const first = placesOfCheck(code, k), second = placesOfCheck(code, n);
  const [compare, sum, amount] = first, [otherCompare, otherSum, otherAmount] = second;
  if (!isSameCode(module, code, compare, otherCompare)) return false;
  let written = 0;
  for (let m = compare; m < otherCompare; m++) written |= machine.written(code, m);
  const operands = [code.reg[compare], code.rn[compare], code.rm[compare], code.base[compare]];
  if (!operands.some((r) => r !== NO_REGISTER && isIn(machine, written, r))) return true;
  if (isSameCode(module, code, sum, otherSum)) return code.immediate[amount] >= code.immediate[otherAmount];
  const isSum = code.kind[sum] === KIND.LEA && code.kind[otherSum] === KIND.LEA;
  return isSum && code.base[sum] === code.base[otherSum] && code.index[sum] === code.index[otherSum] &&
    code.displacement[sum] >= code.displacement[otherSum];
}

/** The compare of the branch at `n`, and two instructions in front of it: the compared sum, and its constant. */
function placesOfCheck(code: Instructions, n: number): number[] {
  const places: number[] = [];
  for (let k = n - 1; k >= 0 && places.length < 3; k--) if (code.kind[k] !== KIND.BRANCH) places.push(k);
  return [...places, 0, 0, 0].slice(0, 3);
}

function isSameCode({ bytes }: MachineModule, { at }: Instructions, k: number, n: number): boolean {
  const length = at[k + 1] - at[k];
  return length === at[n + 1] - at[n] &&
    bytes.subarray(at[k], at[k + 1]).every((byte, offset) => byte === bytes[at[n] + offset]);
}

/** Whether each way from the mutant writes its register before it may read it. */
function isOverwritten(accepted: Accepted): boolean {
  const { machine, code, n } = accepted;
  const mask = changedRegisters(accepted);
  if (mask === 0) return false;
  const seen = new Set<number>(), ways = [n + 1];
  for (let k = ways.pop(); k !== undefined; k = ways.pop()) {
    if (seen.has(k)) continue;
    seen.add(k);
    const kind = code.kind[k];
    if (k >= code.count - 1 || (kind > KIND.JUMP && kind <= KIND.RETURN)) return false;
    const read = [code.rn[k], code.rm[k], code.base[k], code.index[k]];
    if (read.some((r) => r !== NO_REGISTER && isIn(machine, mask, r) && !isLoadedPair(code, k, r))) return false;
    if (isWhole(code, k) && (machine.written(code, k) & mask) === mask) continue;
    if (isIn(machine, mask, code.reg[k])) return false;
    if (kind !== KIND.JUMP) ways.push(k + 1);
    if (kind !== KIND.BRANCH && kind !== KIND.JUMP) continue;
    const target = targetOf(code, k);
    // A tail call, or a routine, reads the registers that all functions preserve.
    if (target < 0) return false;
    ways.push(target);
  }
  return true;
}

/** The instruction to which branch `k` leads, −1 for none of the function. */
function targetOf(code: Instructions, k: number): number {
  return code.at.subarray(0, code.count).indexOf(code.at[k + 1] + code.immediate[k]);
}

/** Whether the mutant leaves out a load of the return address, which nothing on any way to it has changed. */
function isUnchanged({ machine, module, code, mutant: { kind, index }, n }: Accepted): boolean {
  const { callReturn, callLanding, functionEnd, functionStart, trapAt } = module.tables;
  if (kind !== "return address not loaded") return false;
  for (let k = 0; k < code.count; k++) {
    if (code.kind[k] === KIND.JUMP_INDIRECT && machine.jumpsInside(code, k)) return false;
  }
  const isOwn = (offset: number) => offset > functionStart[index] && offset <= functionEnd[index];
  if (callReturn.some((offset, row) => isOwn(offset) && callLanding[row] >= 0)) return false;
  const ways: number[] = [];
  for (let k = 0; k < code.count; k++) {
    const isCall = code.kind[k] === KIND.CALL || code.kind[k] === KIND.CALL_INDIRECT;
    const writes = isCall ? !trapAt.includes(code.at[k + 1]) : isIn(machine, machine.written(code, k), machine.link);
    if (writes && code.kind[k] !== KIND.POP) ways.push(k + 1);
  }
  const seen = new Set<number>();
  for (let k = ways.pop(); k !== undefined; k = ways.pop()) {
    if (k === n) return false;
    if (seen.has(k) || k >= code.count) continue;
    seen.add(k);
    const isEnd = code.kind[k] === KIND.RETURN || code.kind[k] === KIND.POP || trapAt.includes(code.at[k + 1]);
    if (isEnd) continue;
    const target = code.kind[k] === KIND.BRANCH || code.kind[k] === KIND.JUMP ? targetOf(code, k) : -1;
    if (target >= 0) ways.push(target);
    // Behind a jump to a routine, control comes back.
    if (code.kind[k] !== KIND.JUMP || target < 0) ways.push(k + 1);
  }
  return true;
}

/** Whether `r` is the second register of a load of a pair. */
function isLoadedPair(code: Instructions, k: number, r: number): boolean {
  return code.kind[k] === KIND.PAIR && code.sub[k] === 1 && code.rn[k] === r && code.base[k] !== r;
}

/** Whether the instruction writes all bits of its registers, and reads none of them: on x64, short moves leave some. */
function isWhole(code: Instructions, k: number): boolean {
  const kind = code.kind[k];
  if (kind === KIND.PAIR) return code.sub[k] === 1;
  return kind === KIND.CONSTANT || kind === KIND.LEA || (kind === KIND.MOVE && code.size[k] >= 4);
}

/** Whether the mutant loads the base of memory 0 from the context to the register that has it everywhere. */
function isSameBase({ machine, module, mutant: { at, bytes, index }, n }: Accepted): boolean {
  const code = new Instructions();
  withBytes(module, at, bytes, () => decodeInto(code, machine, module, index));
  const isLoad = code.kind[n] === KIND.MOVE && code.size[n] === 8 && code.reg[n] === machine.memoryBase;
  const isField = code.base[n] === machine.context && code.index[n] < 0;
  return isLoad && isField && code.displacement[n] === module.code.layout.memoriesOffset + MEMORY.BASE;
}

/** Whether the base of the mutant was loaded from the base of a memory in the context. */
function isInOtherMemory({ machine, module, mutant: { at, bytes, index }, n }: Accepted): boolean {
  const code = new Instructions();
  withBytes(module, at, bytes, () => decodeInto(code, machine, module, index));
  const base = code.base[n];
  let k = n - 1;
  while (k > 0 && code.reg[k] !== base) k--;
  const memory = (code.displacement[k] - CONTEXT.SIZE) / MEMORY.SIZE;
  return code.kind[k] === KIND.MOVE && code.base[k] === machine.context && module.memoryIs64[memory] !== undefined;
}

/** Whether the mutant jumps to the start of a function: the rules for tail calls hold there. */
function callsOther({ machine, module, mutant: { at, bytes, index }, n }: Accepted): boolean {
  const code = new Instructions();
  withBytes(module, at, bytes, () => decodeInto(code, machine, module, index));
  return code.kind[n] === KIND.JUMP && module.tables.functionStart.includes(code.at[n + 1] + code.immediate[n]);
}
