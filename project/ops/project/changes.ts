/**
 * The differences between the locked state and a prepared one, plugin by plugin.
 *
 * In: the previous lockfile's content and a Prepared. Out: one Change per id, in code-unit order, with reasons,
 * the newer versions that were skipped and why, and the difference in authority. `plan` and `add` display these
 * changes.
 */
import { findAuthority, requestWidened } from "../../definitions/authorities.ts";
import { type DefinedWorld, type Definition, scopeOf } from "../../definitions/definition.ts";
import { newImports } from "../../definitions/world_rows.ts";
import type { JsonObject } from "../../base/json_read.ts";
import type { Previous } from "../../lockfile/lock_merge.ts";
import { reviewReasons } from "../../lockfile/review.ts";
import type { Prepared } from "./prepare.ts";

/** The change of one plugin. */
export interface Change {
  readonly id: string;
  readonly action: "add" | "update" | "remove" | "keep";
  readonly from?: string;
  readonly to?: string;
  readonly reasons: readonly string[];
  readonly skipped: readonly { readonly version: string; readonly reason: string }[];
  readonly authority: {
    readonly added: readonly string[];
    readonly removed: readonly string[];
    readonly widened: readonly string[];
  };
  /** The world of a component after the change, and the imports that are new. */
  readonly world?: DefinedWorld & { readonly added: readonly string[] };
  readonly needsReview: boolean;
  /** The grants after the change; before a review, the grants that the last review still covers. */
  readonly grants: { readonly [name: string]: JsonObject };
  readonly denied: readonly string[];
  /** The release notes of a version that is new to the project. */
  readonly notes?: string;
}

/** Adds the decisions made since to the changes. */
export function withDecisions(changes: readonly Change[], prepared: Prepared): Change[] {
  return changes.map((change) => {
    const plugin = prepared.plugins[change.id];
    return plugin === undefined ? change : { ...change, grants: { ...plugin.grants }, denied: [...plugin.denied] };
  });
}

/** All changes, those that keep a plugin as it is too. */
export function changesBetween(
  previous: Previous,
  prepared: Prepared,
  requirements: { readonly [id: string]: string },
): Change[] {
  const ids = new Set([...Object.keys(previous.plugins), ...Object.keys(prepared.plugins)]);
  return [...ids].sort().map((id) => changeOf(id, previous, prepared, requirements));
}

function changeOf(
  id: string,
  previous: Previous,
  prepared: Prepared,
  requirements: { readonly [id: string]: string },
): Change {
  const before = previous.plugins[id];
  const from = before === undefined ? undefined : previous.packages[before.package]?.version;
  const now = prepared.plugins[id];
  const old = before?.definition.authorities ?? [];
  if (now === undefined) {
    return {
      id,
      action: "remove",
      ...(from === undefined ? {} : { from }),
      reasons: ["nothing requires it any more"],
      skipped: [],
      authority: { added: [], removed: old.map((a) => a.name), widened: [] },
      needsReview: false,
      grants: {},
      denied: [],
    };
  }
  const to = now.release.version;
  const asks = now.definition.authorities;
  const review = reviewReasons(id, now, prepared.packages[now.package], prepared.plugins, previous.reviewed.get(id));
  const by = Object.keys(prepared.plugins).filter((other) => id in prepared.plugins[other].definition.requires);
  const who = Object.hasOwn(requirements, id) || id in requirements ? ["you", ...by] : by;
  return {
    id,
    action: before === undefined ? "add" : from === to ? "keep" : "update",
    ...(from === undefined ? {} : { from }),
    to,
    reasons: [...(from === to ? [] : [`required by ${who.join(", ")}`]), ...review.map((r) => r.text)],
    skipped: (prepared.resolution.skipped.get(id) ?? []).map(({ version, reason }) => ({ version, reason })),
    authority: {
      added: asks.filter((a) => !old.some((o) => o.name === a.name)).map((a) => a.name),
      removed: old.filter((o) => !asks.some((a) => a.name === o.name)).map((o) => o.name),
      widened: asks.filter((a) => {
        const was = old.find((o) => o.name === a.name);
        return was !== undefined && requestWidened(findAuthority(a.name)?.scope ?? "none", scopeOf(was), scopeOf(a));
      }).map((a) => a.name),
    },
    ...worldAfter(before?.definition, now.definition),
    needsReview: review.length > 0,
    grants: { ...now.grants },
    denied: [...now.denied],
    ...(now.notes === undefined || from === to ? {} : { notes: now.notes }),
  };
}

function worldAfter(before: Definition | undefined, { world }: Definition): Pick<Change, "world"> {
  return world === undefined ? {} : { world: { ...world, added: newImports(before?.world, world) } };
}
