/**
 * The entry of the register allocator as WebAssembly, in AssemblyScript. The module holds one VCode, its allocation and
 * the workspace of the allocator; the host copies columns in and out (allocator_module.ts).
 *
 *     setRegisters, addRegister, addDenial   the registers of the target and its rows of denied ones
 *     reserveVCode(…)  makes room for a function and returns the address of the record VHEAD: its counts and the
 *                      addresses of its columns, then those of the allocation
 *     allocate(bits)   allocates with the freedoms that `bits` gives
 */
import { FREEDOMS, HALVES_BIT } from "../../../engine/portable/compiler_interface.ts";

export const ALLOCATOR_ENTRY = `
import { Allocation } from "./codegen/allocation";
import { VCode } from "./codegen/vcode";
import { AllocatorWorkspace, runSteps } from "./regalloc/allocate";
import { AllocatableRegisters, AllocationCounts, AllocatorOptions, Denial } from "./regalloc/allocator_options";

const VHEAD: StaticArray<i32> = [${Array(45).fill(0).join(", ")}];
let v: VCode = new VCode();
let out: Allocation = new Allocation();
let workspace: AllocatorWorkspace = new AllocatorWorkspace();
let registers: AllocatableRegisters = { general: 0, vector: 0, generalOrder: [], vectorOrder: [] };
let denied: Denial[] = [];
let counts: AllocationCounts = new AllocationCounts();

export function renewAllocator(): void {
  v = new VCode();
  out = new Allocation();
  workspace = new AllocatorWorkspace();
  setRegisters(0, 0);
  counts = new AllocationCounts();
}

export function setRegisters(general: i32, vector: i32): void {
  registers = { general: general, vector: vector, generalOrder: [], vectorOrder: [] };
  denied = [];
}

export function addRegister(register: i32): void {
  if (register < 32) registers.generalOrder.push(register);
  else registers.vectorOrder.push(register);
}

export function addDenial(functions: i32, bits: i32, general: i32, vector: i32): void {
  denied.push({
    functions: functions,
    isDenied: (bits & 1) != 0,
    deniesWhenOn: (bits & 2) != 0,
    isForLongValues: (bits & 4) != 0,
    general: general,
    vector: vector,
    applied: 0,
  });
}

export function reserveVCode(
  count: i32, operands: i32, vregs: i32, blocks: i32, edges: i32, succ: i32, pool: i32, clobbers: i32,
): usize {
  if (count > v.clobbers.length) {
    v.clobbers = new Uint16Array(count * 2);
    v.firstOperand = new Int32Array(count * 2 + 1);
  }
  if (operands > v.operands.length) v.operands = new Int32Array(operands * 2);
  if (vregs > v.vregTy.length) {
    v.vregTy = new Uint8Array(vregs * 2);
    v.vregRemat = new Int32Array(vregs * 2);
    v.vregHint = new Uint8Array(vregs * 2);
  }
  v.ensureGraph(blocks, max(edges, succ));
  if (pool > v.pool.length) v.pool = new Int32Array(pool * 2);
  if (clobbers > v.clobberGeneral.length) {
    v.clobberGeneral = new Int32Array(clobbers * 2);
    v.clobberVector = new Int32Array(clobbers * 2);
  }
  VHEAD[9] = <i32>v.clobbers.dataStart;
  VHEAD[10] = <i32>v.firstOperand.dataStart;
  VHEAD[11] = <i32>v.operands.dataStart;
  VHEAD[12] = <i32>v.vregTy.dataStart;
  VHEAD[13] = <i32>v.vregRemat.dataStart;
  VHEAD[14] = <i32>v.vregHint.dataStart;
  VHEAD[15] = <i32>v.blockFirst.dataStart;
  VHEAD[16] = <i32>v.blockDepth.dataStart;
  VHEAD[17] = <i32>v.blockFlags.dataStart;
  VHEAD[18] = <i32>v.paramStart.dataStart;
  VHEAD[19] = <i32>v.paramCount.dataStart;
  VHEAD[20] = <i32>v.succStart.dataStart;
  VHEAD[21] = <i32>v.succCount.dataStart;
  VHEAD[22] = <i32>v.succ.dataStart;
  VHEAD[23] = <i32>v.edgeFrom.dataStart;
  VHEAD[24] = <i32>v.edgeTo.dataStart;
  VHEAD[25] = <i32>v.argStart.dataStart;
  VHEAD[26] = <i32>v.pool.dataStart;
  VHEAD[27] = <i32>v.clobberGeneral.dataStart;
  VHEAD[28] = <i32>v.clobberVector.dataStart;
  return changetype<usize>(VHEAD);
}

/** The function after selection, and its allocation. */
export function currentVCode(): VCode {
  return v;
}

export function currentAllocation(): Allocation {
  return out;
}

export function allocate(bits: i32): void {
  v.count = VHEAD[0];
  v.operandCount = VHEAD[1];
  v.vregCount = VHEAD[2];
  v.blockCount = VHEAD[3];
  v.edgeCount = VHEAD[4];
  v.succTotal = VHEAD[5];
  v.poolCount = VHEAD[6];
  v.clobberCount = VHEAD[7];
  v.hasCalls = VHEAD[8] != 0;
  allocateCurrent(bits);
  VHEAD[29] = out.slotCount;
  VHEAD[30] = out.halfFirst;
  VHEAD[31] = out.halfCount;
  VHEAD[32] = out.refSlotCount;
  VHEAD[33] = out.writtenGeneral;
  VHEAD[34] = out.writtenVector;
  VHEAD[35] = out.editCount;
  VHEAD[36] = <i32>out.location.dataStart;
  VHEAD[37] = <i32>out.skip.dataStart;
  VHEAD[38] = <i32>out.editAt.dataStart;
  VHEAD[39] = <i32>out.editFrom.dataStart;
  VHEAD[40] = <i32>out.editRemat.dataStart;
  VHEAD[41] = <i32>out.editTo.dataStart;
  VHEAD[42] = <i32>out.editTy.dataStart;
  VHEAD[43] = <i32>out.edgeFirst.dataStart;
}

/** Allocates the registers of the current VCode. */
export function allocateCurrent(bits: i32): void {
  counts = new AllocationCounts();
  for (let n = 0; n < denied.length; n++) denied[n].applied = 0;
  const options: AllocatorOptions = {
${FREEDOMS.map((name, n) => `    ${name}: (bits & ${1 << n}) != 0,`).join("\n")}
    denied: denied,
    counts: counts,
  };
  runSteps(v, registers, (bits & ${HALVES_BIT}) != 0, options, out, workspace);
}

/** The counts of the last allocation. */
export function allocationCounts(): AllocationCounts {
  return counts;
}

export function denials(): Denial[] {
  return denied;
}
`;
