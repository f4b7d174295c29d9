/**
 * waft's own releases on a registry's site: the output of `deno task release` is served unchanged, in ranges and as a
 * stream, and no other file is; waft installs from it.
 */
import assert from "node:assert/strict";
import { readdirSync, readlinkSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { installVersion } from "../../project/ops/versions/version.ts";
import { contextFor, ReleaseFixture, temporaryMachine } from "../installer/release_fixture.ts";
import { type TestRegistry, withRegistry } from "./test_registry.ts";
import { until } from "../support/http_requests.ts";

const VERSION = "0.1.0";
/** A file that is sent in pieces. */
const LARGE = new Uint8Array(9 << 20).map((_, i) => (i * 2654435761) >>> 24);

async function withReleases(run: (r: TestRegistry, site: ReleaseFixture, folder: string) => Promise<void>) {
  const folder = await mkdtemp(join(tmpdir(), "waft-releases-"));
  const site = new ReleaseFixture([VERSION], { latest: VERSION });
  site.served.set("/install.sh", new TextEncoder().encode("#!/bin/sh\n# of release 0.1.0\n"));
  site.served.set(`/releases/${VERSION}/large.bin`, LARGE);
  try {
    for (const [path, bytes] of site.served) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), bytes);
    }
    await writeFile(join(folder, "secret"), "secret");
    await withRegistry((r) => run(r, site, folder), { settings: { releases: folder } });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The number of this process's descriptors of the file `path`: other tests run in the same process. */
function descriptorsOf(path: string): number {
  let count = 0;
  for (const descriptor of readdirSync("/proc/self/fd")) {
    try {
      if (readlinkSync(`/proc/self/fd/${descriptor}`) === path) count++;
    } catch { /* Closed meanwhile. */ }
  }
  return count;
}

const bytesOf = async (response: Response): Promise<Uint8Array> => new Uint8Array(await response.arrayBuffer());

Deno.test("releases: the index, its signature, archives and install.sh are the bytes of the folder", () =>
  withReleases(async (r, site) => {
    for (const [path, bytes] of site.served) {
      const response = await fetch(r.url + path);
      assert.equal(response.status, 200, path);
      assert.deepEqual(await bytesOf(response), bytes, path);
      const isMutable = /index\.json|install\.sh/.test(path);
      assert.match(response.headers.get("cache-control")!, isMutable ? /max-age=60/ : /immutable/, path);
      const etag = response.headers.get("etag")!;
      const again = await fetch(r.url + path, { headers: { "if-none-match": etag } });
      assert.equal(again.status, 304, path);
      const head = await fetch(r.url + path, { method: "HEAD" });
      // Of a compressed form a HEAD says the tag only.
      assert.equal(head.headers.get("etag"), etag, path);
      assert.equal((await bytesOf(head)).length, 0);
    }
    const type = async (path: string): Promise<string> => (await fetch(r.url + path)).headers.get("content-type")!;
    assert.equal(await type("/install.sh"), "text/x-shellscript; charset=utf-8");
    assert.equal(await type("/releases/index.json"), "application/json");
    assert.equal(await type("/releases/index.json.sig"), "application/json");
    assert.equal(await type(`/releases/${VERSION}/SHA256SUMS.sig`), "text/plain; charset=utf-8");
    assert.equal(await type(site.path(VERSION)), "application/gzip");
  }));

