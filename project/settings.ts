/**
 * Resolves the settings of a run from the nearest manifest and the flags, each with its origin.
 *
 * In: a directory (or a manifest), flags, and the keys that this build implements. Out: features, optimizations
 * and runtime settings as plain data for the engine's options. Flags override the manifest, the manifest overrides the
 * defaults; the two names of one switch are equivalent. A key that is set but not implemented is reported, never
 * silently ignored.
 */
import { join } from "node:path";
import { type Diagnostic, fail, ProjectError, quote } from "./base/diagnostic.ts";
import { DISK, type Files } from "./base/files.ts";
import { nearestName } from "./base/grammar.ts";
import type { Settings } from "./manifest/manifest.ts";
import { findProject, projectJudge } from "./project_root.ts";
import { FEATURES, FLAG_FEATURES, FLAG_OPTIMIZATIONS, type SettingKey } from "./manifest/setting_names.ts";
import { MANIFEST_FILE } from "./base/constants.ts";

/** The origin of a value. */
export type Provenance = "default" | "manifest" | "flag";

/** A resolved switch. */
export interface ResolvedSwitch {
  readonly name: string;
  readonly value: boolean;
  readonly default: boolean;
  readonly from: Provenance;
  readonly meaning: string;
  /** False when this build does not implement the key. */
  readonly implemented: boolean;
}

/** All settings, resolved. */
export interface ResolvedSettings {
  /** The manifest that took part. */
  readonly file?: string;
  readonly features: readonly ResolvedSwitch[];
  readonly optimizations: readonly ResolvedSwitch[];
  /** Compiler threads: "auto" or a number. */
  readonly parallel: { readonly value: "auto" | number; readonly from: Provenance };
  readonly deferredBoundsChecking: { readonly value: boolean; readonly from: Provenance };
  readonly diagnostics: readonly Diagnostic[];
}

/** Switches given on the command line: `simd=off`, `inline=on`; `parallel` as text. */
export interface SettingFlags {
  readonly features?: readonly string[];
  readonly optimizations?: readonly string[];
  readonly parallel?: string;
  readonly deferredBoundsChecking?: boolean;
}

/** The keys that a build implements; an absent set means all. */
export interface ImplementedKeys {
  readonly features?: ReadonlySet<string>;
  readonly optimizations?: ReadonlySet<string>;
  /** Optimizations that are part of how the compiler works: they are always on. */
  readonly always?: ReadonlySet<string>;
}

/**
 * The settings of the nearest manifest; the settings are undefined without a project. Throws for an invalid manifest.
 */
export async function nearestSettings(
  start: string,
  files: Files = DISK,
): Promise<{ readonly file?: string; readonly settings?: Settings }> {
  const root = await findProject(start);
  if (root === undefined) return {};
  const file = join(root, MANIFEST_FILE);
  // Most runs have no project and need not wait for the manifest's reader to load.
  const { checkManifest, MAX_MANIFEST_BYTES } = await import("./manifest/manifest.ts");
  const bytes = await files.read(file, MAX_MANIFEST_BYTES, projectJudge(root, file));
  if (bytes === undefined) return {};
  const { read, diagnostics } = await checkManifest(bytes, file);
  if (read === undefined) throw new ProjectError(diagnostics);
  return { file, ...(read.manifest.settings === undefined ? {} : { settings: read.manifest.settings }) };
}

