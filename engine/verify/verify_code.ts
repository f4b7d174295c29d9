/**
 * The verifier of machine code: proves for each function of an image that it stays in its sandbox. In: a MachineModule.
 * Out: the functions that are not proven, with offset and reason. A module is proven if there are none: the proof of
 * each function relies on those of the functions that it calls.
 *
 *     x64_forms.ts, x64_decoder.ts    bytes → columns of instructions
 *     facts.ts, ranges.ts             the abstract domain: facts about registers, slots and lengths
 *     references.ts                   types of references as machine code sees them
 *     objects.ts, allocation.ts       proof of accesses to objects, and of their allocation
 *     x64_memory.ts                   proof of each access
 *     x64_arithmetic.ts               facts about results
 *     x64_conditions.ts               facts on the ways of a branch
 *     x64_control.ts                  proof of each call, jump and return
 *     x64_function.ts                 blocks and joins of one function
 *
 * Independent of instruction selection, register allocation and emission. Trusted: the validated module's types and
 * limits (machine_module.ts), the layouts of engine/abi/, the runtime, and the stubs of this build, whose bytes the
 * image must begin with. Entry and host thunks are not verified.
 */
import { CodeMap } from "./code_map.ts";
import type { MachineModule } from "./machine_module.ts";
import { type Finding, X64Verifier } from "./x64_function.ts";
import { writtenRegisters } from "./x64_written.ts";

export type { Finding } from "./x64_function.ts";

/** Finding about the stubs of an image. */
const STUBS: Finding = { index: -1, at: 0, reason: "the image does not begin with the stubs of this build" };

/** Verifies x64 code. Returns findings, at most one per function; none: every function is proven. */
export function verifyX64(module: MachineModule): Finding[] {
  const { stubs: { bytes: expected }, bytes, tables: { functionStart } } = module;
  if (!expected.every((byte, at) => bytes[at] === byte)) return [STUBS];
  const verifier = x64Verifier(module);
  const findings = verifyAll(verifier, functionStart);
  // The proofs of all functions relied on tables that one of them writes.
  return verifier.dropWrittenTables() ? verifyAll(verifier, functionStart) : findings;
}

/** A verifier of single functions of x64 code. */
export function x64Verifier(module: MachineModule): X64Verifier {
  const map = new CodeMap(module);
  return new X64Verifier(module, map, writtenRegisters(module, map));
}

function verifyAll(verifier: X64Verifier, functionStart: Int32Array): Finding[] {
  const findings: Finding[] = [];
  for (let index = 0; index < functionStart.length; index++) {
    if (functionStart[index] < 0) continue;
    const finding = verifier.verify(index);
    if (finding !== undefined) findings.push(finding);
  }
  return findings;
}
