/**
 * Code that every image carries once, in front of its functions: constants, the common end of parking, trap stubs, and
 * the builtins, native or parking.
 */
import { BUILTIN, BUILTIN_ROWS, type BuiltinName, type BuiltinRow, isInImage } from "../abi/builtins.ts";
import { alignImage, FILLER, FUNCTION_ALIGNMENT } from "../codegen/align_image.ts";
import { type MachineCode, RELOC, STUB } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import { CONTEXT, STATUS, THREAD } from "../abi/context_layout.ts";
import { isDescriptorTrap, TRAP_MESSAGES } from "../base/traps.ts";
import { KIND } from "./emission.ts";
import { imageConstants } from "./image_constants.ts";
import { X } from "./instructions.ts";
import { emitMemoryMove, emitMemorySet } from "./native_builtins.ts";
import { CONTEXT_REGISTER, FUEL, R11, RAX, RCX, registerFile, RSP } from "./registers.ts";
import { StubCode } from "./stub_code.ts";
import { emitParkingThunk, park } from "./thunks.ts";
import { emitQuickUnwinding } from "./unwind_stubs.ts";

/** Appends the shared code to the (empty) image. */
export function emitImageStubs(context: CodegenContext, code: MachineCode): void {
  place(code, STUB.CONSTANTS);
  const constants = imageConstants();
  code.reserve(constants.length);
  code.bytes.set(constants, code.length);
  code.length += constants.length;
  stub(context, code, STUB.PARK, (s) => emitPark(s, context.fuel === true));
  const saved = registerFile(context.explicitBounds, context.fuel).generalOrder;
  stub(context, code, STUB.POLL, (s) => emitPollStub(s, saved));
  stub(context, code, STUB.ALLOCATE, (s) => emitAllocateStub(s, saved));
  stub(context, code, STUB.COMPILE, (s) => emitCompileStub(s, saved));
  for (let trap = 1; trap < TRAP_MESSAGES.length; trap++) {
    if (isDescriptorTrap(trap) && context.descriptors !== true) continue;
    stub(context, code, STUB.TRAP + trap, (s) => {
      s.constant(RAX, BigInt(trap));
      s.rm(X.JMP_M, 0, CONTEXT_REGISTER, CONTEXT.TRAP_EXIT);
    });
  }
  BUILTIN_ROWS.forEach((row: BuiltinRow, index) => {
    if (!isInImage(row, context)) return;
    stub(context, code, STUB.BUILTIN + index, (s) => emitBuiltin(s, row, index));
  });
}

/** Aligns the image and notes that stub `number` begins here. */
function place(code: MachineCode, number: number): void {
  alignImage(code, FUNCTION_ALIGNMENT, FILLER.x64);
  code.stubStart[number] = code.length;
}

function stub(context: CodegenContext, code: MachineCode, number: number, emit: (s: StubCode) => void): void {
  place(code, number);
  const s = new StubCode(context, code);
  emit(s);
  s.finish();
}

/** Leaves for the host with status eax; r11 = thread, the address to resume at was pushed. */
function emitPark(s: StubCode, fuel: boolean): void {
  if (fuel) s.rm(X.MOV64_S, FUEL, R11, THREAD.FUEL);
  s.push(CONTEXT_REGISTER);
  s.rm(X.PUSH_M, 0, R11, THREAD.GUEST_SP);
  s.rm(X.MOV64_S, RSP, R11, THREAD.GUEST_SP);
  s.rm(X.MOV64_S, CONTEXT_REGISTER, R11, THREAD.PARK_CONTEXT);
  s.rm(X.MOV32_S, RAX, R11, THREAD.STATUS);
  s.returnToHost(R11);
}

const POLL_VECTORS = 15;

/** Parks between any two instructions: saves everything but the pinned registers, which resume reloads. */
function emitPollStub(s: StubCode, saved: readonly number[]): void {
  saveAll(s, saved);
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  parkSaved(s, saved, STATUS.POLL);
  restoreAll(s, saved);
  s.op(X.RET);
}

/** Calls the runtime for an object of r11 bytes; its address is returned in r11, and no other register changes. */
function emitAllocateStub(s: StubCode, saved: readonly number[]): void {
  callSaved(s, saved, BUILTIN.gc_allocate);
  s.op(X.RET);
}

/** Continues in the code of the defined function whose index is in r11, with all other registers unchanged. */
function emitCompileStub(s: StubCode, saved: readonly number[]): void {
  callSaved(s, saved, BUILTIN.compile_body);
  s.rr(X.JMP_M, 0, R11);
}

/** Calls `builtin` with the argument r11; its result is in r11, and no other register changes. */
function callSaved(s: StubCode, saved: readonly number[], builtin: number): void {
  saveAll(s, saved);
  s.rr(X.MOV64_L, RCX, R11);
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.rm(X.MOV64_S, RCX, R11, THREAD.SLOTS);
  s.constant(RAX, BigInt(builtin));
  s.rm(X.MOV32_S, RAX, R11, THREAD.PARK_INDEX);
  parkSaved(s, saved, STATUS.BUILTIN);
  s.rm(X.MOV64_L, R11, R11, THREAD.SLOTS);
  restoreAll(s, saved);
}

function saveAll(s: StubCode, saved: readonly number[]): void {
  for (const register of saved) s.push(register);
  s.ri(X.SUB64_I, RSP, POLL_VECTORS * 16);
  for (let k = 0; k < POLL_VECTORS; k++) s.rm(X.MOVUPS_S, k, RSP, k * 16);
}

/** Parks with `status`; r11 = thread, before and after. */
function parkSaved(s: StubCode, saved: readonly number[], status: number): void {
  const after = s.newLabel();
  s.address(RAX, after);
  s.push(RAX);
  s.constant(RAX, BigInt(status));
  s.jumpStub(RELOC.STUB, STUB.PARK);
  s.bind(after);
  s.fixup(KIND.CALL_SITE, POLL_VECTORS * 16 + saved.length * 8, 0, 0, 0);
}

function restoreAll(s: StubCode, saved: readonly number[]): void {
  for (let k = 0; k < POLL_VECTORS; k++) s.rm(X.MOVUPS_L, k, RSP, k * 16);
  s.ri(X.ADD64_I, RSP, POLL_VECTORS * 16);
  for (const register of saved.toReversed()) s.pop(register);
}

function emitBuiltin(s: StubCode, row: BuiltinRow, index: number): void {
  if (row.name === "memory_move") emitMemoryMove(s);
  else if (row.name === "memory_set") emitMemorySet(s);
  else if (row.native) throw new Error(`Builtin "${row.name}" has no machine code`);
  else {
    emitQuickUnwinding(s, row.name as BuiltinName);
    const signature = { params: Uint8Array.from(row.params), results: Uint8Array.from(row.results) };
    emitParkingThunk(s, signature, () => park(s, STATUS.BUILTIN, (to) => s.constant(to, BigInt(index))));
  }
}
