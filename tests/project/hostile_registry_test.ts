/**
 * `add` against a hostile registry or mirror: answers are cut, flipped, swapped, stripped of signatures, frozen and
 * rolled back. Any lockfile that is written is one that an honest registry would have given.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { addPlugins } from "../../project/ops/project/add.ts";
import { FakeRegistry } from "./fake_registry.ts";
import { CODEC, codecDefinition, KV, kvDefinition } from "./sample_plugins.ts";
import { ALLOW_ALL, TempProject } from "./temp_project.ts";

/** Numbers that look random and are the same in every run. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state % below;
  };
}

const KINDS = [
  /\/index$/,
  /\/versions\/[^/]+$/,
  /^\/api\/keys$/,
  /^\/api\/blobs\//,
  /^\/api\/log\/checkpoint$/,
  /\/inclusion$/,
] as const;

type Random = (below: number) => number;
type Change = (bytes: Uint8Array, random: Random, other: Uint8Array) => Uint8Array;

/** Ways to change the bytes of an answer. */
const CHANGES: { readonly [name: string]: Change } = {
  flip: (bytes, random) => bytes.map((byte, i) => i === at(bytes, random) ? byte ^ (1 << random(8)) : byte),
  cut: (bytes, random) => bytes.slice(0, random(Math.max(1, bytes.length))),
  grow: (bytes, random) => Uint8Array.from([...bytes, ...Array.from({ length: 1 + random(100) }, () => random(256))]),
  swap: (_bytes, _random, other) => other,
  empty: () => new Uint8Array(0),
  digest: (bytes, random) =>
    edited(bytes, /[0-9a-f]{64}/g, random, (hex) => hex.replace(/^./, (c) => c === "0" ? "1" : "0")),
  version: (bytes, random) => edited(bytes, /[0-9]+\.[0-9]+\.[0-9]+/g, random, () => "9.9.9"),
  unsign: (bytes, random) => edited(bytes, /"signature":\{[^}]*\}/g, random, () => '"signature":{}'),
  resign: (bytes, random) => edited(bytes, /"value":"[^"]{10}/g, random, (text) => `${text.slice(0, -2)}AA`),
  key: (bytes, random) => edited(bytes, /"publicKey":"[^"]{4}/g, random, (text) => `${text.slice(0, -4)}AAAA`),
  publisher: (bytes, random) => edited(bytes, /github\.com\/acme"/g, random, () => 'github.com/evil"'),
};

function at(bytes: Uint8Array, random: Random): number {
  return random(Math.max(1, bytes.length));
}

/** The text with one matching place changed; unchanged if none matches. */
function edited(bytes: Uint8Array, pattern: RegExp, random: Random, change: (found: string) => string): Uint8Array {
  const text = new TextDecoder("latin1").decode(bytes);
  const found = [...text.matchAll(pattern)];
  const one = found[random(Math.max(1, found.length))];
  if (one === undefined) return bytes;
  const next = text.slice(0, one.index) + change(one[0]) + text.slice(one.index + one[0].length);
  return Uint8Array.from(next, (c) => c.charCodeAt(0));
}

async function honest(): Promise<FakeRegistry> {
  const fake = new FakeRegistry();
  await fake.publish([codecDefinition("2.0.0")]);
  await fake.publish([kvDefinition("1.2.3")]);
  return fake;
}

async function lockedBy(fake: FakeRegistry): Promise<string> {
  const project = new TempProject();
  try {
    const context = await project.context(fake);
    await addPlugins(context, { root: project.root, directory: project.root, specs: [KV], decider: ALLOW_ALL });
    return project.read("waft-lock.json")!;
  } finally {
    project.remove();
  }
}

Deno.test("hostile registry: 330 changed answers give the honest lockfile or an error with a code, never another", async () => {
  const fake = await honest();
  const wanted = await lockedBy(fake);
  const outcomes = new Map<string, number>();
  const names = Object.keys(CHANGES);
  const rounds = 330;
  for (let round = 0; round < rounds; round++) {
    const random = randomFrom(round + 1);
    const kind = KINDS[random(KINDS.length)];
    const change = CHANGES[names[round % names.length]];
    let other = new Uint8Array(0);
    fake.tamper = async (path, response) => {
      const bytes = new Uint8Array(await response.clone().arrayBuffer());
      if (!kind.test(path) || response.status !== 200) {
        other = bytes;
        return response;
      }
      const changed = change(bytes, random, other);
      return new Response(new Uint8Array(changed), { status: 200, headers: response.headers });
    };
    try {
      const lock = await lockedBy(fake);
      assert.equal(lock, wanted, `round ${round}: ${names[round % names.length]} of ${kind}`);
      outcomes.set("honest", (outcomes.get("honest") ?? 0) + 1);
    } catch (error) {
      if (!(error instanceof ProjectError)) throw error;
      const { code } = error.diagnostics[0];
      assert.match(
        code,
        /^(?:registry|integrity|signature|log|archive|resolve|lock|catalog|manifest)\./,
        error.message,
      );
      outcomes.set(code, (outcomes.get(code) ?? 0) + 1);
    }
  }
  const total = [...outcomes.values()].reduce((sum, n) => sum + n, 0);
  assert.equal(total, rounds);
  assert.ok(outcomes.size >= 7, JSON.stringify([...outcomes]));
  assert.ok((outcomes.get("honest") ?? 0) < rounds / 2, JSON.stringify([...outcomes]));
});

Deno.test("hostile registry: an index that is rolled back is refused where a newer one was seen", async () => {
  const fake = await honest();
  const project = new TempProject();
  try {
    const context = await project.context(fake);
    const request = { root: project.root, directory: project.root, decider: ALLOW_ALL };
    await addPlugins(context, { ...request, specs: [KV] });
    await fake.publish([codecDefinition("2.0.1")]);
    await addPlugins(context, { ...request, specs: [], update: "all" });
    const locked = project.read("waft-lock.json")!;
    assert.match(locked, /"2\.0\.1"/);
    // Frozen: the same index again, as often as it likes.
    await addPlugins(await project.context(fake), { ...request, specs: [], update: "all" });
    // Rolled back: the newest release is hidden again.
    const hidden = fake.published.pop()!;
    assert.equal(hidden.id, CODEC);
    rmSync(join(project.root, "waft-lock.json"));
    const again = addPlugins(await project.context(fake), { ...request, specs: [] });
    await assert.rejects(
      again,
      (error) => error instanceof ProjectError && error.diagnostics[0].code === "registry.rollback",
    );
    assert.equal(project.read("waft-lock.json"), undefined);
  } finally {
    project.remove();
  }
});
