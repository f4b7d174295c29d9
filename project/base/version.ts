/**
 * Versions and ranges: npm semver behind the specification's length and pattern checks.
 *
 * In: untrusted text. Out: canonical versions, verdicts, and the reason why a text is not a range. npm's regular
 * expressions never see more than 200 characters of range or 256 of version. Pre-releases match as in npm; `engines`
 * ranges include them, since otherwise no canary or nightly would fit `^0.3.0`. Build metadata does not affect order.
 */
import semver from "semver";
import { hasRangeShape, hasVersionShape, MAX_RANGE, MAX_VERSION, RANGE_PATTERN } from "./grammar.ts";

/** A version that is compared with many ranges. */
export interface ParsedVersion {
  readonly version: string;
}

/** The parts of npm semver in use, with types. */
interface Semver {
  readonly SemVer: new (version: string) => ParsedVersion;
  readonly Range: new (range: string) => { test(version: ParsedVersion): boolean };
  valid(version: string): string | null;
  validRange(range: string): string | null;
  satisfies(version: string, range: string, options?: { includePrerelease?: boolean }): boolean;
  compare(a: string, b: string): -1 | 0 | 1;
  compareBuild(a: string, b: string): -1 | 0 | 1;
  prerelease(version: string): readonly (string | number)[] | null;
}
const npm = semver as unknown as Semver;

/** The canonical form of a version (no leading `v`, no leading zeros, build metadata kept), or undefined. */
export function canonicalVersion(text: string): string | undefined {
  if (!hasVersionShape(text)) return undefined;
  const bare = text.startsWith("v") ? text.slice(1) : text;
  const valid = npm.valid(bare);
  if (valid === null) return undefined;
  const build = bare.indexOf("+");
  return build < 0 ? valid : valid + bare.slice(build);
}

/** True for a version in canonical form. */
export function isCanonicalVersion(text: string): boolean {
  return !text.startsWith("v") && canonicalVersion(text) === text;
}

/** The reason why a text is not a version; undefined when it is one. */
export function explainVersion(text: string): string | undefined {
  if (text.length > MAX_VERSION) return `it is longer than ${MAX_VERSION} characters`;
  if (!hasVersionShape(text)) return "it is not of the form 1.2.3, 1.2.3-pre or 1.2.3+build";
  if (canonicalVersion(text) !== undefined) return undefined;
  const bare = text.replace(/^v/, "");
  for (const part of bare.split(/[-+]/, 1)[0].split(".")) {
    if (/^0[0-9]/.test(part)) return `the number ${part.slice(0, 20)} has a leading zero`;
    if (!Number.isSafeInteger(Number(part))) return `the number ${part.slice(0, 20)}… is too large`;
  }
  return "its pre-release or build part is malformed (empty or with a leading zero)";
}

/** The reason why a text is not a range; undefined when it is one. */
export function explainRange(text: string): { reason: string; help?: string } | undefined {
  if (text.length === 0) return { reason: "it is empty", help: 'write "*" for any version' };
  if (text.length > MAX_RANGE) return { reason: `it is longer than ${MAX_RANGE} characters` };
  if (!hasRangeShape(text)) {
    const at = [...text].findIndex((c) => !RANGE_PATTERN.test(c));
    const help = text.includes(",") ? "use a space for AND, `||` for OR" : undefined;
    return { reason: `the character at offset ${at} is not allowed`, ...(help === undefined ? {} : { help }) };
  }
  const odd = text.search(/[()_]/);
  if (odd >= 0) return { reason: `"${text[odd]}" at offset ${odd} has no meaning in a range` };
  if (npm.validRange(text) !== null) return undefined;
  let offset = 0;
  for (const set of text.split("||")) {
    if (npm.validRange(set) === null) {
      const lead = set.length - set.trimStart().length;
      return { reason: `the part at offset ${offset + lead} is malformed` };
    }
    offset += set.length + 2;
  }
  return { reason: "it is malformed" };
}

/** True when `version` is within `range`, by npm's rules. */
export function satisfies(version: string, range: string): boolean {
  return hasRangeShape(range) && npm.satisfies(version, range);
}

/** Parses a canonical version. */
export function parseVersion(version: string): ParsedVersion {
  return new npm.SemVer(version);
}

/** The test of `satisfies` for many versions. */
export function rangeTest(range: string): (version: ParsedVersion) => boolean {
  if (!hasRangeShape(range) || npm.validRange(range) === null) return () => false;
  const parsed = new npm.Range(range);
  return (version) => parsed.test(version);
}

/** True when a host of `version` fits an `engines` range. */
export function engineSatisfies(version: string, range: string): boolean {
  return hasRangeShape(range) && npm.satisfies(version, range, { includePrerelease: true });
}

/** Order of two canonical versions; build metadata only breaks ties, so that sorting is deterministic. */
export function compareVersions(a: string, b: string): number {
  return npm.compare(a, b) || npm.compareBuild(a, b) || (a < b ? -1 : a > b ? 1 : 0);
}

/** True when two versions are equal except for build metadata. */
export function samePrecedence(a: string, b: string): boolean {
  return npm.compare(a, b) === 0;
}

/** True for a pre-release. */
export function isPrerelease(version: string): boolean {
  return npm.prerelease(version) !== null;
}

/** The constraint that `add` writes for a version that was resolved without a range. */
export function caretOf(version: string): string {
  return `^${version.replace(/\+.*$/, "")}`;
}

/** True when the text names exactly one version (`1.2.3`, `v1.2.3`, `=1.2.3`). */
export function isExact(range: string): boolean {
  return canonicalVersion(range.replace(/^=\s*/, "")) !== undefined;
}
