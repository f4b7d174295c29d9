/**
 * A release site for tests: small bundles whose `waft` is a shell script, a signed index, and a server on loopback with
 * configurable misbehaviour.
 *
 * In: versions. Out: an address, keys, and knobs. No traffic leaves loopback.
 */
import { spawnSync } from "node:child_process";
import { createHash, createPrivateKey, generateKeyPairSync, sign } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeArchive } from "../../project/packages/archive.ts";
import { type MachineFacts, type MachinePaths, machinePaths } from "../../project/base/paths.ts";
import { startVersion } from "../../project/ops/versions/version_start.ts";
import type { VersionContext } from "../../project/ops/versions/version.ts";
import type { ReleaseIndex, ReleaseKeys } from "../../project/versions/release_index.ts";
import { keyIdOf } from "../../project/packages/release_record.ts";

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** A key pair for signing indexes. */
export function releaseKey(): { pem: string; publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const { x } = publicKey.export({ format: "jwk" }) as { x: string };
  return {
    pem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    publicKey: Buffer.from(x, "base64url").toString("base64"),
  };
}

/** A bundle whose program only prints its version. */
export function fakeBundle(version: string, more: Record<string, string> = {}): Uint8Array {
  const files: Record<string, string> = {
    waft: `#!/bin/sh\nif [ "$1" = --version ]; then echo ${version}; else echo "ran ${version} $*"; fi\n`,
    deno: "not really",
    start: `echo "started ${version} $*"\n`,
    LICENSE: "words\n",
    "lib/waft.js": "//\n".repeat(20_000),
    "lib/release-keys.json": "{}",
    "lib/installer/launcher.sh": "#!/bin/sh\n# waft's launcher: for tests\nwaft_layout=xdg\n",
    ...more,
  };
  return writeArchive(
    new Map(Object.entries(files).filter(([, v]) => v !== "").map(([k, v]) => [`waft-${version}/${k}`, utf8(v)])),
  );
}

/** A release site in memory. */
export class ReleaseFixture {
  readonly key = releaseKey();
  readonly keys: ReleaseKeys = { threshold: 1, keys: [this.key.publicKey] };
  readonly served = new Map<string, Uint8Array>();
  readonly requests: string[] = [];
  index: ReleaseIndex;
  /** A hook that may answer a request itself. */
  intercept:
    | ((request: IncomingMessage, response: ServerResponse, body: Uint8Array | undefined) => boolean)
    | undefined;
  base = "";
  readonly #server = createServer((request, response) => this.#answer(request, response));

  constructor(versions: readonly string[], channels: ReleaseIndex["channels"]) {
    this.index = { schemaVersion: 1, sequence: 10, expires: "2100-01-01T00:00:00Z", channels, releases: {} };
    for (const version of versions) this.add(version, fakeBundle(version));
    this.sign();
  }

  /** Adds a release with that archive, and its signed list of checksums. */
  add(version: string, archive: Uint8Array): void {
    const name = `waft-${version}-linux-amd64.tar.gz`;
    const url = `releases/${version}/${name}`;
    this.served.set(`/${url}`, archive);
    this.addSums(version, `${sha256(archive)}  ${name}\n`);
    (this.index.releases as { [v: string]: unknown })[version] = {
      publishedAt: "2026-09-01T00:00:00Z",
      commit: "a".repeat(40),
      minDeno: "2.9.0",
      artifacts: [{
        platform: "linux/amd64",
        libc: "gnu",
        kind: "bundle",
        url,
        size: archive.length,
        sha256: sha256(archive),
      }],
    };
  }

  /** Serves a list of checksums that a key signed. */
  addSums(version: string, sums: string, key = this.key): void {
    const value = sign(null, utf8(sums), createPrivateKey(key.pem)).toString("base64");
    this.served.set(`/releases/${version}/SHA256SUMS`, utf8(sums));
    this.served.set(`/releases/${version}/SHA256SUMS.sig`, utf8(`${keyIdOf(key.publicKey)} ${value}\n`));
  }

  /** Path of a version's archive. */
  path(version: string): string {
    return `/releases/${version}/waft-${version}-linux-amd64.tar.gz`;
  }

  /** Signs the index as it is now. */
  sign(key = this.key): void {
    const bytes = utf8(JSON.stringify(this.index));
    const value = sign(null, bytes, createPrivateKey(key.pem)).toString("base64");
    this.served.set("/releases/index.json", bytes);
    this.served.set(
      "/releases/index.json.sig",
      utf8(JSON.stringify({ signatures: [{ keyId: keyIdOf(key.publicKey), value }] })),
    );
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? "/";
    this.requests.push(`${path} ${request.headers.range ?? ""}`.trim());
    const body = this.served.get(path);
    if (this.intercept?.(request, response, body) === true) return;
    if (body === undefined) {
      response.writeHead(404).end();
      return;
    }
    const from = Number(/^bytes=([0-9]+)-$/.exec(request.headers.range ?? "")?.[1] ?? "0");
    const type = { "content-type": "application/octet-stream" };
    if (from > 0) {
      response.writeHead(206, { ...type, "content-range": `bytes ${from}-${body.length - 1}/${body.length}` });
    } else response.writeHead(200, { ...type, "content-length": body.length });
    response.end(body.subarray(from));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.base = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A clone of this repository at a commit, so that uncommitted changes do not affect builds in it. */
export function cloneAt(commit: string, folder: string): void {
  const git = (...args: string[]): void => {
    const { status, stderr } = spawnSync("git", args, { encoding: "utf8" });
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
  };
  git("clone", "--quiet", "--no-checkout", fileURLToPath(new URL("../..", import.meta.url)), folder);
  git("-C", folder, "checkout", "--quiet", commit);
}

/** A machine in a temporary directory. */
export function temporaryMachine(os = "linux"): { home: string; facts: MachineFacts; paths: MachinePaths } {
  const home = mkdtempSync(join(tmpdir(), "waft-machine-"));
  const facts = { env: { PATH: "/usr/bin:/bin", SHELL: "/bin/bash" }, os, home };
  return { home, facts, paths: machinePaths(facts) };
}

/** A context on that machine that installs from that site. */
export function contextFor(
  paths: MachinePaths,
  site: { readonly base: string; readonly keys: ReleaseKeys },
  more: Partial<VersionContext> & { readonly idleMs?: number } = {},
): VersionContext {
  return {
    paths,
    platform: "linux/amd64",
    libc: "gnu",
    start: startVersion,
    site: () => ({ base: site.base, keys: site.keys, paths, idleMs: more.idleMs ?? 5000 }),
    ...more,
  };
}
