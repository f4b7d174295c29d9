/**
 * The resolver against an exhaustive one on 1,000 generated graphs, with shuffled answers; then its rules one by one.
 *
 * The exhaustive solver knows nothing of learning: it tries every candidate of the smallest undecided required id in
 * order and checks whole assignments. Both must agree on whether there is a solution and on which one comes first.
 */
import assert from "node:assert/strict";
import { ProjectError } from "../base/diagnostic.ts";
import type { Digest } from "../base/integrity.ts";
import type { ResolveRequest } from "./resolution.ts";
import { MAX_STEPS, resolve, search } from "./resolve.ts";
import type { Release } from "./source.ts";
import { compareVersions, satisfies } from "../base/version.ts";

const DIGEST: Digest = `sha256:${"0".repeat(64)}`;

function release(
  id: string,
  version: string,
  requires: { [id: string]: string } = {},
  more: Partial<Release> = {},
): Release {
  return {
    id,
    version,
    package: id,
    definitionDigest: DIGEST,
    requires,
    compatibility: { engines: {}, platforms: [] },
    artifact: { digest: DIGEST, size: 1 },
    ...more,
  };
}
function provider(releases: readonly Release[], random?: () => number) {
  return {
    load(ids: readonly string[]) {
      const answers = ids.map((id) => {
        const own = releases.filter((r) => r.id === id);
        if (random !== undefined) own.sort(() => random() - 0.5);
        return [id, own.length === 0 ? undefined : own] as const;
      });
      if (random !== undefined) answers.sort(() => random() - 0.5);
      return Promise.resolve(new Map(answers));
    },
  };
}
function generator(seed: number): () => number {
  let s = seed * 2654435761 >>> 0 || 1;
  return () => {
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    return (s >>> 0) / 2 ** 32;
  };
}

/** The first solution by trying everything. */
function exhaustive(request: ResolveRequest, releases: readonly Release[]): Map<string, string> | undefined {
  const of = (id: string): Release[] => {
    const locked = request.locked?.get(id);
    return releases.filter((r) => r.id === id && (r.yanked === undefined || r.version === locked)).sort((a, b) =>
      Number(b.version === locked) - Number(a.version === locked) || compareVersions(b.version, a.version)
    );
  };
  const chosen = new Map<string, Release>();
  const holds = (): boolean => {
    const fits = (id: string, range: string): boolean => !chosen.has(id) || satisfies(chosen.get(id)!.version, range);
    const packages = new Map<string, string>();
    for (const r of chosen.values()) {
      if ((packages.get(r.package) ?? r.version) !== r.version) return false;
      packages.set(r.package, r.version);
    }
    return Object.entries(request.requirements).every(([id, range]) => fits(id, range)) &&
      [...chosen.values()].every((r) => Object.entries(r.requires).every(([id, range]) => fits(id, range)));
  };
  const next = (): string | undefined => {
    const required = new Set(Object.keys(request.requirements));
    for (const r of chosen.values()) for (const id of Object.keys(r.requires)) required.add(id);
    return [...required].filter((id) => !chosen.has(id)).sort()[0];
  };
  const go = (): boolean => {
    const id = next();
    if (id === undefined) return true;
    for (const r of of(id)) {
      chosen.set(id, r);
      if (holds() && go()) return true;
      chosen.delete(id);
    }
    return false;
  };
  return go() ? new Map([...chosen].sort(([a], [b]) => a < b ? -1 : 1).map(([id, r]) => [id, r.version])) : undefined;
}

