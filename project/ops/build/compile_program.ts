/**
 * Compiles the modules of applications. In: a module in binary or text form, and a machine. Out: an artifact that
 * single executables of waft load on that machine.
 *
 * Invariant: code that accesses shared memory has explicit bounds, because the JavaScript runtime of single executables
 * has no buffers that are as large as a reservation with guard pages.
 */
import { type EngineOptions, type Machine, NewEngine } from "@waft/engine";
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { WaftError } from "@waft/engine/internal/errors";
import { parseModule } from "@waft/engine/internal/text_format";

/** Compiles a module. Rejects with the errors of its compilation. */
export async function compileProgram(
  bytes: Uint8Array,
  machine: Machine,
  shown: Pick<EngineOptions, "progress"> = {},
): Promise<Uint8Array> {
  const bounds = hasSharedMemory(bytes) ? { bounds: "explicit" as const } : {};
  const engine = NewEngine({ tier: "optimizing", ...bounds, ...shown });
  return await engine.compileFor(machine, bytes);
}

/** Whether the module has a shared memory. False for an invalid one, whose error the compiler reports. */
function hasSharedMemory(bytes: Uint8Array): boolean {
  try {
    const { memories, imports } = bytes[0] === 0 ? decodeModule(bytes) : parseModule(bytes);
    return memories.some(({ shared }) => shared) ||
      imports.some(({ desc }) => desc.kind === "memory" && desc.type.shared);
  } catch (error) {
    if (error instanceof WaftError) return false;
    throw error;
  }
}
