/**
 * Validates plugin identifiers on command lines; the error suggests the likely meaning. Separate from base/grammar.ts,
 * which does not depend on errors.
 */
import { fail, quote } from "../base/diagnostic.ts";
import { explainPluginId, MAX_PLUGIN_ID } from "../base/grammar.ts";

/** Throws unless `id` is a plugin identifier; for command lines. */
export function requirePluginId(id: string): void {
  const wrong = explainPluginId(id);
  if (wrong !== undefined) {
    throw fail("usage.plugin-id", `${quote(id.slice(0, MAX_PLUGIN_ID))} is not a plugin id: ${wrong.reason}`, {
      help: wrong.help,
    });
  }
}
