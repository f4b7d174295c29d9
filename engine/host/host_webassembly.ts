/**
 * The WebAssembly of the JavaScript runtime, for parts of the engine that it runs. Out: its constructors. Invariant:
 * they are captured when the engine is loaded, because the drop-in replaces the global object later.
 */

/** The constructors that the engine uses. */
export type HostWebAssembly = Pick<typeof WebAssembly, "Module" | "Instance" | "Memory">;

/**
 * Unused address space in bytes that the process must have before a memory is created. Hosts reserve up to 10 GiB for a
 * WebAssembly memory, or 4 GiB if that fails, and the program would then lack that space.
 */
export const MEMORY_ROOM = 16 * 2 ** 30;

/**
 * The host's WebAssembly; undefined if the host has none, or if another implementation, possibly this engine, has
 * replaced it.
 */
export const HOST_WEB_ASSEMBLY: HostWebAssembly | undefined = nativeWebAssembly();

function nativeWebAssembly(): HostWebAssembly | undefined {
  if (typeof WebAssembly !== "object") return undefined;
  const { Module, Instance, Memory } = WebAssembly;
  const isNative = Function.prototype.toString.call(Module).includes("[native code]");
  return isNative ? { Module, Instance, Memory } : undefined;
}

/** The result of `make`; undefined if the host refuses. */
export function unlessRefused<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}
