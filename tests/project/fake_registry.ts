/**
 * A registry in memory, with the routes that the client uses, as a `fetch` and as a server on loopback. Test data only.
 *
 * In: packages as definitions. Out: archives made as publishing makes them, indexes, blobs, install counts. Answers can
 * be shuffled, delayed, damaged or yanked by a test.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { writeArchive } from "../../project/packages/archive.ts";
import { openPackage } from "../../project/definitions/catalog.ts";
import type { Definition } from "../../project/definitions/definition.ts";
import { type Digest, digestBytes } from "../../project/base/integrity.ts";
import { endorsementBytes, keyIdOf, recordBytes, type ReleaseRecord } from "../../project/packages/release_record.ts";
import { writeCheckpoint } from "../../project/packages/checkpoint.ts";
import type { Yank } from "../../project/packages/source.ts";
import { consistencyPath, inclusionPath, treeHash } from "../support/naive_merkle_tree.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** The files of a package with plugins of the given definitions; the package has the first one's id. */
export function packageFiles(
  definitions: readonly Definition[],
  wasm?: Uint8Array,
): Map<string, Uint8Array> {
  const main = definitions[0];
  const files = new Map<string, Uint8Array>();
  files.set(
    "waft.json",
    encode(JSON.stringify({
      package: {
        module: main.id,
        version: main.version,
        name: main.name,
        description: main.description,
        license: main.provenance.license,
        repository: main.provenance.repository,
        authors: [{ name: "Ada" }],
        ...(main.stability === undefined ? {} : { stability: main.stability }),
        engines: main.compatibility.engines,
        platforms: main.compatibility.platforms,
        subpackages: definitions.slice(1).map((d) => ({ module: d.id, name: d.name, description: d.description })),
      },
    })),
  );
  const plugins = definitions.map((definition, i) => {
    const entry = `dist/${i}.wasm`;
    // Without a real module, each entry has distinct bytes; no code inspects them then.
    files.set(entry, wasm ?? encode(`\0asm${i}${definition.id}${definition.version}`));
    const { name: _n, description: _d, stability: _s, compatibility: _c, provenance: _p, ...rest } = definition;
    return { entry, definition: rest };
  });
  files.set("register/catalog.json", encode(JSON.stringify({ plugins })));
  return files;
}

interface Published {
  readonly id: string;
  readonly version: string;
  readonly archive: Uint8Array;
  readonly plugins: { readonly [id: string]: { readonly definition: Definition; readonly digest: string } };
  readonly publisher: string;
  readonly publishedAt: string;
  yanked?: Yank;
}

/** A signing key of a test. */
export class TestKey {
  readonly #private: KeyObject = generateKeyPairSync("ed25519").privateKey;
  readonly publicKey: string;
  readonly id: string;
  endorsement: { keyId: string; value: string } | undefined;

