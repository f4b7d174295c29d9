/**
 * The verifier of machine code: proves for each function of an image that it stays in its sandbox. In: a MachineModule.
 * Out: the functions that are not proven, with offset and reason. A module is proven if there are none: the proof of
 * each function relies on those of the functions that it calls.
 *
 *     machine.ts                          the interface of an architecture: x64_machine.ts, arm64_machine.ts
 *     *_forms.ts, *_decoder.ts            bytes → columns of instructions (instructions.ts)
 *     facts.ts, ranges.ts                 the abstract domain: facts about registers, slots and lengths
 *     inductions.ts                       bounds of induction variables
 *     references.ts                       types of references as machine code sees them
 *     objects.ts, allocation.ts           proof of accesses to objects, and of their allocation
 *     memory.ts                           proof of each access
 *     arithmetic.ts, *_rules.ts           facts about results
 *     conditions.ts                       facts on both edges of a branch
 *     control.ts, written.ts              proof of each call, jump and return; registers that functions write
 *     function_verifier.ts                blocks and joins of one function
 *
 * Independent of instruction selection, register allocation and emission. Trusted: the validated module's types and
 * limits (machine_module.ts), the layouts of engine/abi/, the runtime, and the stubs of this build, whose bytes the
 * image must begin with. Entry and host thunks are not verified.
 */
import { CodeMap } from "./code_map.ts";
import type { MachineModule } from "./machine_module.ts";
import { type Finding, FunctionVerifier } from "./function_verifier.ts";
import type { Machine } from "./machine.ts";
import { writtenRegisters } from "./written.ts";

export type { Finding } from "./function_verifier.ts";

/** Finding about the stubs of an image. */
const STUBS: Finding = { index: -1, at: 0, reason: "the image does not begin with the stubs of this build" };

/** Verifies code of `machine`. Returns findings, at most one per function; none: every function is proven. */
export function verifyCode(machine: Machine, module: MachineModule): Finding[] {
  const { stubs: { bytes: expected }, bytes, tables: { functionStart, pollAt } } = module;
  if (!expected.every((byte, at) => bytes[at] === byte) || pollAt.some((at) => at < expected.length)) return [STUBS];
  const verifier = functionVerifier(machine, module);
  const findings = verifyAll(verifier, functionStart);
  // The proofs of all functions relied on tables that one of them writes.
  return verifier.dropWrittenTables() ? verifyAll(verifier, functionStart) : findings;
}

/** A verifier of single functions. */
export function functionVerifier(machine: Machine, module: MachineModule): FunctionVerifier {
  const map = new CodeMap(module);
  return new FunctionVerifier(machine, module, map, writtenRegisters(machine, module, map));
}

function verifyAll(verifier: FunctionVerifier, functionStart: Int32Array): Finding[] {
  const findings: Finding[] = [];
  for (let index = 0; index < functionStart.length; index++) {
    if (functionStart[index] < 0) continue;
    const finding = verifier.verify(index);
    if (finding !== undefined) findings.push(finding);
  }
  return findings;
}
