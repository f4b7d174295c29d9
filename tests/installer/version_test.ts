/**
 * The version manager against failing servers, networks and disks: after each refusal the old version is active and
 * starts, no partial installation is left, and the message names the cause.
 */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { ProjectError } from "../../project/base/diagnostic.ts";
import {
  installVersion,
  listVersions,
  pruneVersions,
  rollbackVersion,
  uninstallVersion,
  updateVersion,
  useVersion,
} from "../../project/ops/versions/version.ts";
import { startVersion } from "../../project/ops/versions/version_start.ts";
import { readActive } from "../../project/versions/version_store.ts";
import { dieAtStep } from "./die_at_step.ts";
import { contextFor, fakeBundle, ReleaseFixture, releaseKey, temporaryMachine } from "./release_fixture.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";

const OLD = "0.1.0";
const NIGHTLY = "0.2.0-nightly.20260901000000.g1a2b3c4";

/** A site with two versions, and a machine with the old one active. */
async function prepared(
  work: (all: {
    site: ReleaseFixture;
    facts: ReturnType<typeof temporaryMachine>["facts"];
    paths: ReturnType<typeof temporaryMachine>["paths"];
    /** Installing the new version fails with this code and leaves everything as it was. */
    refuses: (code: RegExp, message: RegExp, target?: string, idleMs?: number) => Promise<void>;
  }) => Promise<void>,
): Promise<void> {
  const site = new ReleaseFixture([OLD, NIGHTLY], { latest: OLD, nightly: NIGHTLY });
  const { home, facts, paths } = temporaryMachine();
  await site.listen();
  try {
    await installVersion(contextFor(paths, site), OLD);
    await work({
      site,
      facts,
      paths,
      async refuses(code, message, target = "nightly", idleMs = 5000) {
        await assert.rejects(installVersion(contextFor(paths, site, { idleMs }), target), (error) => {
          assert.ok(error instanceof ProjectError, String(error));
          assert.match(error.diagnostics[0].code, code);
          assert.match(error.message, message);
          return true;
        });
        await holds(paths);
      },
    });
  } finally {
    await site.close();
    rmSync(home, { recursive: true, force: true });
  }
}

/** Asserts that the old version is active, starts, and is the only one. */
async function holds(paths: ReturnType<typeof temporaryMachine>["paths"]): Promise<void> {
  assert.deepEqual(readdirSync(paths.versions), [OLD]);
  assert.equal((await readActive(paths)).current, OLD);
  assert.equal(await startVersion(join(paths.versions, OLD)), `${OLD}\n`);
}

Deno.test("version: install, list, use, roll back, uninstall, prune", () =>
  prepared(async ({ site, paths }) => {
    const context = contextFor(paths, site);
    assert.deepEqual(await installVersion(context, "nightly"), { version: NIGHTLY, already: false, activated: false });
    assert.equal((await installVersion(context, "nightly")).already, true);
    assert.equal((await installVersion(context, `v${OLD}`)).already, true);
    assert.deepEqual(readdirSync(join(paths.cache, "downloads")), []);
    assert.equal((await readActive(paths)).current, OLD, "installing does not activate");
    await assert.rejects(rollbackVersion(context), /no earlier version is recorded/);
    assert.deepEqual(await useVersion(context, "nightly"), { version: NIGHTLY, previous: OLD });
    assert.deepEqual((await listVersions(paths)).map((v) => [v.version, v.channel, v.active, v.previous]), [
      [OLD, "official", false, true],
      [NIGHTLY, "nightly", true, false],
    ]);
    assert.deepEqual(await rollbackVersion(context), { version: OLD, previous: NIGHTLY });
    await assert.rejects(uninstallVersion(context, OLD), /is the active version/);
    await assert.rejects(uninstallVersion(context, "9.9.9"), /not installed/);
    await assert.rejects(uninstallVersion(context, "../../.."), /not installed/);
    assert.deepEqual(await uninstallVersion(context, OLD, true), { version: OLD, active: NIGHTLY });
    await installVersion(context, OLD);
    assert.deepEqual((await pruneVersions(context)).removed, [OLD]);
    await assert.rejects(useVersion(context, "canary"), /"canary" is not installed/);
    await assert.rejects(installVersion(context, "newest"), /neither a channel nor a version/);
  }));

