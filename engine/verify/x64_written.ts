/**
 * Registers that functions write, callees included, found in their bytes: a caller may keep values in the others across
 * a call. In: the code of all functions. Out: a mask of general registers per function. Registers of the convention
 * (stack pointer, context, memory) are not in it: rules prove them for every function.
 */
import { type CodeMap, STUB_KIND, stubKind } from "./code_map.ts";
import type { MachineModule } from "./machine_module.ts";
import { decodeX64, OPERANDS, X64Instructions } from "./x64_decoder.ts";
import { KIND } from "./x64_forms.ts";

/** Every register that a call may change: all but rsp, rbx and r15. */
export const ALL_WRITTEN = 0xffff & ~((1 << 4) | (1 << 3) | (1 << 15));

/** The general registers that instruction `n` writes itself. */
function written(code: X64Instructions, n: number): number {
  const { kind, operands, reg, rm } = code;
  const own = rm[n] >= 0 ? 1 << rm[n] : 0;
  switch (kind[n]) {
    case KIND.COMPARE:
    case KIND.TEST:
    case KIND.PUSH:
    case KIND.VECTOR:
    case KIND.VECTOR_FROM_GENERAL:
    case KIND.VECTOR_STORE:
    case KIND.NOP:
    case KIND.DATA:
      return 0;
    case KIND.WIDE_ARITHMETIC:
    case KIND.SIGN_OF_RAX:
      return 0b101;
    case KIND.FILL:
      return 0b10000010;
    case KIND.EXCHANGE:
    case KIND.EXCHANGE_ADD:
      return own | (1 << reg[n]);
    case KIND.COMPARE_EXCHANGE:
      return own | 1;
    case KIND.VECTOR_TO_GENERAL:
      return own;
  }
  const isRegister = operands[n] === OPERANDS.R_M || operands[n] === OPERANDS.OPCODE;
  return isRegister ? 1 << reg[n] : own;
}

/** A mask of registers per defined function. */
export function writtenRegisters(module: MachineModule, map: CodeMap): Int32Array {
  const { bytes, tables: { functionStart, functionEnd }, replaceable } = module;
  const count = functionStart.length;
  const masks = new Int32Array(count);
  const callers: number[][] = Array.from({ length: count }, () => []);
  const code = new X64Instructions();
  for (let f = 0; f < count; f++) {
    masks[f] = ALL_WRITTEN;
    if (functionStart[f] < 0 || replaceable?.[f] === 1) continue;
    // Bytes that are not an instruction change nothing: verification fails if control reaches them.
    code.begin(functionStart[f], functionEnd[f]);
    map.eachReturn(functionStart[f], functionEnd[f], (offset) => code.mark(offset));
    decodeX64(bytes, functionStart[f], functionEnd[f], code);
    masks[f] = ownWrites(code, map, f, callers);
  }
  propagate(masks, callers);
  return masks;
}

/** The registers that the decoded function `f` writes itself; notes it as a caller of the functions that it calls. */
function ownWrites(code: X64Instructions, map: CodeMap, f: number, callers: number[][]): number {
  let mask = 0;
  for (let n = 0; n < code.count; n++) {
    switch (code.kind[n]) {
      case KIND.CALL_INDIRECT:
      case KIND.JUMP_INDIRECT:
        if (code.rm[n] < 0) mask = ALL_WRITTEN;
        break;
      case KIND.JUMP:
      case KIND.CALL: {
        const target = code.at[n + 1] + code.immediate[n];
        const callee = map.functionAt(target);
        if (callee >= 0) callers[callee].push(f);
        else if (map.stubAt(target) >= 0) mask |= stubWrites(code.kind[n], map.stubAt(target));
        break;
      }
      default:
        mask |= written(code, n);
    }
  }
  return mask & ALL_WRITTEN;
}

/** Registers that a native builtin writes, which is called; builtins that park are jumped to, and write all. */
export const NATIVE_WRITES = 0b1111000111;

function stubWrites(kind: number, stub: number): number {
  if (kind === KIND.JUMP) return ALL_WRITTEN;
  switch (stubKind(stub)) {
    case STUB_KIND.TRAP:
      return 0; // does not return
    case STUB_KIND.ALLOCATE:
      return 1 << 11;
  }
  return NATIVE_WRITES;
}

/** Adds the registers of callees to those of their callers. */
function propagate(masks: Int32Array, callers: readonly number[][]): void {
  const pending = Array.from(masks.keys());
  for (let f = pending.pop(); f !== undefined; f = pending.pop()) {
    for (const caller of callers[f]) {
      const more = masks[caller] | masks[f];
      if (more === masks[caller]) continue;
      masks[caller] = more;
      pending.push(caller);
    }
  }
}
