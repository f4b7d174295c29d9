/**
 * Fuzzed archives at the upload: valid packages with damage at every layer, from gzip down to the module.
 *
 * Each damaged archive is accepted or refused with a finding whose code is known; none ends the check or the registry.
 * The seed is fixed, so a failure can be repeated. WAFT_FUZZ_ARCHIVES sets the number of archives.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { gunzipSync, gzipSync } from "node:zlib";
import { checkArchive, type CheckResult } from "../../registry/publish/check.ts";
import { CODEC, codecDefinition, definition, KV } from "../project/sample_plugins.ts";
import { type ProblemBody, realArchive, realFiles, withRegistry } from "./test_registry.ts";
import { writeArchive } from "../../project/packages/archive.ts";

const COUNT = Number(process.env.WAFT_FUZZ_ARCHIVES ?? 1500);
const LIMITS = { readmeBytes: 512 << 10, readmeHtmlBytes: 1 << 20 };

/** A xorshift generator: the same numbers for the same seed. */
class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 1;
  }

  below(limit: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % limit;
  }
}

const INTERESTING = [0, 1, 0x2e, 0x2f, 0x5c, 0x7f, 0x80, 0xc0, 0xff];

/** Bytes with a few random changes: overwritten, flipped, removed, repeated. */
function damaged(bytes: Uint8Array, random: Random): Uint8Array {
  let changed = new Uint8Array(bytes);
  for (let n = 1 + random.below(4); n > 0 && changed.length > 4; n--) {
    const at = random.below(changed.length);
    const span = 1 + random.below(Math.min(64, changed.length - at));
    switch (random.below(4)) {
      case 0:
        changed[at] = INTERESTING[random.below(INTERESTING.length)];
        break;
      case 1:
        changed[at] ^= 1 << random.below(8);
        break;
      case 2:
        changed = new Uint8Array([...changed.subarray(0, at), ...changed.subarray(at + span)]);
        break;
      default:
        changed = new Uint8Array([...changed.subarray(0, at + span), ...changed.subarray(at)]);
    }
  }
  return changed;
}

/** Rewrites the checksum of every tar header, so that damage behind it is reached. */
function resealed(tar: Uint8Array): Uint8Array {
  for (let at = 0; at + 512 <= tar.length; at += 512) {
    if (new TextDecoder().decode(tar.subarray(at + 257, at + 262)) !== "ustar") continue;
    let sum = 0;
    for (let i = 0; i < 512; i++) sum += i >= 148 && i < 156 ? 0x20 : tar[at + i];
    tar.set(new TextEncoder().encode(`${sum.toString(8).padStart(6, "0")}\0 `), at + 148);
  }
  return tar;
}

/** Layers of an archive that can be damaged. */
const LAYERS: readonly ((random: Random, version?: string) => Uint8Array)[] = [
  // The compressed bytes.
  (random, version) => damaged(realArchive([codecDefinition(version)]), random),
  // The tar.
  (random, version) => new Uint8Array(gzipSync(damaged(gunzipSync(realArchive([codecDefinition(version)])), random))),
  // The tar, with checksums that are right.
  (random, version) =>
    new Uint8Array(gzipSync(resealed(damaged(gunzipSync(realArchive([codecDefinition(version)])), random)))),
  // A file of the package: manifest, catalog, module, README.
  (random, version) => {
    const files = realFiles([codecDefinition(version)], {
      "README.md": "# Codec\n\n| a | b |\n|---|---|\n| `c` | <d> |\n",
    });
    const path = [...files.keys()][random.below(files.size)];
    files.set(path, damaged(files.get(path)!, random));
    return writeArchive(files);
  },
];

/** Codes that a refusal may have: of the archive, its documents, its modules, or publishing. */
const KNOWN =
  /^(?:archive|manifest|catalog|definition|link|publish|schema|package|json|plugin|config|version|range|usage)\./;

/** The part of a finding that names the kind of damage. */
function kindOf(result: CheckResult): string {
  return result.ok ? "accepted" : result.diagnostics[0].code;
}

Deno.test(`fuzz: ${COUNT} damaged archives are accepted or refused with a finding`, async () => {
  const random = new Random(20_260_801);
  const kinds = new Map<string, number>();
  for (let i = 0; i < COUNT; i++) {
    const archive = LAYERS[i % LAYERS.length](random);
    const request = { package: CODEC, version: "2.0.1", ...LIMITS };
    const result = await checkArchive(archive, request, () => Promise.resolve(new Map()));
    if (!result.ok) {
      assert.ok(result.diagnostics.length > 0);
      for (const d of result.diagnostics) assert.match(d.code, KNOWN, `archive ${i}: ${d.code} ${d.message}`);
    }
    kinds.set(kindOf(result), (kinds.get(kindOf(result)) ?? 0) + 1);
  }
  // Damage at every layer was reached: many kinds of findings, and some harmless changes.
  assert.ok(kinds.size >= 12, [...kinds].map(([kind, n]) => `${kind} ${n}`).join(", "));
  assert.ok((kinds.get("accepted") ?? 0) > 0);
  if (process.env.WAFT_FUZZ_ARCHIVES !== undefined) console.log(Object.fromEntries([...kinds].sort()));
});

Deno.test("fuzz: damaged uploads are answered 201 or 422, in one check process, and the registry goes on", () =>
  withRegistry(async (r) => {
    const { token } = await r.author("acme", ["github.com/acme"]);
    const random = new Random(7);
    const statuses = new Map<number, number>();
    for (let i = 0; i < 120; i++) {
      // Archives of versions that exist are not checked.
      const version = `2.0.${i}`;
      const archive = new Uint8Array(LAYERS[i % LAYERS.length](random, version));
      const { response, body } = await r.api(...r.publishing(CODEC, version, archive, token));
      const { status } = response;
      assert.ok([201, 422].includes(status), `${i}: ${status} ${JSON.stringify(body)}`);
      if (status === 422) {
        assert.equal((body as ProblemBody).code, "publish.invalid", `${i}: the check ended by itself`);
      }
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    assert.ok(statuses.get(422)! > 60);
    assert.equal((await r.publish(token, [definition(KV, "1.0.0")])).status, 201);
  }, { settings: { publishPerHour: 1000, publishPerDay: 1000 } }));
