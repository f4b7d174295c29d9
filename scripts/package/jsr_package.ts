/**
 * Builds the JSR packages of a tree as archives.
 *
 * In: a tree. Out: per package its name, version and a canonical archive. `deno publish` assembles the packages and
 * sends each one to a loopback server that records it: no request leaves this machine, and no account is needed.
 * Sources stay TypeScript, import specifiers are resolved (`npm:`, `jsr:` with versions), and files excluded by
 * `publish` in deno.json are absent.
 */
import { spawn } from "node:child_process";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { writeArchive } from "../../project/packages/archive.ts";
import { writeLiteralImports } from "./literal_imports.ts";
import { type Files, readPack } from "./npm_package.ts";

/** Package folders. */
const FOLDERS = ["engine", "component", "."] as const;
const LIMIT_MS = 300_000;

/** One package. */
export interface JsrPackage {
  /** `@waft/engine`. */
  readonly name: string;
  readonly version: string;
  readonly files: Files;
  /** The files, below a folder `package`. */
  readonly archive: Uint8Array;
}

/** Collects the packages that `deno publish` sends for a tree; throws an Error with its output if it refuses. */
export async function buildJsr(tree: string): Promise<JsrPackage[]> {
  const packages: JsrPackage[] = [];
  const server = createServer((request, response) => {
    const answer = (status: number, value: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const named = /^\/api\/scopes\/([^/]+)\/packages\/([^/]+)\/versions\/([^/]+)$/.exec(path);
    if (named === null) return answer(200, {});
    if (request.method !== "POST") return answer(404, { code: "packageVersionNotFound", message: "not published" });
    const [, scope, name, version] = named.map(decodeURIComponent);
    body(request).then((sent) => {
      const files = readPack(sent, "");
      const archive = writeArchive(new Map([...files].map(([file, bytes]) => [`package/${file}`, bytes])));
      packages.push({ name: `@${scope}/${name}`, version: version, files, archive });
      answer(200, { id: "here", status: "success", error: null });
    }).catch((error) => answer(400, { code: "malformedRequest", message: String((error as Error).message) }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const restore = writeLiteralImports(tree);
  try {
    for (const folder of FOLDERS) {
      const before = packages.length;
      const printed = await publish(join(tree, folder), `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      if (packages.length !== before + 1) throw new Error(`deno publish sent no package for ${folder}:\n${printed}`);
    }
  } finally {
    restore();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  return packages;
}

async function body(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  return new Uint8Array(Buffer.concat(chunks));
}

/** Runs `deno publish` against a registry address; returns its output. */
function publish(folder: string, registry: string): Promise<string> {
  const args = ["publish", "--token", "none", "--no-provenance", "--allow-dirty", "--no-check"];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, JSR_URL: registry, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  child.stdout.on("data", (chunk) => printed += String(chunk));
  child.stderr.on("data", (chunk) => printed += String(chunk));
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status) => {
      clearTimeout(timer);
      if (status === 0) resolve(printed);
      else reject(new Error(`deno publish failed in ${folder}:\n${printed}`));
    });
  });
}