Deno.test("version: a build of a checkout is not a release, and a release takes its place", () =>
  prepared(async ({ site, paths }) => {
    const context = contextFor(paths, site);
    const file = join(paths.versions, OLD, "receipt.json");
    const receipt = JSON.parse(readFileSync(file, "utf8"));
    const write = (changes: object) => writeFileSync(file, JSON.stringify({ ...receipt, ...changes }));
    const channels = async () => (await listVersions(paths)).map((v) => v.channel);
    write({ kind: "source" });
    assert.deepEqual(await channels(), ["official"], "a release's sources, built here");
    write({ kind: "source", commit: "" });
    assert.deepEqual(await channels(), ["source"]);
    await assert.rejects(useVersion(context, "official"), /"official" is not installed/);
    assert.equal((await useVersion(context, "source")).version, OLD);
    assert.deepEqual(await updateVersion(context), { version: OLD, already: false, activated: true, from: OLD });
    assert.deepEqual(await channels(), ["official"]);
    await holds(paths);
  }));

Deno.test("version: update follows the active version's channel and never goes back", () =>
  prepared(async ({ site, paths }) => {
    const context = contextFor(paths, site);
    assert.equal((await updateVersion(context)).activated, false);
    site.add("0.1.1", fakeBundle("0.1.1"));
    site.index = { ...site.index, sequence: 11, channels: { ...site.index.channels, latest: "0.1.1" } };
    site.sign();
    assert.equal((await updateVersion(context)).version, "0.1.1");
    assert.deepEqual(await readActive(paths), { current: "0.1.1", previous: OLD });
    site.index = { ...site.index, sequence: 12, channels: { ...site.index.channels, latest: OLD } };
    site.sign();
    await assert.rejects(updateVersion(context), /older than the active/);
  }));

Deno.test("hostile site: wrong hash", () =>
  prepared(async ({ site, paths, refuses }) => {
    const body = site.served.get(site.path(NIGHTLY))!;
    body[body.length - 20] ^= 1;
    await refuses(/^release\.hash$/, /has the SHA-256 .*the download was deleted/s);
    assert.deepEqual(readdirSync(join(paths.cache, "downloads")), []);
  }));

Deno.test("hostile site: index signed by another key", () =>
  prepared(async ({ site, refuses }) => {
    site.sign(releaseKey());
    await refuses(/^signature\.index$/, /signed by none of the 1 keys/);
  }));

Deno.test("hostile site: index changed after it was signed", () =>
  prepared(async ({ site, refuses }) => {
    site.served.set("/releases/index.json", new TextEncoder().encode(JSON.stringify({ ...site.index, sequence: 99 })));
    await refuses(/^signature\.index$/, /0 valid signatures/);
  }));

Deno.test("hostile site: no signature", () =>
  prepared(async ({ site, refuses }) => {
    site.served.delete("/releases/index.json.sig");
    await refuses(/^release\.answer$/, /index\.json\.sig answers with status 404/);
  }));

Deno.test("hostile site: an older index", () =>
  prepared(async ({ site, refuses }) => {
    site.index = { ...site.index, sequence: 9 };
    site.sign();
    await refuses(/^release\.rollback$/, /sequence 9; 10 was seen before/);
  }));

Deno.test("hostile site: an expired index", () =>
  prepared(async ({ site, refuses }) => {
    site.index = { ...site.index, expires: "2020-01-01T00:00:00Z" };
    site.sign();
    await refuses(/^release\.expired$/, /expired at 2020/);
  }));

Deno.test("hostile site: a truncated body is reported, kept, and continued by the next attempt", () =>
  prepared(async ({ site, paths, refuses }) => {
    site.intercept = (request, response, body) => {
      if (request.url !== site.path(NIGHTLY) || body === undefined) return false;
      response.writeHead(200, { "content-type": "application/gzip", "content-length": body.length });
      response.write(body.subarray(0, 300), () => response.destroy());
      return true;
    };
    await refuses(/^release\.(?:network|truncated)$/, /(?:broke off|cannot be fetched)/);
    site.intercept = undefined;
    site.requests.length = 0;
    await installVersion(contextFor(paths, site), "nightly");
    assert.match(site.requests.at(-1)!, /bytes=[1-9][0-9]*-$/, "the rest only");
  }));

Deno.test("hostile site: a body that ends early without a sign of it", () =>
  prepared(async ({ site, refuses }) => {
    site.intercept = (request, response, body) => {
      if (request.url !== site.path(NIGHTLY) || body === undefined) return false;
      response.writeHead(200, { "content-type": "application/gzip" });
      response.end(body.subarray(0, 300));
      return true;
    };
    await refuses(/^release\.truncated$/, /broke off after 300 of/);
  }));

