/**
 * Publishes the example plugins into a new registry as authors do: over HTTP, with a token.
 *
 * In: folders with a `waft.json` that has a `package`. Out: their releases. An example that cannot be published is
 * reported and skipped, so that it does not keep a registry from starting.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { packageManifest } from "../project/definitions/catalog.ts";
import { writeArchive } from "../project/packages/archive.ts";
import { collectPackage, openDirectory } from "../project/packages/source_path.ts";
import { canonicalVersion } from "../project/base/version.ts";
import { segmentOfId } from "./names.ts";
import type { Registry } from "./registry.ts";

const EXAMPLES = fileURLToPath(new URL("../examples/plugins/", import.meta.url));

/** Publishes the examples; one line for each. */
export async function seedExamples(registry: Registry, token: string, folder: string = EXAMPLES): Promise<string[]> {
  const lines: string[] = [];
  if (!existsSync(folder)) return lines;
  const names = readdirSync(folder).filter((name) => existsSync(`${folder}/${name}/waft.json`)).sort();
  // An example that requires another may fail until that is published: a second round publishes it.
  let waiting = names;
  for (let round = 0; round < 3 && waiting.length > 0; round++) {
    const failed: string[] = [];
    for (const name of waiting) {
      try {
        lines.push(await publishFolder(registry, token, `${folder}/${name}`));
      } catch (error) {
        failed.push(name);
        if (round === 2) lines.push(`${name}: not published: ${(error as Error).message.split("\n")[0]}`);
      }
    }
    waiting = failed;
  }
  return lines;
}

async function publishFolder(registry: Registry, token: string, root: string): Promise<string> {
  const { metadata } = await packageManifest(await collectPackage(root));
  const version = canonicalVersion(metadata.version ?? "0.1.0");
  const archive = writeArchive((await openDirectory(root, version)).files);
  const prefix = metadata.module.split("/").slice(0, 2).join("/").toLowerCase();
  const headers = { authorization: `Bearer ${token}` };
  const granted = await fetch(`${registry.url}/api/prefixes`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ prefix, account: "admin" }),
  });
  await granted.body?.cancel();
  const digest = createHash("sha256").update(archive).digest("base64");
  const answer = await fetch(`${registry.url}/api/packages/${segmentOfId(metadata.module)}/versions/${version}`, {
    method: "PUT",
    headers: { ...headers, "content-type": "application/gzip", "content-digest": `sha-256=:${digest}:` },
    body: new Uint8Array(archive),
  });
  const body = await answer.json() as { readonly detail?: string; readonly errors?: readonly { detail: string }[] };
  if (!answer.ok) throw new Error(`${body.detail ?? answer.status} ${body.errors?.[0]?.detail ?? ""}`);
  return `${metadata.module} ${version}`;
}
