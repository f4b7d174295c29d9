/**
 * Code that every image carries once, in front of its functions: the common end of parking, trap stubs, and the builtins, native
 * or parking.
 */
import { BUILTIN_ROWS, type BuiltinRow } from "../builtins.ts";
import { type MachineCode, STUB } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import { CONTEXT, PARKED, STATUS, THREAD } from "../context_layout.ts";
import { TRAP_MESSAGES } from "../traps.ts";
import { X } from "./instructions.ts";
import { emitMemoryMove, emitMemorySet } from "./native_builtins.ts";
import { CONTEXT_REGISTER, SCRATCH, SCRATCH2, SP } from "./registers.ts";
import { StubCode } from "./stub_code.ts";
import { emitParkingThunk, THREAD_REGISTER } from "./thunks.ts";

/** Appends the shared code to the (empty) image. */
export function emitImageStubs(context: CodegenContext, code: MachineCode): void {
  stub(context, code, STUB.PARK, emitPark);
  for (let trap = 1; trap < TRAP_MESSAGES.length; trap++) {
    stub(context, code, STUB.TRAP + trap, (s) => {
      s.constant(0, BigInt(trap));
      s.at(X.LDR_X_U, SCRATCH, CONTEXT_REGISTER, CONTEXT.TRAP_EXIT);
      s.rrr(X.BR, 0, SCRATCH, 0);
    });
  }
  BUILTIN_ROWS.forEach((row: BuiltinRow, index) => {
    stub(context, code, STUB.BUILTIN + index, (s) => emitBuiltin(s, row, index));
  });
}

function stub(context: CodegenContext, code: MachineCode, number: number, emit: (s: StubCode) => void): void {
  while (code.length % 16 !== 0) {
    code.reserve(1);
    code.bytes[code.length++] = 0;
  }
  code.stubStart[number] = code.length;
  const s = new StubCode(context, code);
  emit(s);
  s.finish();
}

/** Leaves for the host with status w0; x9 = thread, x17 = where to resume. The frame of the parked code begins at sp. */
function emitPark(s: StubCode): void {
  const thread = THREAD_REGISTER;
  s.add(SCRATCH, SP, -PARKED.FRAME);
  s.at(X.STR_X_U, SCRATCH2, SCRATCH, PARKED.RESUME);
  s.at(X.STR_X_U, CONTEXT_REGISTER, SCRATCH, PARKED.CONTEXT);
  s.at(X.LDR_X_U, SCRATCH2, thread, THREAD.GUEST_SP);
  s.at(X.STR_X_U, SCRATCH2, SCRATCH, PARKED.ENTRY_SP);
  s.at(X.STR_X_U, SCRATCH, thread, THREAD.GUEST_SP);
  s.at(X.STR_X_U, CONTEXT_REGISTER, thread, THREAD.PARK_CONTEXT);
  s.at(X.STR_W_U, 0, thread, THREAD.STATUS);
  s.returnToHost(thread);
}

function emitBuiltin(s: StubCode, row: BuiltinRow, index: number): void {
  if (row.name === "memory_move") emitMemoryMove(s);
  else if (row.name === "memory_set") emitMemorySet(s);
  else if (row.native) throw new Error(`Builtin "${row.name}" has no machine code`);
  else {
    const signature = { params: Uint8Array.from(row.params), results: Uint8Array.from(row.results) };
    emitParkingThunk(s, signature, STATUS.BUILTIN, (to) => s.constant(to, BigInt(index)));
  }
}