  constructor() {
    const { x } = createPublicKey(this.#private).export({ format: "jwk" });
    this.publicKey = Buffer.from(x!, "base64url").toString("base64");
    this.id = keyIdOf(this.publicKey)!;
  }
  sign(bytes: Uint8Array): string {
    return sign(null, bytes, this.#private).toString("base64");
  }
  endorse(next: TestKey): void {
    next.endorsement = { keyId: this.id, value: this.sign(endorsementBytes(next.publicKey)) };
  }
}

const FIRST_KEY = new TestKey();

/** The registry. */
export class FakeRegistry {
  /** Published keys; the last one signs. */
  keys: TestKey[] = [FIRST_KEY];
  readonly published: Published[] = [];
  readonly installs: string[] = [];
  readonly requests: string[] = [];
  /** Changes an answer, or throws as a broken network does. */
  tamper: ((path: string, response: Response) => Response | Promise<Response>) | undefined;
  /** When set, releases are listed in another order at each answer. */
  random: (() => number) | undefined;
  /** Whether there is a transparency log, of all releases in the order of their publication. */
  hasLog = true;
  /** Releases in the list of changes that the log does not have. */
  unlogged: { readonly change: string; readonly name: string; readonly version: string }[] = [];
  #server: Server | undefined;

  async publish(definitions: readonly Definition[], publisher = "github.com/acme", wasm?: Uint8Array): Promise<void> {
    const archive = writeArchive(packageFiles(definitions, wasm));
    const { id, version } = definitions[0];
    const opened = await openPackage(packageFiles(definitions, wasm), version);
    this.published.push({
      id,
      version,
      archive,
      plugins: opened.plugins,
      publisher,
      publishedAt: "2026-08-01T00:00:00Z",
    });
  }

  yank(id: string, version: string, yanked: Yank): void {
    this.published.find((p) => p.id === id && p.version === version)!.yanked = yanked;
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const url = new URL(String(input));
    this.requests.push(`${init?.method ?? "GET"} ${url.pathname}`);
    const response =
      url.pathname.startsWith("/api/log/") || url.pathname === "/api/changes" || url.pathname.endsWith("/inclusion")
        ? this.#logAnswer(url)
        : this.#answer(init?.method ?? "GET", url.pathname);
    return await this.tamper?.(url.pathname, response) ?? response;
  };

  #answer(method: string, path: string): Response {
    const index = /^\/api\/plugins\/([^/]+)\/index$/.exec(path);
    if (index !== null) return this.#index(decodeURIComponent(index[1]));
    if (path === "/api/packages") {
      const packages = this.published.map(({ id, version }) => ({ name: id, version, description: `About ${id}` }));
      return Response.json({ packages, total: packages.length, nextCursor: null });
    }
    const blob = /^\/api\/blobs\/sha256\/([0-9a-f]{64})$/.exec(path);
    if (blob !== null) {
      const found = this.published.find((p) => digestBytes(p.archive) === `sha256:${blob[1]}`);
      return found === undefined ? new Response("", { status: 404 }) : new Response(new Uint8Array(found.archive));
    }
    const installs = /^\/api\/packages\/([^/]+)\/installs$/.exec(path);
    if (installs !== null && method === "POST") {
      this.installs.push(decodeURIComponent(installs[1]));
      return Response.json({ installs: { total: 1, week: 1 } });
    }
    if (path === "/api/keys") {
      return Response.json({
        keys: this.keys.map(({ id, publicKey, endorsement }) => ({ id, algorithm: "Ed25519", publicKey, endorsement })),
      });
    }
    if (path === "/api/transfers") return Response.json({ offers: [] });
    if (path === "/api/trusted-publishers") {
      const publisher = { id: "pub_0", prefix: "github.com/acme", issuer: "https://gitlab.com", claims: { sub: "x" } };
      return Response.json({ publishers: [{ ...publisher, createdAt: "2026-08-01T00:00:00Z" }] });
    }
    if (method === "POST" && /\/(?:yank|deprecation)$/.test(path)) return Response.json({});
    const version = /^\/api\/packages\/([^/]+)\/versions\/([^/]+)$/.exec(path);
    const release = version &&
      this.published.find((p) =>
        p.id === decodeURIComponent(version[1]) && p.version === decodeURIComponent(version[2])
      );
    if (release) return Response.json(this.#signed(release));
    return Response.json({ title: "Not found", detail: path, status: 404 }, { status: 404 });
  }

  #logAnswer({ pathname, searchParams }: URL): Response {
    if (!this.hasLog) return Response.json({ title: "Not found" }, { status: 404 });
    const leaves = this.published.map((p) => recordBytes(this.#record(p)));
    const hex = (hashes: readonly Uint8Array[]): string[] => hashes.map((hash) => Buffer.from(hash).toString("hex"));
    if (pathname === "/api/log/checkpoint") {
      const key = this.keys.at(-1)!;
      const head = { origin: "plugins.example", size: leaves.length, root: treeHash(leaves) };
      const checkpoint = writeCheckpoint(head, key.publicKey, (bytes) => key.sign(bytes));
      return Response.json({ checkpoint, keyId: key.id });
    }
    if (pathname === "/api/changes") {
      const changes = this.published.map(({ id, version }) => ({ change: "published", name: id, version }));
      return Response.json({ changes: [...changes, ...this.unlogged], nextCursor: null });
    }
    if (pathname === "/api/log/entries") {
      const [start, limit] = [Number(searchParams.get("start")), Number(searchParams.get("limit"))];
      const entries = this.published.map((p, number) => ({ number, ...this.#signed(p) }));
      return Response.json({ entries: entries.slice(start, start + limit) });
    }
    if (pathname === "/api/log/consistency") {
      const [from, to] = [Number(searchParams.get("from")), Number(searchParams.get("to"))];
      return Response.json({ from, to, proof: hex(consistencyPath(from, leaves.slice(0, to))) });
    }
    const [, id, version] = /^\/api\/packages\/([^/]+)\/versions\/([^/]+)\/inclusion$/.exec(pathname)!;
    const number = this.published.findIndex((p) =>
      p.id === decodeURIComponent(id) && p.version === decodeURIComponent(version)
    );
    const size = Number(searchParams.get("size"));
    if (number < 0 || number >= size) return Response.json({ title: "Not in the log" }, { status: 404 });
    return Response.json({ number, size, proof: hex(inclusionPath(number, leaves.slice(0, size))) });
  }

  #signed(p: Published): object {
    const record = this.#record(p);
    const key = this.keys.at(-1)!;
    return { record, signature: { keyId: key.id, algorithm: "Ed25519", value: key.sign(recordBytes(record)) } };
  }

  #record(p: Published): ReleaseRecord {
    return {
      schemaVersion: 1,
      package: p.id,
      version: p.version,
      artifact: { digest: digestBytes(p.archive), size: p.archive.length },
      definitions: Object.fromEntries(Object.entries(p.plugins).map(([id, { digest }]) => [id, digest as Digest])),
      publisher: p.publisher,
      publishedAt: p.publishedAt,
    };
  }

  #index(id: string): Response {
    const own = this.published.filter((p) => Object.hasOwn(p.plugins, id) || id in p.plugins);
    if (own.length === 0) return Response.json({ title: "Not found" }, { status: 404 });
    const releases = own.map((p) => {
      const { definition, digest } = p.plugins[id];
      return {
        version: p.version,
        definitionDigest: digest,
        requires: definition.requires,
        compatibility: definition.compatibility,
        artifact: { digest: digestBytes(p.archive), size: p.archive.length },
        publisher: p.publisher,
        publishedAt: p.publishedAt,
        ...(definition.stability === undefined ? {} : { stability: definition.stability }),
        ...(p.yanked === undefined ? {} : { yanked: p.yanked }),
      };
    });
    const { random } = this;
    if (random !== undefined) releases.sort(() => random() - 0.5);
    return Response.json({ schemaVersion: 1, id, package: own[0].id, releases });
  }

  /** Serves on loopback; returns the address. */
  async listen(): Promise<string> {
    this.#server = createServer(async (request, response) => {
      const answer = await this.fetch(`http://localhost${request.url}`, { method: request.method ?? "GET" });
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.end(new Uint8Array(await answer.arrayBuffer()));
    });
    await new Promise<void>((resolve) => this.#server!.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve) ?? resolve(undefined));
  }
}
