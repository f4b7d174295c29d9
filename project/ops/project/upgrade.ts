/**
 * `init --upgrade`: converts a manifest of schema v0 to v1.
 *
 * In: a `waft.json` whose `$schema` names v0 and whose plugin keys may be short (`<org>/<name>`). Out: the same
 * text with the address of the v1 schema and full keys; formatting is preserved. The host of a short key is asked for
 * or given, never guessed.
 */
import { join } from "node:path";
import { applyEdits, modify, parse } from "jsonc-parser";
import { writeTogether } from "../../base/atomic_write.ts";
import { fail, ProjectError } from "../../base/diagnostic.ts";
import type { Files } from "../../base/files.ts";
import { isPluginId } from "../../base/grammar.ts";
import { isObject, type JsonObject, readJson } from "../../base/json_read.ts";
import { checkManifest, MAX_MANIFEST_BYTES } from "../../manifest/manifest.ts";
import { MANIFEST_FILE, MANIFEST_SCHEMA } from "../../base/constants.ts";

/** The changes of an upgrade. */
export interface UpgradeResult {
  readonly changes: readonly string[];
  readonly written: readonly string[];
}

/** Upgrades the manifest in a directory. */
export async function upgradeManifest(
  root: string,
  files: Files,
  options: {
    readonly host?: string;
    readonly ask?: (key: string) => Promise<string | undefined>;
    readonly dryRun?: boolean;
  },
): Promise<UpgradeResult> {
  const before = await files.read(join(root, MANIFEST_FILE), MAX_MANIFEST_BYTES);
  if (before === undefined) throw fail("project.missing", `${root} has no ${MANIFEST_FILE}`);
  const reading = readJson(before, { file: MANIFEST_FILE, codes: "manifest", maxBytes: MAX_MANIFEST_BYTES });
  if (!reading.ok) throw new ProjectError(reading.diagnostics);
  const { value, duplicates } = reading.document;
  if (duplicates.length > 0) throw new ProjectError(duplicates);
  if (!isObject(value)) throw fail("manifest.type", "the manifest must be an object", { file: MANIFEST_FILE });
  const changes: string[] = [];
  let { text } = reading.document;
  const style = { formattingOptions: { insertSpaces: true, tabSize: 2 } };
  if (typeof value.$schema === "string" && value.$schema !== MANIFEST_SCHEMA) {
    text = applyEdits(text, modify(text, ["$schema"], MANIFEST_SCHEMA, style));
    changes.push(`$schema: ${value.$schema.slice(0, 200)} -> ${MANIFEST_SCHEMA}`);
  }
  const plugins = isObject(value.plugins) ? value.plugins : {} as JsonObject;
  const renamed = new Map<string, string>();
  for (const key of Object.keys(plugins)) {
    if (isPluginId(key)) continue;
    const host = options.host ?? await options.ask?.(key);
    if (host === undefined) {
      throw fail("usage.host", `the plugin key ${JSON.stringify(key)} needs a host`, {
        help: "pass --host github.com, or run it at a terminal",
      });
    }
    const full = `${host}/${key}`;
    if (!isPluginId(full)) throw fail("usage.host", `${JSON.stringify(full)} is not a plugin id`);
    if (full in plugins || [...renamed.values()].includes(full)) throw fail("usage.host", `${full} would appear twice`);
    renamed.set(key, full);
    changes.push(`${key} -> ${full}`);
  }
  if (renamed.size > 0) {
    const { plugins: old } = parse(text) as { readonly plugins: { readonly [key: string]: string } };
    const full = Object.fromEntries(Object.entries(old).map(([key, range]) => [renamed.get(key) ?? key, range]));
    text = applyEdits(text, modify(text, ["plugins"], full, style));
  }
  if (changes.length === 0) return { changes, written: [] };
  const bytes = new TextEncoder().encode(text);
  const checked = await checkManifest(bytes);
  if (checked.read === undefined) throw new ProjectError(checked.diagnostics);
  if (options.dryRun === true) return { changes, written: [] };
  await writeTogether(root, [{ name: MANIFEST_FILE, bytes, before: { bytes: before } }], { files });
  return { changes, written: [MANIFEST_FILE] };
}
