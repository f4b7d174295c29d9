/**
 * The authority that a lockfile gives, plugin by plugin, as digests that a user can accept.
 *
 * In: the packages, plugins and guest bindings of a lockfile. Out: one row per plugin that has a grant or acts
 * through a provider that has one, with a digest over its code and everything that decides its authority. Invariant:
 * two lockfiles give a plugin the same digest exactly when the same module acts with the same grants, providers and
 * callers. Configuration is left out: it changes a plugin's behaviour only within its grants. Plugins without authority
 * have no row: they compute, and reach nothing.
 */
import { reachOf } from "../definitions/contracts.ts";
import { worldRows } from "../definitions/world_rows.ts";
import { type Digest, digestJson } from "../base/integrity.ts";
import type { JsonObject } from "../base/json_read.ts";
import type { LockedPackage, LockedPlugin, LockedSource, Lockfile } from "./lock_schema.ts";
import { sortGrants } from "./review.ts";

/** The part of a lockfile that decides about authority. */
interface AuthorityState {
  readonly packages: { readonly [id: string]: LockedPackage };
  readonly plugins: { readonly [id: string]: LockedPlugin };
  /** Providers by the namespaces that guests may import. */
  readonly guest: { readonly [namespace: string]: string };
  /** Groups of WASI that guests may use; absent: all. */
  readonly wasi?: readonly string[];
}

/** A plugin that can do more than compute. */
export interface AuthorityHolder {
  readonly id: string;
  readonly version: string;
  readonly source: LockedSource;
  readonly publisher?: string;
  readonly grants: { readonly [name: string]: JsonObject };
  /** Grants of the plugins that it can act through. */
  readonly reach: { readonly [provider: string]: { readonly [name: string]: JsonObject } };
  /** Namespaces under which guests call it. */
  readonly guest: readonly string[];
  /** The world of a component, a line of WIT each with the authorities that open it. */
  readonly world?: readonly string[];
  readonly digest: Digest;
}

/** The part of a parsed lockfile that decides about authority. */
export function authorityState({ packages, plugins, guest }: Lockfile): AuthorityState {
  return { packages, plugins, guest: guest.bindings, ...(guest.wasi === undefined ? {} : { wasi: guest.wasi }) };
}

/** All plugins with authority, in code-unit order of their ids. */
export function authorityHolders(state: AuthorityState): AuthorityHolder[] {
  return Object.keys(state.plugins).sort().flatMap((id) => {
    const holder = holderOf(id, state);
    return holder === undefined ? [] : [holder];
  });
}

function holderOf(id: string, { packages, plugins, guest }: AuthorityState): AuthorityHolder | undefined {
  const plugin = plugins[id];
  const pack = packages[plugin.package];
  if (pack === undefined) return undefined;
  const reach: { [provider: string]: { [name: string]: JsonObject } } = Object.create(null);
  for (const [provider, grants] of Object.entries(reachOf(id, plugins))) {
    if (Object.keys(grants).length > 0) reach[provider] = sortGrants(grants);
  }
  if (Object.keys(plugin.grants).length === 0 && Object.keys(reach).length === 0) return undefined;
  const facts = {
    id,
    version: pack.version,
    source: pack.source,
    ...(pack.publisher === undefined ? {} : { publisher: pack.publisher }),
    grants: sortGrants(plugin.grants),
    reach,
    guest: Object.keys(guest).filter((namespace) => guest[namespace] === id).sort(),
    ...worldOf(plugin),
  };
  const bindings: { [namespace: string]: string[] } = Object.create(null);
  for (const namespace of Object.keys(plugin.bindings)) bindings[namespace] = [...plugin.bindings[namespace]].sort();
  const digest = digestJson({
    ...facts,
    package: plugin.package,
    artifact: pack.artifact,
    entry: plugin.entry,
    definitionDigest: plugin.definitionDigest,
    bindings,
  });
  return { ...facts, digest };
}

function worldOf({ definition }: LockedPlugin): { readonly world?: readonly string[] } {
  const rows = worldRows(definition);
  return rows.length === 0 ? {} : { world: rows.map(({ wit, note }) => note === "" ? wit : `${wit} (${note})`) };
}

/**
 * One digest over all holders, and over the groups of WASI that guests may use if the project removes any: the argument
 * that accepts them without a terminal.
 */
export function digestOfHolders(holders: readonly AuthorityHolder[], wasi?: readonly string[]): Digest {
  const digests = holders.map(({ id, digest }) => [id, digest] as const);
  // No id of a plugin is empty.
  return digestJson(Object.fromEntries(wasi === undefined ? digests : [...digests, ["", [...wasi].sort()]]));
}