/** Resolves settings: defaults, then the manifest, then flags. */
export function resolveSettings(
  nearest: { readonly file?: string; readonly settings?: Settings },
  flags: SettingFlags = {},
  implemented: ImplementedKeys = {},
): ResolvedSettings {
  const { file, settings } = nearest;
  const diagnostics: Diagnostic[] = [];
  const group = (
    keys: readonly SettingKey[],
    set: { readonly [name: string]: boolean } | undefined,
    given: readonly string[] | undefined,
    flag: string,
    known: ReadonlySet<string> | undefined,
  ): ResolvedSwitch[] => {
    const chosen = parseSwitches(keys, given ?? [], flag);
    return keys.map((key) => {
      const names = key.alias === undefined ? [key.name] : [key.name, key.alias];
      const byFlag = names.map((n) => chosen.get(n)).find((v) => v !== undefined);
      const byManifest = names.map((n) => set !== undefined && Object.hasOwn(set, n) ? set[n] : undefined).find((v) =>
        v !== undefined
      );
      const ready = known === undefined || names.some((n) => known.has(n));
      const { default: usual, meaning } = key;
      const wanted = byFlag ?? byManifest ?? usual;
      const always = known !== undefined && known === implemented.optimizations && implemented.always?.has(key.name);
      const value = wanted || always === true;
      const from = byFlag !== undefined ? "flag" : byManifest !== undefined ? "manifest" : "default";
      const said = byFlag !== undefined ? chosen.has(key.name) : set !== undefined && Object.hasOwn(set, key.name);
      if (!ready && from !== "default" && said) {
        diagnostics.push({
          code: "settings.not-implemented",
          severity: "warning",
          message: `${key.name} is set to ${value ? "on" : "off"}, but this build does not implement it yet`,
          ...(from === "manifest" && file !== undefined ? { file } : {}),
        });
      }
      if (value !== wanted) {
        diagnostics.push({
          code: "settings.always-on",
          severity: "warning",
          message: `${key.name} is set to off, but is always on: the compiler requires it`,
          ...(from === "manifest" && file !== undefined ? { file } : {}),
        });
      }
      return { name: key.name, value, default: usual, from, meaning, implemented: ready };
    });
  };
  const runtime = settings?.runtime;
  const parallel = flags.parallel ?? runtime?.parallel;
  const threads = parseParallel(parallel);
  const deferred = flags.deferredBoundsChecking ?? runtime?.deferredBoundsChecking;
  return {
    ...(file === undefined ? {} : { file }),
    features: group(FLAG_FEATURES, settings?.features, flags.features, "--feature", implemented.features),
    optimizations: group(
      FLAG_OPTIMIZATIONS,
      settings?.optimizations,
      flags.optimizations,
      "--opt",
      implemented.optimizations,
    ),
    parallel: { value: threads, from: from(flags.parallel, runtime?.parallel) },
    deferredBoundsChecking: {
      value: deferred ?? true,
      from: from(flags.deferredBoundsChecking, runtime?.deferredBoundsChecking),
    },
    diagnostics,
  };
}

function from(flag: unknown, manifest: unknown): Provenance {
  return flag !== undefined ? "flag" : manifest !== undefined ? "manifest" : "default";
}

/** The switches that differ from their default or were set, as an object for the engine's options. */
export function changedSwitches(switches: readonly ResolvedSwitch[]): { [name: string]: boolean } {
  const set: { [name: string]: boolean } = {};
  for (const s of switches) if (s.from !== "default") set[s.name] = s.value;
  return set;
}

/** Settings in the form of the engine's options. */
export interface EngineSettings {
  readonly features: { readonly [name: string]: boolean };
  readonly optimizations: { readonly [name: string]: boolean };
  /** Guard pages instead of checks where possible, or explicit checks. */
  readonly bounds: "guard" | "explicit";
  readonly parallel: "auto" | number;
}

/** The settings that differ from the defaults, each switch under its first name. */
export function engineSettings(settings: ResolvedSettings): EngineSettings {
  const features = changedSwitches(settings.features);
  for (const { name, alias } of FEATURES) {
    // When a switch has two names, the engine knows the name that sorts first in the table.
    if (
      alias === undefined || !Object.hasOwn(features, name) ||
      FEATURES.findIndex((f) => f.name === alias) > FEATURES.findIndex((f) => f.name === name)
    ) continue;
    features[alias] = features[name];
    delete features[name];
  }
  return {
    features,
    optimizations: changedSwitches(settings.optimizations),
    bounds: settings.deferredBoundsChecking.value ? "guard" : "explicit",
    parallel: settings.parallel.value,
  };
}

function parseSwitches(keys: readonly SettingKey[], given: readonly string[], flag: string): Map<string, boolean> {
  const chosen = new Map<string, boolean>();
  for (const text of given) {
    const m = /^([^=]+)=(on|off|true|false)$/.exec(text);
    if (m === null) throw fail("usage.switch", `${flag} ${quote(text, 80)} must be NAME=on or NAME=off`);
    const name = m[1];
    const key = keys.find((k) => k.name === name);
    if (key === undefined) {
      const near = nearestName(name, keys.map((k) => k.name));
      throw fail(
        "usage.switch",
        `${flag}: unknown name ${quote(name, 80)}`,
        near === undefined ? {} : { help: `did you mean "${near}"?` },
      );
    }
    const value = m[2] === "on" || m[2] === "true";
    for (const n of [key.name, key.alias]) {
      if (n === undefined) continue;
      if (chosen.get(n) === !value) throw fail("usage.switch", `${flag}: ${name} is given both on and off`);
    }
    chosen.set(key.name, value);
  }
  return chosen;
}

function parseParallel(text: string | undefined): "auto" | number {
  if (text === undefined || text === "auto") return "auto";
  if (!/^[0-9]+$/.test(text)) throw fail("usage.parallel", `--parallel ${quote(text, 40)} must be auto or a number`);
  return Math.min(Number(text), 1024);
}
