/**
 * Registers that functions write, callees included, found in their bytes: a caller may keep values in the others across
 * a call. In: the code of all functions. Out: a mask of general registers per function. Registers of the convention
 * (stack pointer, context, memory) are not in it: the rules prove that every function preserves them.
 */
import { type CodeMap, STUB_KIND, stubKind } from "./code_map.ts";
import type { MachineModule } from "./machine_module.ts";
import { Instructions, KIND } from "./instructions.ts";
import type { Machine } from "./machine.ts";

/** A mask of registers per defined function. */
export function writtenRegisters(machine: Machine, module: MachineModule, map: CodeMap): Int32Array {
  const { bytes, tables: { functionStart, functionEnd }, replaceable } = module;
  const count = functionStart.length;
  const masks = new Int32Array(count);
  const callers: number[][] = Array.from({ length: count }, () => []);
  const code = new Instructions();
  for (let f = 0; f < count; f++) {
    masks[f] = machine.allWritten;
    if (functionStart[f] < 0 || replaceable?.[f] === 1) continue;
    // Bytes that are not an instruction change nothing: verification fails if control reaches them.
    code.begin(functionStart[f], functionEnd[f]);
    map.eachReturn(functionStart[f], functionEnd[f], (offset) => code.mark(offset));
    machine.decode(bytes, functionStart[f], functionEnd[f], code);
    masks[f] = ownWrites(machine, code, map, f, callers);
  }
  propagate(masks, callers);
  return masks;
}

/** The registers that the decoded function `f` writes itself; notes it as a caller of the functions that it calls. */
function ownWrites(
  machine: Machine,
  code: Instructions,
  map: CodeMap,
  f: number,
  callers: readonly number[][],
): number {
  let mask = 0;
  const { link, allWritten } = machine;
  const linkMask = link < 0 ? 0 : 1 << machine.locations.indexOf(link);
  for (let n = 0; n < code.count; n++) {
    switch (code.kind[n]) {
      case KIND.JUMP_INDIRECT:
        if (machine.jumpsInside(code, n)) break;
        return allWritten;
      case KIND.CALL_INDIRECT:
        return allWritten;
      case KIND.JUMP:
      case KIND.CALL: {
        const target = code.at[n + 1] + code.immediate[n];
        if (code.kind[n] === KIND.CALL) mask |= linkMask;
        const callee = map.functionAt(target);
        if (callee >= 0) callers[callee].push(f);
        else if (map.stubAt(target) >= 0) mask |= stubWrites(machine, code.kind[n], map.stubAt(target));
        break;
      }
      default:
        mask |= machine.written(code, n);
    }
  }
  return mask & allWritten;
}

/** Registers that a stub writes. Native builtins are called; those that park are jumped to, and write all. */
function stubWrites({ allWritten, allocateWrites, nativeWrites }: Machine, kind: number, stub: number): number {
  if (kind === KIND.JUMP) return allWritten;
  switch (stubKind(stub)) {
    case STUB_KIND.TRAP:
      return 0; // does not return
    case STUB_KIND.ALLOCATE:
      return allocateWrites;
  }
  return nativeWrites;
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
