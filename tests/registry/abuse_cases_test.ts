/**
 * The list of abuse cases, each with its test or step of a test.
 *
 * A case whose test is renamed or removed fails here. Cases of the registry are tested over HTTP, cases of a client in
 * projects, archives in both.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const HTTP = "tests/registry/abuse_test.ts";
const CLIENT = "tests/project/abuse_test.ts";
const ARCHIVE = "project/packages/archive_test.ts";
const LOCK = "project/lockfile/lockfile_test.ts";

/** Case of the design, file, name of the test or step. */
const CASES: readonly (readonly [abuse: string, file: string, test: string])[] = [
  ["tar: ..", HTTP, "a path that climbs with .."],
  ["tar: absolute", HTTP, "an absolute path"],
  ["tar: C:..", HTTP, "a drive letter"],
  ["tar: backslash", HTTP, "a backslash"],
  ["tar: NUL", HTTP, "NUL inside a name"],
  ["tar: symlink", HTTP, "a symbolic link"],
  ["tar: hardlink", HTTP, "a hard link"],
  ["tar: device", HTTP, "a device"],
  ["tar: PAX path override", HTTP, "a PAX header that overrides a path"],
  ["tar: duplicate names", HTTP, "a name twice"],
  ["tar: case-colliding names", HTTP, "names that differ in case"],
  ["tar: NFC-colliding names", HTTP, "names that differ in normalisation"],
  ["tar: Windows reserved names", HTTP, "a name that Windows reserves"],
  ["tar: sparse entries", HTTP, "a GNU sparse entry"],
  ["tar: trailing data", HTTP, "bytes after the end"],
  ["tar: header lie", ARCHIVE, "wrong header checksum"],
  ["tar: size lie", HTTP, "a size that lies"],
  ["tar: gzip multi-member", HTTP, "a second gzip member"],
  ["tar: bomb by ratio", HTTP, "a bomb by ratio"],
  ["tar: bomb by count", HTTP, "a bomb by count"],
  ["HTTP: oversized", HTTP, "oversized"],
  ["HTTP: chunked without end", HTTP, "chunked without end"],
  ["HTTP: slow body", HTTP, "slow body"],
  ["HTTP: wrong digest", HTTP, "wrong digest"],
  ["HTTP: wrong content type", HTTP, "wrong content type"],
  ["HTTP: encoded traversal in {name}", HTTP, "encoded traversal in a name"],
  ["HTTP: double encoding", HTTP, "double encoding"],
  ["HTTP: cursor tampering", HTTP, "HTTP: cursors that were changed or belong to another query"],
  ["HTTP: header injection", HTTP, "header injection by a name"],
  [
    "HTTP: redirect to other host with token",
    CLIENT,
    "abuse: a token goes to its registry only, and never across a redirect",
  ],
  ["identity: homoglyph ids", HTTP, "homoglyph ids"],
  ["identity: punycode ids", HTTP, "punycode ids"],
  ["identity: case twins", HTTP, "case twins"],
  ["identity: prefix owner mismatch", HTTP, "prefix owner mismatch"],
  ["identity: expired domain", HTTP, "expired domain"],
  ["identity: OIDC aud mismatch", HTTP, "tokens of a CI service, for whatever audience and repository"],
  ["identity: OIDC repository mismatch", HTTP, "tokens of a CI service, for whatever audience and repository"],
  ["identity: token replay after revoke", HTTP, "token replay after revoke"],
  ["supply: private id published publicly", HTTP, "a private id published publicly"],
  ["supply: private id asked of the public", CLIENT, "abuse: a private id is never asked of the public registry"],
  [
    "supply: lock with foreign registry",
    CLIENT,
    "abuse: a lockfile with a foreign registry, a swapped digest, a wider scope, a grant that was not requested",
  ],
  [
    "supply: swapped digest",
    CLIENT,
    "abuse: a lockfile with a foreign registry, a swapped digest, a wider scope, a grant that was not requested",
  ],
  [
    "supply: changed scope in lock",
    CLIENT,
    "abuse: a lockfile with a foreign registry, a swapped digest, a wider scope, a grant that was not requested",
  ],
  ["supply: any change of a lock", LOCK, "lockfile: any single-byte change is rejected or equal in meaning"],
  ["supply: same version re-uploaded", HTTP, "same version re-uploaded with other bytes"],
  [
    "supply: log rollback",
    CLIENT,
    "abuse: log rollback: a registry that forgets a release, signed as it was, moves nothing that is locked",
  ],
  [
    "supply: log fork",
    CLIENT,
    "abuse: log fork: a registry that signs other bytes for a locked version is an integrity failure",
  ],
  [
    "supply: stale index replay",
    CLIENT,
    "abuse: an old index played again moves nothing that is locked; releases yanked later stay, with a warning",
  ],
  [
    "supply: yanked-then-locked",
    CLIENT,
    "abuse: an old index played again moves nothing that is locked; releases yanked later stay, with a warning",
  ],
  ["content: README raw HTML", HTTP, "raw HTML"],
  ["content: README javascript:", HTTP, "javascript: and its like"],
  ["content: README SVG", HTTP, "SVG"],
  ["content: README remote images", HTTP, "remote images"],
  ["content: ANSI and bidi in names, on pages", HTTP, "content: ANSI, bidi and markup in names"],
  [
    "content: ANSI and bidi in names, in a terminal",
    CLIENT,
    "abuse: names that hide, reorder or imitate are shown unambiguously",
  ],
  ["content: configSchema with pattern", HTTP, "configSchema with a pattern"],
  ["content: configSchema of 10^4 levels", HTTP, "configSchema of 10,000 levels"],
  ["content: ranges of 200 || terms", HTTP, "ranges of 200 alternatives"],
  ["content: versions of 10^6 digits, sent", HTTP, "versions of a million digits"],
  [
    "content: versions of 10^6 digits, read",
    CLIENT,
    "abuse: versions of a million digits, ranges of endless alternatives, patterns that backtrack",
  ],
  ["content: __proto__ keys", HTTP, "__proto__ keys"],
  ["content: 128 plugins in a cycle, published", HTTP, "128 plugins in a cycle"],
  ["content: 128 plugins in a cycle, added", CLIENT, "abuse: 128 plugins in a cycle"],
  ["content: schema-v0 manifest, published", HTTP, "a manifest of schema v0"],
  [
    "content: schema-v0 manifest, checked",
    CLIENT,
    "abuse: a manifest of schema v0 is told apart, and never guessed at",
  ],
];

Deno.test("every abuse case of the design has its test", () => {
  assert.equal(new Set(CASES.map(([abuse]) => abuse)).size, CASES.length);
  const sources = new Map<string, string>();
  for (const [abuse, file, name] of CASES) {
    if (!sources.has(file)) sources.set(file, readFileSync(new URL(`../../${file}`, import.meta.url), "utf8"));
    assert.ok(sources.get(file)!.includes(`"${name}"`), `${abuse}: ${file} has no test "${name}"`);
  }
});
