/**
 * Layouts of the process stubs as data, and the shape of emitted code, on any host: signal contexts of Linux
 * and macOS, entry points that are instructions, long branches, and selected code of small functions.
 */
import { optimizationSet } from "../settings/optimizations.ts";
import { Statistics } from "../base/statistics.ts";
import { equal, match, ok, throws } from "node:assert/strict";
import { allocateRegisters } from "../regalloc/allocate.ts";
import { Allocation } from "../codegen/allocation.ts";
import { checkAllocation } from "../regalloc/check_allocation.ts";
import { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import { VCode } from "../codegen/vcode.ts";
import { layoutContext } from "../abi/context_layout.ts";
import { parseFunction } from "../ir/parse.ts";
import { instructionText } from "./disassemble.ts";
import { labelOffset } from "../codegen/branch_relaxation.ts";
import { X } from "./instructions.ts";
import { buildCacheMaintenance, buildProcessStubs, SIGNALS } from "./process_stubs.ts";
import { StubCode } from "./stub_code.ts";
import { OPTIMIZING_ARM64 as ARM64 } from "./optimizing_target.ts";

function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}

/** Compiles one function and lists it. */
function listing(text: string): string {
  const f = parseFunction(text);
  const signatures = [f.signature];
  const context: CodegenContext = {
    layout: layoutContext({ memories: 1, tables: 0, globals: 0, importedFuncs: 0, definedFuncs: 1, types: 1 }),
    explicitBounds: false,
    signatures,
    functionSignature: Int32Array.of(0),
    optimizations: optimizationSet(),
    statistics: new Statistics(),
    cpu: new Set(),
    stackFence: true,
  };
  const code = new MachineCode(1, 1);
  ARM64.emitStubs(context, code);
  const backend = ARM64.functionBackend();
  const v = new VCode();
  const allocation = new Allocation();
  backend.select(f, v, context, code);
  allocateRegisters(v, ARM64.registers(false), context.optimizations, allocation, context.statistics);
  equal(checkAllocation(v, ARM64.registers(false), allocation).join(), "");
  backend.emit(v, allocation, context, code, 0);
  ARM64.relocate(code);
  return ARM64.disassemble(code.bytes, code.functionStart[0], code.functionEnd[0]);
}

Deno.test("buildProcessStubs() gives entry points of instructions on both systems", () => {
  for (const os of ["linux", "darwin"]) {
    const stubs = buildProcessStubs(os);
    for (
      const at of [stubs.call, stubs.resume, stubs.trapExit, stubs.tailReturn, stubs.faultHandler, stubs.faultLanding]
    ) {
      equal(at % 4, 0);
      ok(!instructionText(wordAt(stubs.bytes, at)).startsWith(".word"));
    }
    equal(stubs.faultWords % 8, 0);
    equal(stubs.bytes.length, stubs.faultWords + 32);
  }
  throws(() => buildProcessStubs("plan9"), RangeError);
});

Deno.test("the signal contexts are those of the systems' headers", () => {
  // Linux: struct ucontext ends at 168, sigcontext is aligned to 16 and begins with fault_address.
  const registers = 176 + 8;
  equal(SIGNALS.linux.x28, registers + 28 * 8);
  equal(SIGNALS.linux.x30, registers + 30 * 8);
  equal(SIGNALS.linux.sp, registers + 31 * 8);
  equal(SIGNALS.linux.pc, registers + 32 * 8);
  // macOS: exception state (far, esr, exception) of 16 bytes, x0-x28, fp, lr, sp, pc.
  equal(SIGNALS.darwin.x28, 16 + 28 * 8);
  equal(SIGNALS.darwin.x30, 16 + 30 * 8);
  equal(SIGNALS.darwin.sp, 16 + 31 * 8);
  equal(SIGNALS.darwin.pc, 16 + 32 * 8);
});

Deno.test("cache maintenance cleans, invalidates and synchronizes", () => {
  const bytes = buildCacheMaintenance();
  const text = ARM64.disassemble(bytes, 0, bytes.length);
  match(text, /mrs x2, CTR_EL0[^]*dc cvau, x4[^]*dsb ish[^]*ic ivau, x4[^]*dsb ish[^]*isb[^]*ret/);
});

Deno.test("a branch whose target is too far becomes the opposite branch over a long one", () => {
  const s = new StubCode();
  const near = s.newLabel();
  const far = s.newLabel();
  s.branchBit(X.TBZ, 3, 40, far);
  s.branchZero(X.CBZ32, 2, near);
  s.bind(near);
  for (let k = 0; k < 9000; k++) s.rrr(X.NOP, 0, 0, 0);
  s.bind(far);
  s.ret();
  s.finish();
  const { bytes, length } = s.code;
  equal(instructionText(wordAt(bytes, 0)), "tbnz x3, #40, #8");
  equal(instructionText(wordAt(bytes, 4)), `b #${labelOffset(s, far) - 4}`);
  equal(instructionText(wordAt(bytes, 8)), "cbz w2, #4");
  equal(instructionText(wordAt(bytes, length - 4)), "ret");
});

Deno.test("selection uses the instructions of arm64", () => {
  const multiply = listing(`func 0 (i64 i64 i64) -> (i64)
b0(v1:i64 v2:i64 v3:i64):
  v4:i64 = MUL v1 v2
  v5:i64 = ADD v3 v4
  RETURN (v5)
`);
  equal(multiply, "  madd x0, x0, x1, x2\n  ret\n");
  const load = listing(`func 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = LOAD memory0[v1]
  RETURN (v2)
`);
  equal(load, "  ldr w0, [x26, w0, uxtw]\n  ret\n");
  const shifted = listing(`func 0 (i32 i32) -> (i32)
b0(v1:i32 v2:i32):
  v3:i32 = CONST 3
  v4:i32 = SHL v2 v3
  v5:i32 = XOR v1 v4
  RETURN (v5)
`);
  equal(shifted, "  eor w0, w0, w1, lsl #3\n  ret\n");
});

Deno.test("an operand beside a constant is never folded", () => {
  for (const op of ["ADD", "SUB", "AND", "OR", "XOR", "EQ", "LT_S"]) {
    for (const inner of ["SHL", "SHR_U", "MUL"]) {
      for (const value of [255, 65537, -1]) {
        for (const operands of ["v4 v3", "v3 v4"]) {
          const text = listing(`func 0 (i32 i32) -> (i32)
b0(v1:i32 v2:i32):
  v6:i32 = CONST 3
  v4:i32 = ${inner} v1 v6
  v3:i32 = CONST ${value}
  v5:i32 = ${op} ${operands}
  RETURN (v5)
`);
          match(text, /ret\n$/);
        }
      }
    }
  }
});
