/**
 * Attributes errors to plugins: an error that leaves a plugin names the plugin where it happened.
 *
 * In: the exception of a call into a plugin. Out: a trap with the plugin's name, unless the guest, or a plugin
 * further in, caused it. Invariant: no error that leaves a plugin can be caught by WebAssembly code, and an exit of the
 * guest passes through unchanged.
 */
import { Bug, ExhaustionError, LinkError, TrapError, WasmException } from "@waft/engine";
import { isUncatchable } from "@waft/engine/internal/errors";

const PLUGIN_OF = new WeakMap<object, string>();

/** The plugin in which a trap happened; undefined when it happened in no plugin. */
export function pluginOf(error: unknown): string | undefined {
  return typeof error === "object" && error !== null ? PLUGIN_OF.get(error) : undefined;
}

/** An exit of the guest, which passes through everything. */
export const isExit: (error: unknown) => boolean = isUncatchable;

/** The error that leaves a plugin: a trap with the plugin's name, unless a plugin further in or the guest caused it. */
export function attribute(id: string, error: unknown): unknown {
  if (error instanceof Bug || isExit(error) || pluginOf(error) !== undefined || GUEST_TRAPS.has(error as object)) {
    return error;
  }
  let trap: TrapError;
  if (error instanceof ExhaustionError || isStackOverflow(error)) {
    const frames = error instanceof ExhaustionError ? error.frames : [];
    trap = new ExhaustionError(`call stack exhausted in plugin ${id}`, frames);
  } else if (error instanceof TrapError) trap = new TrapError(`${error.message} in plugin ${id}`, error.frames);
  else if (error instanceof WasmException) trap = new TrapError(`uncaught exception in plugin ${id}`);
  else if (isRefusal(error)) return error;
  else trap = new TrapError(`${error instanceof Error ? error.message : String(error)} in plugin ${id}`);
  PLUGIN_OF.set(trap, id);
  return trap;
}

/** Instantiation that failed before any code ran: limits and links, which plugin_host.ts words. */
function isRefusal(error: unknown): boolean {
  return error instanceof RangeError || error instanceof LinkError;
}

function isStackOverflow(error: unknown): boolean {
  return error instanceof RangeError && /call stack/i.test(error.message);
}

const GUEST_TRAPS = new WeakSet<object>();

/** Marks a trap of the guest, so that a plugin which it passes through is not blamed. */
export function markGuestTrap(error: unknown): unknown {
  if (error instanceof TrapError && pluginOf(error) === undefined) GUEST_TRAPS.add(error);
  return error;
}
