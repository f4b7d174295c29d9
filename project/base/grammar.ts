/**
 * The patterns P1 to P7 and the length bounds of the specification's "Shared types" and "Limits", word for word.
 *
 * In: strings from manifests, lockfiles, catalogs and command lines. Out: yes or no. Length is checked before any
 * pattern runs, so no regular expression sees more than a few hundred characters. A test compares these with
 * schema.json.
 */

/** The specification's P1: plugin identifiers. */
export const PLUGIN_ID_PATTERN =
  /^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\/[A-Za-z0-9](?:[A-Za-z0-9._~-]*[A-Za-z0-9])?)+$/;
/** The specification's P2: version ranges. */
export const RANGE_PATTERN = /^[0-9A-Za-z.*+<>=~^|() _-]+$/;
/** The specification's P3: versions. */
export const VERSION_PATTERN = /^v?[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;
/** The specification's P4: slugs. */
export const SLUG_PATTERN = /^[a-z0-9][a-z0-9._-]*$/;
/** The specification's P5: platforms. */
export const PLATFORM_PATTERN = /^[a-z0-9]+\/[a-z0-9]+$/;
/** The specification's P6: forge handles. */
export const FORGE_HANDLE_PATTERN = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?$/;
/** The specification's P7: `runtime.parallel`. */
export const PARALLEL_PATTERN = /^(?:auto|[0-9]+)$/;

/** Longest plugin identifier. */
export const MAX_PLUGIN_ID = 300;
/** Longest version range. */
export const MAX_RANGE = 200;
/** Longest version we accept anywhere (npm's bound too); the specification sets none. */
export const MAX_VERSION = 256;
/** Longest slug. */
export const MAX_SLUG = 64;

/** True for a fully qualified plugin identifier. */
export function isPluginId(text: string): boolean {
  return text.length <= MAX_PLUGIN_ID && PLUGIN_ID_PATTERN.test(text);
}

/** True for text with the shape of a range; npm semver decides whether it is a valid range. */
export function hasRangeShape(text: string): boolean {
  return text.length >= 1 && text.length <= MAX_RANGE && RANGE_PATTERN.test(text);
}

/** True for text with the shape of a version. */
export function hasVersionShape(text: string): boolean {
  return text.length <= MAX_VERSION && VERSION_PATTERN.test(text);
}

/** The reason why `text` is not a plugin identifier, with the remedy; undefined when it is one. */
export function explainPluginId(text: string): { reason: string; help: string } | undefined {
  if (isPluginId(text)) return undefined;
  if (text.length > MAX_PLUGIN_ID) {
    return { reason: `longer than ${MAX_PLUGIN_ID} characters`, help: "shorten the path after the host" };
  }
  if (/^[A-Za-z0-9][A-Za-z0-9-]*\/[A-Za-z0-9._~-]+$/.test(text)) {
    return {
      reason: "it has no host: the part before the first / needs a dot",
      help: `plugin ids are fully qualified since schema v1; did you mean "github.com/${text}"?`,
    };
  }
  if (/^[a-z]+:\/\//.test(text)) {
    return { reason: "it is a URL", help: `leave out the scheme: "${text.replace(/^[a-z]+:\/\//, "")}"` };
  }
  if (text.startsWith("@")) {
    return { reason: "it looks like an npm or JSR name", help: "plugin ids look like github.com/acme/kv" };
  }
  if (!text.includes("/")) {
    return { reason: "it is a bare name", help: `write the whole id, such as "github.com/<owner>/${text || "name"}"` };
  }
  return {
    reason: "it does not match host.tld/path (letters, digits, and . _ ~ - inside a segment)",
    help: "plugin ids look like github.com/acme/kv",
  };
}

/** Edit distance with transpositions, cut off at `limit`; small inputs only (names, keys). */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) best = Math.min(best, before[j - 2] + 1);
      row.push(best);
    }
    before = last;
    last = row;
  }
  return last[b.length];
}

/** The known name nearest to `name`, if it is near enough to suggest. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length === 0 || name.length > 80) return undefined;
  const plain = name.toLowerCase().replace(/[_\s]/g, "-");
  let best: string | undefined;
  let bestDistance = Math.min(3, Math.ceil(name.length / 3)) + 1;
  for (const candidate of known) {
    const distance = Math.min(
      editDistance(name, candidate, bestDistance),
      editDistance(plain, candidate.toLowerCase(), bestDistance),
    );
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}
