/**
 * Registers that functions write, callees included, found in their bytes: a caller may keep values in the others across
 * a call. In: the code of all functions. Out: a mask of general registers per function. Registers of the convention
 * (stack pointer, context, memory) are not in it: the rules prove that every function preserves them.
 *
 * Also the locations that a loop writes, as a hint: the verifier gives up their bounds before it interprets the loop.
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

/** The registers that instruction `n` writes; `masks`: those that functions write. */
function writesOf(machine: Machine, code: Instructions, map: CodeMap, masks: Int32Array, n: number): number {
  const kind = code.kind[n];
  if (kind === KIND.CALL) return calleeWrites(machine, map, masks, code.at[n + 1] + code.immediate[n]);
  if (kind === KIND.CALL_INDIRECT) return machine.allWritten;
  return kind === KIND.BRANCH || kind === KIND.JUMP ? 0 : machine.written(code, n);
}

function calleeWrites(machine: Machine, map: CodeMap, masks: Int32Array, target: number): number {
  const callee = map.functionAt(target);
  return callee >= 0 ? masks[callee] : stubWrites(machine, KIND.CALL, map.stubAt(target));
}

/** The locations that ranges of instructions write: those of one function. */
export class LoopWrites {
  #registers: Int32Array = new Int32Array(1024);
  /** Instructions that move a value to the frame, ascending. */
  readonly #spills: number[] = [];
  #isRead = false;

  /** Begins another function. */
  begin(): void {
    this.#isRead = false;
  }

  /** Reads the function on first use. */
  read(machine: Machine, code: Instructions, map: CodeMap, masks: Int32Array): void {
    if (this.#isRead) return;
    this.#isRead = true;
    if (code.count > this.#registers.length) this.#registers = new Int32Array(code.count * 2);
    this.#spills.length = 0;
    for (let n = 0; n < code.count; n++) {
      this.#registers[n] = writesOf(machine, code, map, masks, n);
      if (code.isSpill(n, machine.stackPointer)) this.#spills.push(n);
    }
  }

  /** The registers that instructions `first` … `last` write. */
  registers(first: number, last: number): number {
    let mask = 0;
    for (let n = first; n <= last; n++) mask |= this.#registers[n];
    return mask;
  }

  /** Calls `action` with those of the instructions `first` … `last` that move a value to the frame. */
  eachSpill(first: number, last: number, action: (n: number) => void): void {
    for (const n of this.#spills) {
      if (n > last) return;
      if (n >= first) action(n);
    }
  }
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