function graph(seed: number): { request: ResolveRequest; releases: Release[] } {
  const random = generator(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)];
  const count = 3 + Math.floor(random() * 6);
  const ids = Array.from({ length: count }, (_, i) => `a.b/p${i}`);
  const ranges = [
    "*",
    "^1.0.0",
    "^2.0.0",
    ">=1.1.0",
    "<2.0.0",
    "~1.1.0",
    "1.0.0",
    "1.1.0 || 2.0.0",
    ">1.0.0 <2.1.0",
    "^3.0.0",
  ];
  const releases: Release[] = [];
  for (const id of ids) {
    for (const version of ["1.0.0", "1.1.0", "1.2.0", "2.0.0", "2.1.0", "3.0.0-rc.1"].filter(() => random() < 0.65)) {
      const requires: { [id: string]: string } = {};
      for (const other of ids) if (other !== id && random() < 0.3) requires[other] = pick(ranges);
      const more: Partial<Release> = random() < 0.1 ? { yanked: { reason: "broken", severity: "broken" } } : {};
      // Two ids of one package now and then.
      releases.push(
        release(id, version, requires, { ...more, package: id === "a.b/p1" && seed % 3 === 0 ? "a.b/p0" : id }),
      );
    }
  }
  const requirements: { [id: string]: string } = {};
  for (const id of ids) if (random() < 0.4) requirements[id] = pick(ranges);
  const locked = new Map(ids.filter(() => random() < 0.3).map((id) => [id, pick(["1.0.0", "1.1.0", "2.0.0"])]));
  return { request: { requirements, locked }, releases };
}

Deno.test("resolver: 1,000 generated graphs agree with the exhaustive solver, in any order of answers", async () => {
  let solved = 0;
  let conflicts = 0;
  for (let seed = 1; seed <= 1000; seed++) {
    const { request, releases } = graph(seed);
    const expected = exhaustive(request, releases);
    for (const random of [undefined, generator(seed + 5000)]) {
      const outcome = await search(request, provider(releases, random));
      const got = "chosen" in outcome ? new Map([...outcome.chosen].map(([id, r]) => [id, r.version])) : undefined;
      assert.deepEqual(got && [...got], expected && [...expected], `graph ${seed}`);
    }
    if (expected === undefined) conflicts++;
    else if (expected.size > 0) solved++;
  }
  assert.ok(
    solved > 200 && conflicts > 200,
    `the graphs are too easy or too hard: ${solved} solved, ${conflicts} conflicts`,
  );
});

async function versions(request: ResolveRequest, releases: readonly Release[]): Promise<{ [id: string]: string }> {
  const { chosen } = await resolve(request, provider(releases));
  return Object.fromEntries([...chosen].map(([id, r]) => [id, r.version]));
}
async function failure(request: ResolveRequest, releases: readonly Release[]): Promise<string> {
  try {
    await resolve(request, provider(releases));
  } catch (error) {
    assert.ok(error instanceof ProjectError, String(error));
    assert.equal(error.exitCode, 6);
    return error.message;
  }
  throw new Error("resolved");
}

const SIMPLE = [
  release("a.b/x", "1.0.0"),
  release("a.b/x", "1.2.0"),
  release("a.b/x", "2.0.0"),
  release("a.b/x", "2.1.0-rc.1"),
];

Deno.test("resolver: highest, locked kept, pre-releases only when named, yanked only when locked or asked for", async () => {
  assert.deepEqual(await versions({ requirements: { "a.b/x": "*" } }, SIMPLE), { "a.b/x": "2.0.0" });
  assert.deepEqual(await versions({ requirements: { "a.b/x": "^1.0.0" } }, SIMPLE), { "a.b/x": "1.2.0" });
  assert.deepEqual(
    await versions({ requirements: { "a.b/x": "^1.0.0" }, locked: new Map([["a.b/x", "1.0.0"]]) }, SIMPLE),
    { "a.b/x": "1.0.0" },
  );
  assert.deepEqual(
    await versions({ requirements: { "a.b/x": "^2.0.0" }, locked: new Map([["a.b/x", "1.0.0"]]) }, SIMPLE),
    { "a.b/x": "2.0.0" },
  );
  assert.deepEqual(await versions({ requirements: { "a.b/x": ">=2.1.0-rc.0" } }, SIMPLE), { "a.b/x": "2.1.0-rc.1" });
  const yanked = [
    release("a.b/x", "1.0.0"),
    release("a.b/x", "1.1.0", {}, { yanked: { reason: "leaks", severity: "security" } }),
  ];
  assert.deepEqual(await versions({ requirements: { "a.b/x": "*" } }, yanked), { "a.b/x": "1.0.0" });
  assert.deepEqual(await versions({ requirements: { "a.b/x": "*" }, locked: new Map([["a.b/x", "1.1.0"]]) }, yanked), {
    "a.b/x": "1.1.0",
  });
  assert.deepEqual(await versions({ requirements: { "a.b/x": "1.1.0" }, allowYanked: true }, yanked), {
    "a.b/x": "1.1.0",
  });
  assert.match(await failure({ requirements: { "a.b/x": "1.1.0" } }, yanked), /1\.1\.0 yanked \(security\): leaks/);
});

