/**
 * The compiled form of the compiler that this thread uses, loaded when the first body is to be optimized. Out: the
 * compiler of bodies; none where the host has no WebAssembly, or refuses to instantiate it.
 */
import { currentHost } from "../host/current.ts";
import { HOST_WEB_ASSEMBLY, MEMORY_ROOM, unlessRefused } from "../host/host_webassembly.ts";
import { LateModule, SUFFIX } from "../host/late_module.ts";
import { hasAddressSpace } from "../host/memory/address_space.ts";
import type { PortableCompiler } from "./portable_compiler.ts";

const FORM: LateModule<typeof import("./portable_form.ts")> = new LateModule(
  new URL(`./portable_form.${SUFFIX}`, import.meta.url),
  () => import("./portable_form.ts"),
);

/** The maximum size in bytes of a memory that is kept: it would stay resident. */
const MAX_KEPT_BYTES = 1 << 26;

/** The compiler, once it has been requested; undefined if there is none. */
let compiler: { readonly found: PortableCompiler | undefined } | undefined;

/**
 * Must be called before {@linkcode compiledForm} where modules cannot be loaded synchronously. `isNeeded` loads the
 * form now, for threads that optimize: importing it takes Deno less time than `require`.
 */
export async function prepareCompiledForm(isNeeded = false): Promise<void> {
  await (isNeeded ? FORM.load() : FORM.prepare());
}

/** The compiler of bodies of this thread. */
export function compiledForm(): PortableCompiler | undefined {
  compiler ??= { found: unlessRefused(instantiate) };
  return compiler.found;
}

function instantiate(): PortableCompiler | undefined {
  if (HOST_WEB_ASSEMBLY === undefined || !hasAddressSpace(currentHost(), MEMORY_ROOM)) return undefined;
  return FORM.get().instantiateCompiler(HOST_WEB_ASSEMBLY);
}

/** Frees the compiler's memory if it is too large to be kept for the next module. */
export function freeLargeForm(): void {
  if (compiler?.found !== undefined && compiler.found.memoryBytes > MAX_KEPT_BYTES) compiler = undefined;
}

/** Whether this thread has used the form. */
export function usesCompiledForm(): boolean {
  return compiler?.found !== undefined;
}
