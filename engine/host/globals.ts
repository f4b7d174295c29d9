/** Globals of JavaScript that only some runtimes have. Out: each; undefined on the other runtimes. */

interface RuntimeGlobals {
  readonly Deno?: typeof Deno;
  readonly Bun?: { readonly isStandaloneExecutable?: boolean };
  readonly navigator?: { readonly hardwareConcurrency?: number };
}

const GLOBALS: RuntimeGlobals = globalThis;

/** The namespace of Deno. */
export const ownDeno: RuntimeGlobals["Deno"] = GLOBALS.Deno;

/** The namespace of Bun. */
export const ownBun: RuntimeGlobals["Bun"] = GLOBALS.Bun;

/** The number of threads that the machine runs at once, as browsers report it. */
export function reportedConcurrency(): number | undefined {
  return GLOBALS.navigator?.hardwareConcurrency;
}