Deno.test("resolver: engines and platforms are skipped and told", async () => {
  const list = [
    release("a.b/x", "1.0.0"),
    release("a.b/x", "1.1.0", {}, { compatibility: { engines: { waft: ">=0.5.0" }, platforms: [] } }),
    release("a.b/x", "1.2.0", {}, { compatibility: { engines: {}, platforms: ["darwin/arm64"] } }),
    release("a.b/x", "1.3.0", {}, { publishedAt: "2026-11-20T00:00:00Z" }),
  ];
  const request = {
    requirements: { "a.b/x": "^1.0.0" },
    engines: { waft: "0.3.0-canary.1" },
    platform: "linux/amd64",
    notAfterMs: Date.parse("2026-11-19"),
  };
  const { chosen, skipped } = await resolve(request, provider(list));
  assert.equal(chosen.get("a.b/x")!.version, "1.0.0");
  assert.deepEqual(skipped.get("a.b/x")!.map((s) => [s.version, s.why]), [["1.3.0", "too-new"], ["1.2.0", "platform"], [
    "1.1.0",
    "engine",
  ]]);
  assert.match(await failure({ ...request, requirements: { "a.b/x": "1.1.0" } }, list), /1\.1\.0 needs waft >=0\.5\.0/);
  // engines include pre-releases: a canary of 0.5.0 fits.
  assert.deepEqual(await versions({ ...request, engines: { waft: "0.6.0-canary.1" } }, list), { "a.b/x": "1.1.0" });
});

Deno.test("resolver: a conflict names every requirer and the line to change", async () => {
  const list = [
    release("a.b/app", "1.0.0", { "a.b/lib": "^1.0.0" }),
    release("a.b/app", "2.0.0", { "a.b/lib": "^2.0.0" }),
    release("a.b/lib", "1.0.0"),
    release("a.b/lib", "2.0.0"),
    release("a.b/ui", "1.0.0", { "a.b/lib": "^2.0.0" }),
  ];
  const message = await failure({ requirements: { "a.b/app": "^1.0.0", "a.b/ui": "^1.0.0" } }, list);
  assert.match(message, /the project requires a\.b\/app \^1\.0\.0/);
  assert.match(message, /the project requires a\.b\/ui \^1\.0\.0/);
  assert.match(message, /a\.b\/app 1\.0\.0 requires a\.b\/lib \^1\.0\.0/);
  assert.match(message, /a\.b\/ui 1\.0\.0 requires a\.b\/lib \^2\.0\.0/);
  assert.match(message, /help: change in waft\.json: "a\.b\/app": "\^1\.0\.0" -> "\^2\.0\.0"/);
  assert.doesNotMatch(message, /force/);
});

Deno.test("resolver: missing plugins and versions are reported as missing", async () => {
  assert.match(
    await failure({ requirements: { "a.b/none": "*" } }, SIMPLE),
    /resolve\.not-found: no plugin a\.b\/none/,
  );
  assert.match(
    await failure({ requirements: { "a.b/y": "*" } }, [release("a.b/y", "1.0.0", { "a.b/none": "*" })]),
    /the plugin does not exist/,
  );
  assert.match(
    await failure({ requirements: { "a.b/x": "^7.0.0" } }, SIMPLE),
    /\^7\.0\.0: it has 2\.1\.0-rc\.1 to 1\.0\.0 \(4 versions\)/,
  );
});

