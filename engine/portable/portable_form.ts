/**
 * The instance of the compiled form of the compiler that this thread uses, on the host's WebAssembly. Out: the compiler
 * of bodies; none where the host has no WebAssembly, or refuses to instantiate it. Invariant: only the
 * programs of Workers load this file.
 */
import { fromBase64 } from "../base/base64.ts";
import { currentHost } from "../host/current.ts";
import { HOST_WEB_ASSEMBLY, type HostWebAssembly, MEMORY_ROOM, unlessRefused } from "../host/host_webassembly.ts";
import { LateModule, SUFFIX } from "../host/late_module.ts";
import { hasAddressSpace } from "../host/memory/address_space.ts";
import { nodeModule } from "../host/process.ts";
import type { CompilerExports } from "./compiler_interface.ts";
import { PortableCompiler } from "./portable_compiler.ts";

const FILE: LateModule<{ readonly COMPILER: string }> = new LateModule(
  new URL(`./generated/compiler.${SUFFIX}`, import.meta.url),
  () => import("./generated/compiler.ts"),
);

// Imported at once: only threads that optimize load this file, and importing takes Deno less time than `require`.
await FILE.load();

/** The compiler, once it has been requested; undefined if there is none. */
let compiler: { readonly found: PortableCompiler | undefined } | undefined;

/** The module of the compiled form. */
export function compilerBytes(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(nodeModule("node:zlib").brotliDecompressSync(fromBase64(FILE.get().COMPILER)));
}

/** The compiler of bodies of this thread. */
export function portableCompiler(): PortableCompiler | undefined {
  compiler ??= { found: HOST_WEB_ASSEMBLY && unlessRefused(() => instantiate(HOST_WEB_ASSEMBLY!)) };
  return compiler.found;
}

function instantiate({ Module, Instance }: HostWebAssembly): PortableCompiler | undefined {
  if (!hasAddressSpace(currentHost(), MEMORY_ROOM)) return undefined;
  const { exports } = new Instance(new Module(compilerBytes()), { env: { afterPass() {} } });
  return new PortableCompiler(exports as unknown as CompilerExports);
}