Deno.test("hostile site: an endless body", () =>
  prepared(async ({ site, refuses }) => {
    site.intercept = (request, response, body) => {
      if (request.url !== site.path(NIGHTLY) || body === undefined) return false;
      response.writeHead(200, { "content-type": "application/gzip" });
      const more = (): void => {
        if (!response.destroyed) response.write(new Uint8Array(1 << 16), () => setTimeout(more, 1));
      };
      more();
      return true;
    };
    await refuses(/^release\.hash$/, /has more than the/);
  }));

Deno.test("hostile site: a body that never goes on", () =>
  prepared(async ({ site, refuses }) => {
    site.intercept = (request, response) => {
      if (request.url !== "/releases/index.json") return false;
      response.writeHead(200, { "content-type": "application/json" });
      response.write("{");
      return true;
    };
    await refuses(/^release\.network$/, /the transfer stalled/, "nightly", 300);
  }));

Deno.test("hostile site: an index and an archive that come byte by byte", () =>
  prepared(async ({ site, refuses }) => {
    for (const slow of ["/releases/index.json", site.path(NIGHTLY)]) {
      site.intercept = (request, response, body) => {
        if (request.url !== slow || body === undefined) return false;
        response.writeHead(200, { "content-type": "application/octet-stream" });
        let at = 0;
        const timer = setInterval(() => response.write(body.subarray(at, ++at)), 20);
        response.on("close", () => clearInterval(timer));
        return true;
      };
      await refuses(/^release\.network$/, /the transfer stalled/, "nightly", 300);
    }
  }));

Deno.test("hostile site: an index without end", () =>
  prepared(async ({ site, refuses }) => {
    site.served.set("/releases/index.json", new Uint8Array(5 << 20));
    await refuses(/^release\.too-large$/, /larger than/);
  }));

/** Ways to change an answer; `other` is another answer of the site. */
const CHANGES: readonly ((bytes: Uint8Array, at: number, other: Uint8Array) => Uint8Array)[] = [
  (bytes, at) => bytes.map((byte, i) => i === at ? byte ^ (1 << (at % 8)) : byte),
  (bytes, at) => bytes.slice(0, at),
  (bytes, at) => Uint8Array.from([...bytes.subarray(0, at), ...bytes.subarray(at + 1)]),
  (bytes, at) => Uint8Array.from([...bytes, ...bytes.subarray(at)]),
  (_bytes, _at, other) => other,
  () => new Uint8Array(0),
];

Deno.test("hostile site: 150 changed answers install nothing", () =>
  prepared(async ({ site, paths }) => {
    const served = new Map(site.served);
    const addresses = ["/releases/index.json", "/releases/index.json.sig", site.path(NIGHTLY)];
    let refused = 0;
    for (let round = 0; round < 150; round++) {
      const address = addresses[round % 3];
      const bytes = served.get(address)!;
      const change = CHANGES[Math.floor(round / 3) % CHANGES.length];
      const other = served.get(addresses[(round + 1) % 3])!;
      site.served.set(address, change(bytes, (round * 7919) % bytes.length, other));
      await installVersion(contextFor(paths, site), "nightly").then(
        () => assert.fail(`round ${round} was installed`),
        (error) => {
          if (!(error instanceof ProjectError)) throw error;
          assert.match(error.diagnostics[0].code, /^(?:release|signature)\./);
          refused++;
        },
      );
      site.served.set(address, bytes);
    }
    assert.equal(refused, 150);
    await holds(paths);
  }));

Deno.test("hostile site: a redirect to another host, and one in a circle", () =>
  prepared(async ({ site, refuses }) => {
    let location = "http://127.0.0.1:9/x";
    site.intercept = (request, response) => {
      if (request.url !== site.path(NIGHTLY)) return false;
      response.writeHead(302, { location }).end();
      return true;
    };
    await refuses(/^release\.redirect$/, /redirects to another host, "http:\/\/127\.0\.0\.1:9"/);
    location = "file:///etc/passwd";
    await refuses(/^release\.redirect$/, /redirects to another host, "file:\/\/\/etc\/passwd"/);
    location = site.path(NIGHTLY);
    await refuses(/^release\.redirect$/, /more than 3 times/);
  }));

Deno.test("hostile network: a web page instead of an archive, and instead of the index", () =>
  prepared(async ({ site, refuses }) => {
    let page = site.path(NIGHTLY);
    site.intercept = (request, response) => {
      if (request.url !== page) return false;
      response.writeHead(200, { "content-type": "text/html" }).end("<html>log in</html>");
      return true;
    };
    await refuses(/^release\.answer$/, /answers with a web page/);
    page = "/releases/index.json";
    await refuses(/^signature\.index$/, /./);
  }));

