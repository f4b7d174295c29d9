/**
 * Filters the releases of a plugin to the eligible ones, in order of preference.
 *
 * In: the releases of one id, in any order, and the request. Out: candidates, the locked one first and then from
 * the highest down, and the skipped releases with the reason shown to the user. Filters in order: yanked, engines and
 * platforms, release age. A locked release is subject only to the engine and platform filter.
 */
import type { ResolveRequest } from "./resolution.ts";
import type { Release } from "./source.ts";
import { compareVersions, engineSatisfies, isExact, samePrecedence } from "../base/version.ts";

/** A release that could not be chosen. */
export interface Skipped {
  readonly version: string;
  readonly why: "yanked" | "engine" | "platform" | "too-new" | "range";
  readonly reason: string;
}

/** Candidates and skipped releases. */
interface FilteredReleases {
  readonly candidates: readonly Release[];
  readonly skipped: readonly Skipped[];
}

/** Filters and orders the releases of `id`. */
export function filterReleases(id: string, releases: readonly Release[], request: ResolveRequest): FilteredReleases {
  const sorted = [...releases].sort((a, b) => compareVersions(b.version, a.version));
  const locked = request.locked?.get(id);
  const range = Object.hasOwn(request.requirements, id) ? request.requirements[id] : undefined;
  const named = request.allowYanked === true && range !== undefined && isExact(range);
  const candidates: Release[] = [];
  const skipped: Skipped[] = [];
  for (const [i, release] of sorted.entries()) {
    // Build metadata does not distinguish releases: the first represents all of its precedence.
    if (i > 0 && samePrecedence(sorted[i - 1].version, release.version)) continue;
    const isLocked = release.version === locked;
    const fault = isLocked ? hostFault(release, request) : faultOf(release, request, named);
    if (fault !== undefined) skipped.push({ version: release.version, ...fault });
    else if (isLocked) candidates.unshift(release);
    else candidates.push(release);
  }
  return { candidates, skipped };
}

function faultOf(release: Release, request: ResolveRequest, named: boolean): Omit<Skipped, "version"> | undefined {
  if (release.yanked !== undefined && !named) {
    return { why: "yanked", reason: `yanked (${release.yanked.severity}): ${release.yanked.reason}` };
  }
  const host = hostFault(release, request);
  if (host !== undefined) return host;
  const { notAfterMs } = request;
  // A time that cannot be read is not old enough either.
  if (
    notAfterMs !== undefined && release.publishedAt !== undefined && !(Date.parse(release.publishedAt) <= notAfterMs)
  ) {
    return { why: "too-new", reason: `published ${release.publishedAt}, younger than minReleaseAge` };
  }
  return undefined;
}

function hostFault(release: Release, request: ResolveRequest): Omit<Skipped, "version"> | undefined {
  const { engines, platform } = request;
  for (const name of Object.keys(release.compatibility.engines).sort()) {
    const version = engines?.[name];
    const range = release.compatibility.engines[name];
    if (version !== undefined && !engineSatisfies(version, range)) {
      return { why: "engine", reason: `needs ${name} ${range}` };
    }
  }
  const { platforms } = release.compatibility;
  if (platform !== undefined && platforms.length > 0 && !platforms.includes(platform)) {
    return { why: "platform", reason: `is for ${[...platforms].sort().join(", ")} only` };
  }
  return undefined;
}
