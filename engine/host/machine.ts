/**
 * The machine that this process runs on, as the JavaScript runtime describes it. In: the globals of Deno or Node. Out:
 * the system and the processor, or an Error with one sentence about the obstacle. Node and Bun do not say which C
 * library they use, so the name of the dynamic linker in their executable decides.
 */
import { nodeModule } from "./process.ts";
import { isBigEndian, type SupportedMachine, supportedMachine } from "./systems/systems.ts";
import { ownBun, ownDeno as own } from "./globals.ts";

/** The first bytes of an executable, which contain the path of its dynamic linker. */
const HEADER_BYTES = 4096;

/** This machine. Throws an Error where the engine does not run. */
export function thisMachine(): SupportedMachine {
  if (own !== undefined) {
    const { os, arch, env: libc } = own.build;
    return supportedMachine({ os, arch, bigEndian: isBigEndian(), libc });
  }
  const { platform: os, arch, execPath } = process;
  return supportedMachine({ os, arch, bigEndian: isBigEndian(), libc: os === "linux" ? libcOf(execPath) : undefined });
}

/** Whether servers of this JavaScript runtime can listen on a descriptor that the process has inherited. */
export function listensOnDescriptors(): boolean {
  return ownBun === undefined;
}

/** Waft's support for a machine. */
export interface MachineSupport {
  /** `untested`: the engine should run, but has not been run there by its authors. */
  readonly state: "supported" | "untested" | "unsupported";
  /** One sentence for the user; empty for `supported`. */
  readonly detail: string;
}

/** Waft's support for this machine; `machine` describes it or throws. */
export function machineSupport(machine: () => SupportedMachine = thisMachine): MachineSupport {
  try {
    const { system, arch } = machine();
    if (system.isProven) return { state: "supported", detail: "" };
    const where = `${system.title} for ${arch}`;
    if (system.emulatedBy === undefined) {
      return { state: "untested", detail: `not run by us on this system (${where})` };
    }
    return { state: "untested", detail: `run by us under ${system.emulatedBy} only (${where})` };
  } catch (error) {
    return { state: "unsupported", detail: (error as Error).message };
  }
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
export function libcOfHeader(header: Uint8Array<ArrayBuffer>): "musl" | "gnu" {
  // A search in native code: Node runs its decoder of Latin-1 as JavaScript, cold at this point.
  return nodeModule("node:buffer").Buffer.from(header.buffer).includes("/ld-musl-") ? "musl" : "gnu";
}
