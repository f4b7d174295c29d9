/**
 * Chooses the host interface for the current JavaScript runtime; creates one per realm, on first use.
 */
import { bunFfi } from "./runtimes/bun.ts";
import { provideReferences } from "./finalizers.ts";
import { denoFfi } from "./runtimes/deno.ts";
import type { Ffi } from "./runtimes/ffi.ts";
import type { Host } from "./host.ts";
import { posixHost } from "./systems/posix_host.ts";
import { nodeFfi } from "./runtimes/node.ts";
import { requireSelfTest } from "./self_check.ts";
import { systemParts } from "./systems/system_parts.ts";

/** The host of this realm, once it is needed. */
let host: Host | undefined;

/**
 * The host interface of this realm. Tests pass a function to the first call, to observe the FFI or to make it fail.
 * Throws an Error with a remedy when the runtime offers no FFI, and one with the reason when the self-test of a system
 * on which waft has not been run fails (self_check.ts).
 */
export function currentHost(wrap: (ffi: Ffi) => Ffi = (ffi) => ffi): Host {
  if (host === undefined) {
    const ffi = wrap(currentFfi());
    const made = (systemParts()?.host ?? posixHost)(ffi);
    if (!made.system.isProven) requireSelfTest(made);
    host = made;
    provideReferences(() => made.openReferences());
  }
  return host;
}

/** Deno and Bun also say that they are Node, so Node comes last. */
function currentFfi(): Ffi {
  if ((globalThis as { Deno?: unknown }).Deno !== undefined) return denoFfi();
  const { process } = globalThis as { process?: { versions?: Record<string, string> } };
  if (process?.versions?.["bun"] !== undefined) return bunFfi();
  if (process?.versions?.["node"] !== undefined) return nodeFfi();
  throw new Error("waft needs Deno with --allow-ffi, Node 20 or later, or Bun: this JavaScript runtime offers no FFI");
}
