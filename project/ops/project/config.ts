/**
 * `waft config`: the settings of a project by name, as `features.simd`. In: a directory and names. Out: values with
 * their defaults and origins; changes of `waft.json`. Invariants: a change affects the lines of its key alone, and the
 * manifest remains valid; names that the manifest cannot have are listed only where flags set them.
 */
import { join } from "node:path";
import { writeTogether } from "../../base/atomic_write.ts";
import { MANIFEST_FILE } from "../../base/constants.ts";
import { type Diagnostic, fail, ProjectError, quote } from "../../base/diagnostic.ts";
import { DISK } from "../../base/files.ts";
import { nearestName } from "../../base/grammar.ts";
import { IMPLEMENTED } from "../../implemented_keys.ts";
import { checkManifest, MAX_MANIFEST_BYTES } from "../../manifest/manifest.ts";
import { editSetting } from "../../manifest/manifest_edit.ts";
import { FEATURES, OPTIMIZATIONS, RUNTIME_KEYS } from "../../manifest/setting_names.ts";
import { nearestSettings, type Provenance, resolveSettings } from "../../settings.ts";

type SettingValue = boolean | string;

/** A setting. */
export interface ConfigEntry {
  /** Its group and name in `settings` of the manifest, as `features.simd`. */
  readonly key: string;
  readonly value: SettingValue;
  readonly default: SettingValue;
  readonly from: Provenance;
}

/** The settings that apply in a directory. */
export interface Config {
  /** The manifest that takes part; null without a project. */
  readonly file: string | null;
  readonly entries: readonly ConfigEntry[];
  readonly diagnostics: readonly Diagnostic[];
}

/** All settings that apply in the directory `start`. */
export async function readConfig(start: string): Promise<Config> {
  const settings = resolveSettings(await nearestSettings(start), {}, IMPLEMENTED);
  const switches = (group: string, known: readonly { readonly name: string }[], rows: typeof settings.features) =>
    rows.filter(({ name }) => known.some((key) => key.name === name))
      .map(({ name, value, default: usual, from }) => ({ key: `${group}.${name}`, value, default: usual, from }));
  const runtime = RUNTIME_KEYS.map(({ name, default: usual }): ConfigEntry => {
    const key = `runtime.${name}`;
    if (name === "parallel") {
      return { key, value: String(settings.parallel.value), default: usual, from: settings.parallel.from };
    }
    const { value, from } = settings.deferredBoundsChecking;
    return { key, value, default: usual === "true", from };
  });
  return {
    file: settings.file ?? null,
    entries: [
      ...switches("features", FEATURES, settings.features),
      ...switches("optimizations", OPTIMIZATIONS, settings.optimizations),
      ...runtime,
    ],
    diagnostics: settings.diagnostics,
  };
}

/** The setting `key`. Throws a ProjectError for an unknown name. */
export function entryOf({ entries }: Config, key: string): ConfigEntry {
  const found = entries.find((entry) => entry.key === key);
  if (found !== undefined) return found;
  const near = nearestName(key, entries.map((entry) => entry.key));
  throw fail("usage.setting", `${quote(key)} is not a setting`, {
    help: near === undefined ? "`waft config list` shows all settings" : `did you mean ${near}?`,
  });
}

/** Sets a value in the manifest of the project at `root`, or removes it. Returns false if nothing changes. */
export async function changeConfig(
  root: string,
  entry: ConfigEntry,
  text: string | undefined,
  dryRun: boolean,
): Promise<boolean> {
  const path = join(root, MANIFEST_FILE);
  const before = await DISK.read(path, MAX_MANIFEST_BYTES);
  if (before === undefined) throw fail("project.missing", `${root} has no ${MANIFEST_FILE}`);
  const old = await checkManifest(before, path);
  if (old.read === undefined) throw new ProjectError(old.diagnostics);
  const [group, ...name] = entry.key.split(".");
  const value = text === undefined ? undefined : valueOf(entry, text);
  const changed = editSetting(new TextDecoder().decode(before), group, name.join("."), value);
  const bytes = new TextEncoder().encode(changed);
  const checked = await checkManifest(bytes, path);
  if (checked.read === undefined) throw new ProjectError(checked.diagnostics);
  if (changed === new TextDecoder().decode(before)) return false;
  if (!dryRun) await writeTogether(root, [{ name: MANIFEST_FILE, bytes, before: { bytes: before } }], { files: DISK });
  return true;
}

const SWITCHES: Readonly<Record<string, boolean>> = { on: true, true: true, off: false, false: false };

/** The value that a text stands for. */
function valueOf({ key, default: usual }: ConfigEntry, text: string): SettingValue {
  if (typeof usual === "string") return text;
  if (!Object.hasOwn(SWITCHES, text)) throw fail("usage.setting", `${key} takes on or off, not ${quote(text)}`);
  return SWITCHES[text];
}

/** The text of a value. */
export function valueText(value: SettingValue): string {
  return typeof value === "string" ? value : value ? "on" : "off";
}