Deno.test("releases: parts of a large file, and readers that are slow or go away", () =>
  withReleases(async (r, _site, folder) => {
    const path = `/releases/${VERSION}/large.bin`;
    const part = async (range: string, more: Record<string, string> = {}): Promise<[number, Uint8Array]> => {
      const response = await fetch(r.url + path, { headers: { range, ...more } });
      return [response.status, await bytesOf(response)];
    };
    const { length } = LARGE;
    assert.deepEqual(await part("bytes=0-99"), [206, LARGE.slice(0, 100)]);
    assert.deepEqual(await part(`bytes=${length - 7}-`), [206, LARGE.slice(-7)]);
    assert.deepEqual(await part("bytes=1000000-"), [206, LARGE.slice(1_000_000)], "a download goes on");
    assert.deepEqual(await part("bytes=5-", { "if-range": '"other"' }), [200, LARGE], "of another file it begins anew");
    assert.equal((await part(`bytes=${length}-`))[0], 416);

    // Readers that go away in the middle leave no open file.
    const large = await realpath(join(folder, path));
    const open = (): number => descriptorsOf(large);
    const { hostname, port } = new URL(r.url);
    await Promise.all(Array.from({ length: 20 }, () =>
      new Promise<void>((resolve) => {
        const socket = connect(Number(port), hostname, () => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`));
        socket.once("data", () => socket.destroy());
        socket.once("close", () => resolve());
        socket.on("error", () => {});
      })));
    // A slow client gets all of it.
    const slow = await new Promise<number>((resolve, reject) => {
      request(r.url + path, (answer) => {
        let got = 0;
        answer.on("data", (chunk: Uint8Array) => {
          got += chunk.length;
          answer.pause();
          setTimeout(() => answer.resume(), 1);
        });
        answer.on("end", () => resolve(got));
        answer.on("error", reject);
      }).on("error", reject).end();
    });
    assert.equal(slow, length);
    if (process.platform === "linux") {
      await until(() => open() === 0);
    }
  }));

Deno.test("releases: nothing outside of the layout is sent, and no link is followed", () =>
  withReleases(async (r, _site, folder) => {
    await symlink(join(folder, "secret"), join(folder, "releases", VERSION, "link.json"));
    await mkdir(join(folder, "releases", VERSION, "folder"));
    for (
      const path of [
        "/releases/../secret",
        "/releases/%2e%2e/secret",
        "/releases/..%2Fsecret/x",
        `/releases/${VERSION}/..%2F..%2Fsecret`,
        `/releases/${VERSION}/%2e%2e`,
        `/releases/${VERSION}/..`,
        `/releases/${VERSION}/link.json`,
        `/releases/${VERSION}/folder`,
        `/releases/${VERSION}/a%00b`,
        `/releases/${VERSION}/${"a".repeat(300)}`,
        `/releases/${VERSION}/.hidden`,
        "/releases/9.9.9/none.tar.gz",
        "/releases/",
        "/releases",
      ]
    ) {
      // Not fetch: it tidies addresses.
      const [status, text] = await new Promise<[number, string]>((resolve, reject) => {
        const { hostname, port } = new URL(r.url);
        request({ hostname, port, path, agent: false }, (answer) => {
          let body = "";
          answer.on("data", (chunk: Uint8Array) => body += new TextDecoder().decode(chunk));
          answer.on("end", () => resolve([answer.statusCode!, body]));
        }).on("error", reject).end();
      });
      assert.equal(status, 404, path);
      assert.doesNotMatch(text, /^secret/, path);
    }
    assert.equal((await fetch(`${r.url}/releases/index.json?x=1`)).status, 400);
    assert.equal((await fetch(`${r.url}/releases/index.json`, { method: "POST" })).status, 405);
  }));

Deno.test("releases: waft installs a version from a registry's site", () =>
  withReleases(async (r, site) => {
    const { home, paths } = temporaryMachine();
    try {
      const installed = await installVersion(contextFor(paths, { base: r.url, keys: site.keys }), "latest");
      assert.deepEqual(installed, { version: VERSION, already: false, activated: true });
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  }));

Deno.test("releases: a registry without them says so, and still has the script", () =>
  withRegistry(async (r) => {
    for (const path of ["/releases/index.json", `/releases/${VERSION}/x.tar.gz`]) {
      const response = await fetch(r.url + path);
      assert.equal(response.status, 404);
      assert.match(await response.text(), /serves no releases/);
    }
    const script = await (await fetch(`${r.url}/install.sh`)).text();
    assert.match(script, /^#!\/bin\/sh\n/);
    assert.match(script, /\nmain "\$@"\s*$/, "a script that was cut off runs nothing");
    const windows = await (await fetch(`${r.url}/install.ps1`)).text();
    assert.match(windows, /^# Installs waft on Windows/);
    assert.match(
      windows,
      /\nif \(\$Uninstall\) \{ Remove-Waft \} else \{ Install-Waft \}\s*$/,
      "the last line starts it",
    );
  }));
