/**
 * The compiled form of the compiler: its module, and instances of it on the host's WebAssembly. In: the host's
 * constructors. Out: compilers of bodies. Invariant: it is loaded when the first body is to be optimized
 * (late_form.ts).
 */
import { fromBase64 } from "../base/base64.ts";
import type { HostWebAssembly } from "../host/host_webassembly.ts";
import { nodeModule } from "../host/process.ts";
import type { CompilerExports } from "./compiler_interface.ts";
import { COMPILER } from "./generated/compiler.ts";
import { PortableCompiler } from "./portable_compiler.ts";

/** The module of the compiled form. */
export function compilerBytes(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(nodeModule("node:zlib").brotliDecompressSync(fromBase64(COMPILER)));
}

/** A compiler of bodies. Throws what the host throws if it refuses the module or its memory. */
export function instantiateCompiler({ Module, Instance }: HostWebAssembly): PortableCompiler {
  const { exports } = new Instance(new Module(compilerBytes()), { env: { afterPass() {} } });
  return new PortableCompiler(exports as unknown as CompilerExports);
}
