/**
 * The machine as Node and Bun describe it. In: the global `process`. Out: the system and the processor, or an Error
 * with one sentence about the obstacle. These runtimes do not say which C library they use, so the name of the dynamic
 * linker in their executable decides.
 */
import { nodeModule } from "./process.ts";
import { isBigEndian, type SupportedMachine, supportedMachine } from "./systems.ts";

/** The first bytes of an executable, which contain the path of its dynamic linker. */
const HEADER_BYTES = 4096;

/** The machine that this Node or Bun runs on. Throws an Error where the engine does not run. */
export function nodeMachine(): SupportedMachine {
  const { platform: os, arch, execPath } = process;
  return supportedMachine({ os, arch, bigEndian: isBigEndian(), libc: os === "linux" ? libcOf(execPath) : undefined });
}

/** The C library of an executable; undefined if it cannot be read. */
function libcOf(path: string): string | undefined {
  const { closeSync, openSync, readSync } = nodeModule("node:fs");
  try {
    const file = openSync(path, "r");
    const header = new Uint8Array(HEADER_BYTES);
    readSync(file, header, 0, HEADER_BYTES, 0);
    closeSync(file);
    return libcOfHeader(header);
  } catch {
    return undefined;
  }
}

/** The C library that the first bytes of an ELF executable name. */
export function libcOfHeader(header: Uint8Array): "musl" | "gnu" {
  return new TextDecoder("latin1").decode(header).includes("/ld-musl-") ? "musl" : "gnu";
}
