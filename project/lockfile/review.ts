/**
 * The scope of a review as a digest, and the changes since a review.
 *
 * In: a plugin with its grants and reach. Out: the `review` digest that the lockfile pins, the `seal` digests,
 * and the reasons for a new review. The digest is not keyed: it detects drift and hand edits, and anyone who can write
 * the lockfile can compute it. At run time the record on this machine decides (packages/trust_store.ts).
 */
import { findAuthority, requestWidened, widerThan } from "../definitions/authorities.ts";
import { type PluginSet, reachOf } from "../definitions/contracts.ts";
import { type Definition, normalizeDefinition, scopeOf, sortScope } from "../definitions/definition.ts";
import { newImports } from "../definitions/world_rows.ts";
import { type Digest, digestJson, jcs } from "../base/integrity.ts";
import type { JsonObject } from "../base/json_read.ts";
import { type LockedPackage, type LockedPlugin, originOf } from "./lock_schema.ts";

type Grants = { readonly [name: string]: JsonObject };

/** The digest over everything that a reviewer decided on. */
export function reviewDigest(
  id: string,
  plugin: { readonly definition: Definition; readonly grants: Grants; readonly denied: readonly string[] },
  publisher: string | undefined,
  plugins: PluginSet,
): Digest {
  const reach: JsonObject = Object.create(null);
  const providers = reachOf(id, plugins);
  for (const provider of Object.keys(providers)) reach[provider] = sortGrants(providers[provider]);
  return digestJson({
    id,
    kind: plugin.definition.kind,
    publisher: publisher ?? null,
    authorities: normalizeDefinition(plugin.definition).authorities,
    ...worldImports(plugin.definition),
    grants: sortGrants(plugin.grants),
    denied: [...plugin.denied].sort(),
    reach,
  });
}

/** The imports of a component, which reviews show; nothing for a module. */
function worldImports({ world }: Definition): { readonly imports?: string[] } {
  return world === undefined ? {} : { imports: [...world.imports].sort() };
}

/** A copy of grants with every list sorted. */
export function sortGrants(grants: Grants): { [name: string]: JsonObject } {
  const sorted: { [name: string]: JsonObject } = Object.create(null);
  for (const name of Object.keys(grants)) sorted[name] = sortScope(grants[name]);
  return sorted;
}

/** The seal of a package entry. */
export function sealPackage(id: string, entry: Omit<LockedPackage, "seal">): Digest {
  const { version, source, artifact, publisher } = entry;
  return digestJson({ id, version, source, artifact, publisher: publisher ?? null });
}

/** The seal of a plugin entry. It covers the fields that neither the definition's digest nor the review covers. */
export function sealPlugin(id: string, entry: Omit<LockedPlugin, "seal">): Digest {
  const bindings: { [namespace: string]: string[] } = Object.create(null);
  for (const namespace of Object.keys(entry.bindings)) bindings[namespace] = [...entry.bindings[namespace]].sort();
  return digestJson({
    id,
    package: entry.package,
    definitionDigest: entry.definitionDigest,
    entry: entry.entry,
    review: entry.review,
    bindings,
    config: entry.config,
  });
}

/** A reason for a review. */
export interface ReviewReason {
  readonly rule: "new" | "wider-request" | "publisher" | "registry" | "reach" | "edited" | "unaccepted" | "asked";
  readonly text: string;
}

/** The state that was reviewed before, as far as it can be trusted. */
export interface Reviewed {
  readonly plugin: LockedPlugin;
  readonly package: LockedPackage;
  readonly reach: { readonly [provider: string]: Grants };
  /** True when `review` and the seals were right, and the user of this machine accepted the outcome. */
  readonly intact: boolean;
  /** True when the user of this machine never accepted the lockfile's grants. */
  readonly unaccepted?: boolean;
}

/** The reasons to ask again; none means that the old decision still covers everything. */
export function reviewReasons(
  id: string,
  next: { readonly definition: Definition; readonly grants: Grants },
  nextPackage: { readonly publisher?: string; readonly source: LockedPackage["source"] },
  plugins: PluginSet,
  before: Reviewed | undefined,
): ReviewReason[] {
  const reasons: ReviewReason[] = [];
  const { authorities } = next.definition;
  const reach = reachOf(id, plugins);
  if (before === undefined) {
    if (authorities.length > 0) reasons.push({ rule: "new", text: "it is new in this project" });
    return [...reasons, ...reachReasons(reach, {})];
  }
  const old = before.plugin.definition.authorities;
  for (const request of authorities) {
    const was = old.find((a) => a.name === request.name);
    const kind = findAuthority(request.name)?.scope ?? "none";
    if (was === undefined) reasons.push({ rule: "wider-request", text: `it now asks for ${request.name}` });
    else if (requestWidened(kind, scopeOf(was), scopeOf(request))) {
      reasons.push({ rule: "wider-request", text: `it asks for a wider ${request.name}` });
    } else if (was.mode === "optional" && request.mode === "required" && before.plugin.denied.includes(request.name)) {
      reasons.push({ rule: "wider-request", text: `it now requires ${request.name}` });
    }
  }
  const imports = newImports(before.plugin.definition.world, next.definition.world);
  if (imports.length > 0) reasons.push({ rule: "wider-request", text: `it now imports ${imports.join(", ")}` });
  if (authorities.length > 0 || Object.keys(reach).length > 0) {
    if (before.package.publisher !== nextPackage.publisher) {
      reasons.push({
        rule: "publisher",
        text: `its publisher changed from ${before.package.publisher ?? "none"} to ${nextPackage.publisher ?? "none"}`,
      });
    }
    if (jcs(originOf(before.package.source)) !== jcs(originOf(nextPackage.source))) {
      reasons.push({ rule: "registry", text: "its source changed" });
    }
  }
  reasons.push(...reachReasons(reach, before.reach));
  if (before.unaccepted === true) {
    reasons.push({ rule: "unaccepted", text: "its grants in the lockfile were never accepted on this machine" });
  } else if (!before.intact) reasons.push({ rule: "edited", text: "its lockfile entry was edited by hand" });
  return reasons;
}

/** A reason for each grant of a provider that a plugin could not use before: it acts with the provider's authority. */
function reachReasons(reach: Reviewed["reach"], before: Reviewed["reach"]): ReviewReason[] {
  const reasons: ReviewReason[] = [];
  for (const provider of Object.keys(reach).sort()) {
    const was = before[provider];
    for (const name of Object.keys(reach[provider]).sort()) {
      const kind = findAuthority(name)?.scope ?? "none";
      const wider = was === undefined || !Object.hasOwn(was, name) && !(name in was) ||
        grantWidened(kind, was[name], reach[provider][name]);
      if (wider) reasons.push({ rule: "reach", text: `it can now act through ${provider} with ${name}` });
    }
  }
  return reasons;
}

function grantWidened(kind: Parameters<typeof widerThan>[0], was: JsonObject, now: JsonObject): boolean {
  if (kind !== "roots") return widerThan(kind, was, now).length > 0;
  // A root that points to another host directory is another authority.
  const before = was.roots as JsonObject;
  const after = now.roots as JsonObject;
  return Object.keys(after).some((root) => before[root] !== after[root]);
}