Deno.test("hostile network: connection refused", () =>
  prepared(async ({ site, paths }) => {
    const gone = { base: "http://127.0.0.1:1", keys: site.keys };
    await assert.rejects(installVersion(contextFor(paths, gone), "nightly"), (error) => {
      assert.ok(error instanceof ProjectError);
      assert.match(error.message, /release\.network: http:\/\/127\.0\.0\.1:1\/releases\/index\.json cannot be fetched/);
      return true;
    });
    await holds(paths);
  }));

Deno.test("hostile archive: foreign names, missing files, a program that lies or does not start", () =>
  prepared(async ({ site, refuses }) => {
    const offer = (archive: Uint8Array): void => {
      site.add(NIGHTLY, archive);
      site.sign();
    };
    offer(fakeBundle(NIGHTLY, { "etc/profile": "x" }));
    await refuses(/^archive\.contents$/, /does not belong in a bundle/);
    offer(fakeBundle(NIGHTLY, { deno: "" }));
    await refuses(/^archive\.contents$/, /lacks deno/);
    offer(fakeBundle(OLD));
    await refuses(/^archive\.contents$/, /does not belong in a bundle/);
    offer(fakeBundle(NIGHTLY, { waft: "#!/bin/sh\necho 6.6.6\n" }));
    await refuses(/^install\.start$/, /identifies itself as "6\.6\.6"/);
    offer(fakeBundle(NIGHTLY, { waft: "#!/bin/sh\necho broken >&2; exit 3\n" }));
    await refuses(/^install\.start$/, /does not start.*status 3: broken/);
    offer(new TextEncoder().encode("<html>signed, but no archive</html>"));
    await refuses(/^archive\.gzip$/, /gzip/);
    // A signed archive that climbs out: written byte by byte, since our writer refuses to.
    const { gzipSync, gunzipSync } = await import("node:zlib");
    const tar = gunzipSync(fakeBundle(NIGHTLY));
    const name = Buffer.from(`waft-${NIGHTLY}/../../../evil`);
    tar.fill(0, 0, 100).set(name, 0);
    tar.fill(0x20, 148, 156);
    let sum = 0;
    for (let i = 0; i < 512; i++) sum += tar[i];
    tar.set(Buffer.from(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
    offer(new Uint8Array(gzipSync(tar)));
    await refuses(/^archive\.path$/, /leads out/);
  }));

Deno.test("hostile site: no bundle for this machine, a withdrawn release", () =>
  prepared(async ({ site, paths, refuses }) => {
    await assert.rejects(
      installVersion(contextFor(paths, site, { platform: "linux/riscv64" }), "nightly"),
      /has no bundle for linux\/riscv64 \(it has linux\/amd64\).*source/s,
    );
    (site.index.releases[NIGHTLY] as { yanked?: string }).yanked = "corrupts memories";
    site.sign();
    await refuses(/^release\.unknown$/, /withdrawn: "corrupts memories"/, NIGHTLY);
    await refuses(/^release\.unknown$/, /withdrawn: "corrupts memories"/, "nightly");
  }));

Deno.test("a download that changes between its check and its use is refused", () =>
  prepared(async ({ site, paths }) => {
    const step = (name: string) => {
      if (name !== "downloaded") return;
      const [file] = readdirSync(join(paths.cache, "downloads"));
      writeFileSync(join(paths.cache, "downloads", file!), "more", { flag: "a" });
    };
    await assert.rejects(installVersion(contextFor(paths, site, { step }), "nightly"), /changed after it was checked/);
    assert.deepEqual(readdirSync(join(paths.cache, "downloads")), []);
    await holds(paths);
    assert.equal((await installVersion(contextFor(paths, site), "nightly")).version, NIGHTLY);
  }));

Deno.test({
  name: "other users can write nothing that an installation makes, whatever the umask",
  ignore: process.platform === "win32",
  fn: () =>
    prepared(async ({ site, facts }) => {
      const { base, keys } = site;
      const home = join(facts.home, "new");
      mkdirSync(home);
      const elsewhere = { ...facts, home };
      await dieAtStep({ kind: "version install", facts: elsewhere, step: -1, umask: 0, base, keys, target: "nightly" });
      const names = readdirSync(home, { recursive: true, encoding: "utf8" });
      assert.ok(names.some((name) => name.endsWith(`${NIGHTLY}/deno`)), names.join());
      const writable = names.filter((name) => (statSync(join(home, name)).mode & 0o022) !== 0);
      assert.deepEqual(writable, []);
    }),
});

Deno.test("kill -9 at every step of an installation: the old version stays, the next attempt succeeds", () =>
  prepared(async ({ site, facts, paths }) => {
    const { base, keys } = site;
    let step = 0;
    for (
      ;
      await dieAtStep({ kind: "version install", facts, step, base, keys, target: "nightly" }) === undefined;
      step++
    ) {
      assert.equal((await readActive(paths)).current, OLD);
      assert.equal(await startVersion(join(paths.versions, OLD)), `${OLD}\n`);
      const installed = (await listVersions(paths)).map((v) => v.version);
      if (installed.includes(NIGHTLY)) {
        // Killed after the rename: the installed version is complete.
        assert.equal(await startVersion(join(paths.versions, NIGHTLY)), `${NIGHTLY}\n`);
        await uninstallVersion(contextFor(paths, site), NIGHTLY);
      }
    }
    assert.ok(step >= 12, `only ${step} steps`);
    assert.deepEqual(readdirSync(paths.versions), [OLD, NIGHTLY], "nothing half-installed is left");
  }));

Deno.test("kill -9 at every step of using and removing a version: one that is there is active, and starts", () =>
  prepared(async ({ site, facts, paths }) => {
    const context = contextFor(paths, site);
    for (const kind of ["version use", "version uninstall"] as const) {
      let step = 0;
      for (;; step++) {
        await installVersion(context, "nightly");
        await useVersion(context, kind === "version use" ? OLD : NIGHTLY);
        if (await dieAtStep({ kind, facts, step, target: NIGHTLY }) !== undefined) break;
        const { current } = await readActive(paths);
        assert.equal(await startVersion(join(paths.versions, current!)), `${current}\n`);
        assert.deepEqual((await listVersions(paths)).filter((v) => v.active).map((v) => v.version), [current]);
      }
      assert.ok(step >= 2, `${kind}: only ${step} steps`);
    }
    await holds(paths);
  }));

Deno.test("full disk, and a directory that cannot be written", async () => {
  await prepared(async ({ site, paths, refuses }) => {
    const { default: child } = await import("node:child_process");
    const small = join(paths.cache, "downloads");
    mkdirSync(small, { recursive: true });
    const mounted = child.spawnSync("mount", ["-t", "tmpfs", "-o", "size=4k", "tmpfs", small]).status === 0;
    if (mounted) {
      try {
        site.add(NIGHTLY, fakeBundle(NIGHTLY, { "lib/noise.txt": crypto.randomUUID().repeat(10_000) + noise() }));
        site.sign();
        await refuses(/^install\.disk-full$/, /no space left on the disk/);
      } finally {
        child.spawnSync("umount", ["-l", small]);
      }
    } else {
      chmodSync(small, 0o500);
      if (process.getuid?.() !== 0) await refuses(/./, /EACCES|ermission/);
    }
  });
});

function noise(): string {
  let text = "";
  for (let i = 0; i < 1000; i++) text += crypto.randomUUID();
  return text;
}

Deno.test("state: damaged files are named, and `version use` repairs the active one", () =>
  prepared(async ({ site, paths, refuses }) => {
    const context = contextFor(paths, site);
    writeFileSync(join(paths.state, "active.json"), '{"schemaVersion":1,"current":"../../x"}\n');
    await assert.rejects(rollbackVersion(context), /record of the active version is damaged/);
    await useVersion(context, OLD);
    const seen = join(paths.state, "release-seen.json");
    writeFileSync(seen, "{");
    await refuses(/^install\.state$/, /record of the last release index is damaged/);
    if (!LACKS_POSIX_FILES) {
      chmodSync(seen, 0o666);
      await refuses(/^machine\.unsafe$/, /release-seen\.json can be written by every user/);
    }
    // A directory without a receipt is not installed.
    mkdirSync(join(paths.versions, "9.9.9"));
    assert.deepEqual((await listVersions(paths)).map((v) => v.version), [OLD]);
    rmSync(join(paths.versions, "9.9.9"), { recursive: true });
    assert.ok(existsSync(join(paths.versions, OLD, "receipt.json")));
    assert.match(
      readFileSync(join(paths.state, "active.json"), "utf8"),
      /^\{"schemaVersion":1,"current":"0\.1\.0"\}\n$/,
    );
  }));
