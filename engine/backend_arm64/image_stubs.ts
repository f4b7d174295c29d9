/**
 * Code that every image carries once, in front of its functions: the common end of parking, trap stubs, and the
 * builtins, native or parking.
 */
import { BUILTIN, BUILTIN_ROWS, type BuiltinRow, isInImage } from "../abi/builtins.ts";
import { alignImage, FILLER, FUNCTION_ALIGNMENT } from "../codegen/align_image.ts";
import { type MachineCode, RELOC, STUB } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import { CONTEXT, STATUS, THREAD } from "../abi/context_layout.ts";
import { isDescriptorTrap, TRAP_MESSAGES } from "../base/traps.ts";
import { KIND } from "./emission.ts";
import { X } from "./instructions.ts";
import { emitMemoryMove, emitMemorySet } from "./native_builtins.ts";
import { CONTEXT_REGISTER, LINK, registerFile, SCRATCH, SCRATCH2, SP, THREAD_REGISTER, ZERO } from "./registers.ts";
import { StubCode } from "./stub_code.ts";
import { emitPark } from "./park.ts";
import { emitParkingThunk, park } from "./thunks.ts";

/** Appends the shared code to the (empty) image. */
export function emitImageStubs(context: CodegenContext, code: MachineCode): void {
  stub(context, code, STUB.PARK, emitPark);
  const { generalOrder } = registerFile(context.explicitBounds, context.fuel);
  stub(context, code, STUB.ALLOCATE, (s) => emitAllocateStub(s, generalOrder));
  stub(context, code, STUB.COMPILE, (s) => emitCompileStub(s, generalOrder));
  for (let trap = 1; trap < TRAP_MESSAGES.length; trap++) {
    if (isDescriptorTrap(trap) && context.descriptors !== true) continue;
    stub(context, code, STUB.TRAP + trap, (s) => {
      s.constant(0, BigInt(trap));
      s.at(X.LDR_X_U, SCRATCH, CONTEXT_REGISTER, CONTEXT.TRAP_EXIT);
      s.rrr(X.BR, 0, SCRATCH, 0);
    });
  }
  BUILTIN_ROWS.forEach((row: BuiltinRow, index) => {
    if (!isInImage(row, context)) return;
    stub(context, code, STUB.BUILTIN + index, (s) => emitBuiltin(s, row, index));
  });
}

function stub(context: CodegenContext, code: MachineCode, number: number, emit: (s: StubCode) => void): void {
  alignImage(code, FUNCTION_ALIGNMENT, FILLER.arm64);
  code.stubStart[number] = code.length;
  const s = new StubCode(context, code);
  emit(s);
  s.finish();
}

/** Bytes of the vector registers that {@linkcode callSaved} saves. */
const VECTOR_BYTES = 32 * 16;

/**
 * Calls the runtime for an object of x16 bytes; its address is returned in x16, and no register but x17, x30 and v31
 * changes.
 */
function emitAllocateStub(s: StubCode, generalOrder: readonly number[]): void {
  callSaved(s, generalOrder, BUILTIN.gc_allocate);
  s.rrr(X.BR, 0, LINK, 0);
}

/** Continues in the code of the defined function whose index is in x16; no register but x16 and x17 changes. */
function emitCompileStub(s: StubCode, generalOrder: readonly number[]): void {
  callSaved(s, generalOrder, BUILTIN.compile_body);
  s.rrr(X.BR, 0, SCRATCH, 0);
}

/** Calls `builtin` with the argument x16; its result is in x16, and no register but x17 changes. */
function callSaved(s: StubCode, generalOrder: readonly number[], builtin: number): void {
  const saved = generalOrder.length % 2 === 0 ? generalOrder : [...generalOrder, generalOrder[0]];
  const frame = saved.length * 8 + VECTOR_BYTES;
  const after = s.newLabel();
  s.pair(X.STP_PRE, ZERO, LINK, SP, -2);
  s.add(SP, SP, -frame);
  for (let k = 0; k < saved.length; k += 2) s.pair(X.STP_X, saved[k], saved[k + 1], SP, k);
  s.add(SCRATCH2, SP, saved.length * 8);
  for (let k = 0; k < 32; k += 2) s.pair(X.STP_Q, k, k + 1, SCRATCH2, k);
  s.at(X.LDR_X_U, THREAD_REGISTER, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.at(X.STR_X_U, SCRATCH, THREAD_REGISTER, THREAD.SLOTS);
  s.constant(SCRATCH2, BigInt(builtin));
  s.at(X.STR_W_U, SCRATCH2, THREAD_REGISTER, THREAD.PARK_INDEX);
  s.address(SCRATCH2, after);
  s.constant(0, BigInt(STATUS.BUILTIN));
  s.jumpStub(RELOC.STUB, STUB.PARK);
  s.bind(after);
  s.fixup(KIND.CALL_SITE, frame + 8, 0, 0, 0);
  // Resuming leaves the thread in x9.
  s.at(X.LDR_X_U, SCRATCH, THREAD_REGISTER, THREAD.SLOTS);
  s.add(SCRATCH2, SP, saved.length * 8);
  for (let k = 0; k < 32; k += 2) s.pair(X.LDP_Q, k, k + 1, SCRATCH2, k);
  for (let k = 0; k < saved.length; k += 2) s.pair(X.LDP_X, saved[k], saved[k + 1], SP, k);
  s.add(SP, SP, frame);
  s.pair(X.LDP_POST, ZERO, LINK, SP, 2);
}

function emitBuiltin(s: StubCode, row: BuiltinRow, index: number): void {
  if (row.name === "memory_move") emitMemoryMove(s);
  else if (row.name === "memory_set") emitMemorySet(s);
  else if (row.native) throw new Error(`Builtin "${row.name}" has no machine code`);
  else {
    const signature = { params: Uint8Array.from(row.params), results: Uint8Array.from(row.results) };
    emitParkingThunk(s, signature, () => park(s, STATUS.BUILTIN, (to) => s.constant(to, BigInt(index))));
  }
}