Deno.test("resolver: plugins of one package share its version", async () => {
  const list = ["1.0.0", "1.1.0"].flatMap((v) => [
    release("a.b/kv", v, {}, { package: "a.b/kv" }),
    release("a.b/kv/admin", v, {}, { package: "a.b/kv" }),
  ]);
  assert.deepEqual(await versions({ requirements: { "a.b/kv": "1.0.0", "a.b/kv/admin": "*" } }, list), {
    "a.b/kv": "1.0.0",
    "a.b/kv/admin": "1.0.0",
  });
  assert.match(
    await failure({ requirements: { "a.b/kv": "1.0.0", "a.b/kv/admin": "1.1.0" } }, list),
    /belong to a\.b\/kv and share its version/,
  );
});

Deno.test("resolver: 60 plugins of one package with 2,000 versions", async () => {
  const list: Release[] = [];
  for (let i = 0; i < 60; i++) {
    for (let v = 0; v < 2000; v++) {
      list.push(release(`a.b/p/${i}`, `1.0.${v}`, i === 0 ? { "a.b/p/1": "<1.0.5" } : {}, { package: "a.b/p" }));
    }
  }
  const requirements = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`a.b/p/${i}`, "*"]));
  assert.deepEqual(new Set(Object.values(await versions({ requirements }, list))), new Set(["1.0.4"]));
});

Deno.test("resolver: hard graphs end at the limit of steps, large easy ones are solved", async () => {
  // A chain of 300 plugins with 20 versions each, where only the lowest versions fit together.
  const list: Release[] = [];
  for (let i = 0; i < 300; i++) {
    for (let v = 1; v <= 20; v++) {
      list.push(
        release(
          `a.b/p${String(i).padStart(3, "0")}`,
          `1.${v}.0`,
          i < 299 ? { [`a.b/p${String(i + 1).padStart(3, "0")}`]: `<=1.${v}.0` } : {},
        ),
      );
    }
  }
  const chosen = await versions({ requirements: { "a.b/p000": "*" } }, list);
  assert.equal(Object.keys(chosen).length, 300);
  // Pigeons: every pair of 9 plugins with 8 versions must differ; a resolution proof is exponential.
  const holes = 8;
  const pigeons: Release[] = [];
  for (let p = 0; p <= holes; p++) {
    for (let h = 1; h <= holes; h++) {
      const requires: { [id: string]: string } = {};
      for (let q = 0; q <= holes; q++) if (q !== p) requires[`a.b/q${q}`] = `<${h}.0.0 || >${h}.0.0`;
      pigeons.push(release(`a.b/q${p}`, `${h}.0.0`, requires));
    }
  }
  await assert.rejects(
    search({ requirements: { "a.b/q0": "*" } }, provider(pigeons)),
    (error) => error instanceof ProjectError && error.diagnostics[0].code === "resolve.limit",
  );
  assert.ok(MAX_STEPS === 100_000);
});

Deno.test("resolve: a graph in which every range names every plugin ends at a limit, before it takes minutes", async () => {
  const ids = Array.from({ length: 64 }, (_, k) => `a.b/p${k}`);
  let asked = 0;
  const releases = (id: string): Release[] => {
    asked++;
    const requires = Object.fromEntries(
      ids.filter((other) => other !== id).map((other) => [other, `>=0.0.${id.slice(5)}`]),
    );
    return Array.from({ length: 500 }, (_, n) => release(id, `1.0.${n}`, requires));
  };
  await assert.rejects(
    search({ requirements: { [ids[0]]: "*" } }, {
      load: (wanted) => Promise.resolve(new Map(wanted.map((id) => [id, releases(id)]))),
    }),
    /resolve\.limit: resolution compared more than 1000000 versions with ranges/,
  );
  assert.equal(asked, ids.length);
});
