/**
 * Salvages the usable part of an invalid lockfile: one with conflict markers, edits or damage.
 *
 * In: the file's text and the findings of the strict parse. Out: the entries that are valid individually (digest,
 * seal and shape), marked as reviewed only when their review digest still holds. Between the two sides of a merge,
 * equal entries are kept and differing entries are left to be resolved again. Grants are never merged: where they
 * differ, the user reviews them again. Only `waft add` uses this file; everything that runs plugins reads strictly.
 */
import { checkDefinition, definitionDigest } from "../definitions/definition.ts";
import { reachOf } from "../definitions/contracts.ts";
import { findAuthority, scopeSchema } from "../definitions/authorities.ts";
import { jcs } from "../base/integrity.ts";
import { isObject, type JsonValue, readJson } from "../base/json_read.ts";
import { type LockedPackage, type LockedPlugin, type Lockfile, LOCKFILE_SCHEMA } from "./lock_schema.ts";
import { MAX_LOCK_BYTES } from "./lockfile.ts";
import { reviewDigest, type Reviewed, sealPackage } from "./review.ts";
import { walkSchema } from "../base/schema_walk.ts";
import { WASI_GROUP_NAMES } from "../definitions/wasi_groups.ts";

/** The previous state that `add` builds on. */
export interface Previous {
  /** Versions to keep, by package id. */
  readonly packages: { readonly [id: string]: LockedPackage };
  readonly plugins: { readonly [id: string]: LockedPlugin };
  readonly guest: { readonly [namespace: string]: string };
  /** Groups of WASI that guests may use; absent: all. */
  readonly wasi?: readonly string[];
  /** Decisions that still count. */
  readonly reviewed: ReadonlyMap<string, Reviewed>;
}

/** Nothing to build on. */
export const NO_PREVIOUS: Previous = { packages: {}, plugins: {}, guest: {}, reviewed: new Map() };

/** The state of a valid lockfile. */
export function fromLockfile(lock: Lockfile): Previous {
  return collect(lock.packages, lock.plugins, lock.guest.bindings, lock.guest.wasi);
}

/** Salvages entries from bytes that the strict parse rejected. */
export function salvage(bytes: Uint8Array): Previous {
  const reading = readJson(bytes, { file: "", codes: "lock", maxBytes: MAX_LOCK_BYTES });
  if (!reading.ok) return reading.text === undefined ? NO_PREVIOUS : mergeConflict(reading.text);
  return fromValue(reading.document.value);
}

/** The two sides of a text with conflict markers (of any style, diff3 too). */
export function conflictSides(text: string): [string, string] {
  const sides: [string[], string[]] = [[], []];
  let state: "both" | "ours" | "base" | "theirs" = "both";
  for (const line of text.split("\n")) {
    if (/^<{7}(?: |\r?$)/.test(line)) state = "ours";
    else if (/^\|{7}(?: |\r?$)/.test(line) && state === "ours") state = "base";
    else if (/^={7}\r?$/.test(line) && state !== "both") state = "theirs";
    else if (/^>{7}(?: |\r?$)/.test(line)) state = "both";
    else {
      if (state === "both" || state === "ours") sides[0].push(line);
      if (state === "both" || state === "theirs") sides[1].push(line);
    }
  }
  return [sides[0].join("\n"), sides[1].join("\n")];
}

function mergeConflict(text: string): Previous {
  const [ours, theirs] = conflictSides(text).map((side) => {
    const reading = readJson(new TextEncoder().encode(side), { file: "", codes: "lock", maxBytes: MAX_LOCK_BYTES });
    return reading.ok ? fromValue(reading.document.value) : undefined;
  });
  if (ours === undefined || theirs === undefined) return ours ?? theirs ?? NO_PREVIOUS;
  const packages = agree(ours.packages, theirs.packages);
  const plugins = agree(ours.plugins, theirs.plugins);
  // A group removed on either side is removed.
  const wasi = ours.wasi === undefined ? theirs.wasi : ours.wasi.filter((g) => theirs.wasi?.includes(g) ?? true);
  const merged = collect(packages, plugins, agree(ours.guest, theirs.guest), wasi);
  const reviewed = new Map(merged.reviewed);
  for (const [id, before] of ours.reviewed) {
    // Two versions under the same decision: the decision stays, the version is resolved again.
    const other = theirs.reviewed.get(id);
    if (!reviewed.has(id) && other !== undefined && decision(before) === decision(other)) reviewed.set(id, before);
  }
  return { ...merged, reviewed };
}

/** The same state without the decisions about these plugins. */
export function withoutDecisions(previous: Previous, ids: Iterable<string>): Previous {
  const reviewed = new Map(previous.reviewed);
  for (const id of ids) {
    const before = reviewed.get(id);
    if (before !== undefined) reviewed.set(id, { ...before, intact: false, unaccepted: true });
  }
  return { ...previous, reviewed };
}

function decision(r: Reviewed): string {
  const { definition, grants, denied } = r.plugin;
  return jcs([
    r.intact,
    definition.authorities,
    grants,
    denied,
    r.package.publisher ?? null,
    r.package.source,
    r.reach,
  ]);
}

/** Entries present on one side only, or equal on both. */
function agree<T>(a: { readonly [id: string]: T }, b: { readonly [id: string]: T }): { [id: string]: T } {
  const both: { [id: string]: T } = Object.create(null);
  for (const id of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const [x, y] = [a[id], b[id]];
    if (x !== undefined && y !== undefined && jcs(x) !== jcs(y)) continue;
    both[id] = x ?? y;
  }
  return both;
}

function fromValue(value: JsonValue): Previous {
  if (!isObject(value)) return NO_PREVIOUS;
  const rules = LOCKFILE_SCHEMA.definitions!;
  const good = (entry: JsonValue, name: string): boolean =>
    walkSchema(entry, { ...rules[name], definitions: rules }, { limit: 1 }).length === 0;
  const packages: { [id: string]: LockedPackage } = Object.create(null);
  const plugins: { [id: string]: LockedPlugin } = Object.create(null);
  if (isObject(value.packages)) {
    for (const [id, entry] of Object.entries(value.packages)) {
      if (!good(id, "pluginID") || !good(entry, "package")) continue;
      const locked = entry as unknown as LockedPackage;
      if (sealPackage(id, locked) === locked.seal) packages[id] = locked;
    }
  }
  if (isObject(value.plugins)) {
    for (const [id, entry] of Object.entries(value.plugins)) {
      if (!good(id, "pluginID") || !good(entry, "plugin")) continue;
      const locked = entry as unknown as LockedPlugin;
      const sound = checkDefinition(locked.definition as unknown as JsonValue, "", false).length === 0 &&
        locked.definition.id === id && definitionDigest(locked.definition) === locked.definitionDigest &&
        packages[locked.package] !== undefined && grantsHaveShape(locked);
      if (sound) plugins[id] = locked;
    }
  }
  const guest = isObject(value.guest) && isObject(value.guest.bindings) ? value.guest.bindings : {};
  const strings = Object.entries(guest).filter((pair): pair is [string, string] => typeof pair[1] === "string");
  const groups = isObject(value.guest) ? value.guest.wasi : undefined;
  // A damaged list keeps its readable entries, and never becomes "all".
  const wasi = groups === undefined
    ? undefined
    : WASI_GROUP_NAMES.filter((name) => Array.isArray(groups) && groups.includes(name));
  return collect(packages, plugins, Object.fromEntries(strings), wasi);
}

function grantsHaveShape(plugin: LockedPlugin): boolean {
  return Object.entries(plugin.grants).every(([name, scope]) => {
    const known = findAuthority(name);
    return known !== undefined && walkSchema(scope, scopeSchema(known.scope, "grant"), { limit: 1 }).length === 0;
  });
}

function collect(
  packages: { readonly [id: string]: LockedPackage },
  plugins: { readonly [id: string]: LockedPlugin },
  guest: { readonly [namespace: string]: string },
  wasi?: readonly string[],
): Previous {
  const reviewed = new Map<string, Reviewed>();
  for (const [id, plugin] of Object.entries(plugins)) {
    const pack = packages[plugin.package];
    if (pack === undefined) continue;
    // The seal covers nothing that is not resolved and checked again, so only the review decides.
    const intact = reviewDigest(id, plugin, pack.publisher, plugins) === plugin.review;
    reviewed.set(id, { plugin, package: pack, reach: reachOf(id, plugins), intact });
  }
  return { packages, plugins, guest, reviewed, ...(wasi === undefined ? {} : { wasi }) };
}
