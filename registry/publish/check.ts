/**
 * Everything about a release, derived from its archive again.
 *
 * In: an archive and the id and version it is to be published as. Out: metadata, definitions with digests, files, the read
 * me; or every finding. The same checks as the client's, with the same code; nothing the client said is believed, nothing of
 * the author's is run. Runs in a process of its own (check_process.ts). Design: §3.4.
 */
import { readArchive } from "../../project/packages/archive.ts";
import { openPackage } from "../../project/definitions/catalog.ts";
import { type Diagnostic, ProjectError, quote } from "../../project/base/diagnostic.ts";
import { inspectModule } from "../../project/definitions/engine_inspector.ts";
import { digestBytes } from "../../project/base/integrity.ts";
import { checkLinks } from "../../project/definitions/link_check.ts";
import type { PackageMetadata } from "../../project/manifest/manifest.ts";
import { InspectionError } from "../../project/definitions/module_inspector.ts";
import { CATALOG_FILE, MANIFEST_FILE } from "../../project/base/site.ts";
import { canonicalVersion } from "../../project/base/version.ts";
import type { NewPlugin, ReleaseFile } from "../store/releases.ts";

/** What is to be checked. */
export interface CheckRequest {
  readonly package: string;
  readonly version: string;
  readonly readmeBytes: number;
}

/** What an archive holds. */
export interface CheckedPackage {
  readonly metadata: PackageMetadata;
  readonly plugins: readonly NewPlugin[];
  readonly readme: string;
  readonly files: readonly ReleaseFile[];
}

/** The outcome of a check. */
export type CheckResult =
  | { readonly ok: true; readonly checked: CheckedPackage }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] };

/** Checks an archive. */
export async function checkArchive(archive: Uint8Array, request: CheckRequest): Promise<CheckResult> {
  try {
    const files = readArchive(archive);
    const opened = await openPackage(files, request.version);
    const found: Diagnostic[] = [];
    const add = (code: string, message: string, file: string, help?: string): void => {
      found.push({ code, severity: "error", message, file, ...(help === undefined ? {} : { help }) });
    };
    if (opened.id !== request.package) {
      add("publish.package", `the archive holds ${quote(opened.id)}, not ${quote(request.package)}`, MANIFEST_FILE);
    }
    const said = opened.metadata.version;
    if (said !== undefined && canonicalVersion(said) !== request.version) {
      add("publish.version", `package.version is ${quote(said)}, not ${quote(request.version)}`, MANIFEST_FILE);
    }
    const entries = new Set(Object.values(opened.plugins).map((p) => p.entry.path));
    for (const path of files.keys()) {
      if (isAllowed(path, entries)) continue;
      add("publish.file", `${quote(path)} is not a file that packages ship`, path, `pack with "waft plugin publish"`);
    }
    for (const plugin of Object.values(opened.plugins)) found.push(...await checkModule(plugin));
    const readme = readReadme(files, request.readmeBytes, add);
    if (found.length > 0) return { ok: false, diagnostics: found };
    return {
      ok: true,
      checked: {
        metadata: opened.metadata,
        plugins: Object.values(opened.plugins).map(({ definition, digest, entry }) => ({ definition, digest, entry })),
        readme,
        files: [...files].map(([path, bytes]) => ({ path, size: bytes.length, digest: digestBytes(bytes) })),
      },
    };
  } catch (error) {
    if (error instanceof ProjectError) return { ok: false, diagnostics: error.diagnostics };
    throw error;
  }
}

/** The files that packages ship: manifest, catalog, entries, read me, licence. */
function isAllowed(path: string, entries: ReadonlySet<string>): boolean {
  return path === MANIFEST_FILE || path === CATALOG_FILE || path.startsWith("register/") || entries.has(path) ||
    /^(?:README|LICEN[CS]E)[^/]*$/i.test(path);
}

async function checkModule(plugin: {
  readonly definition: NewPlugin["definition"];
  readonly entry: NewPlugin["entry"];
  readonly bytes: Uint8Array;
}): Promise<Diagnostic[]> {
  try {
    return checkLinks(plugin.definition, await inspectModule(plugin.bytes), plugin.entry.path);
  } catch (error) {
    if (!(error instanceof InspectionError)) throw error;
    return [{
      code: "link.module",
      severity: "error",
      message: `${plugin.entry.path} is no valid module: ${error.message}`,
      file: plugin.entry.path,
    }];
  }
}

type Add = (code: string, message: string, file: string) => void;

function readReadme(files: ReadonlyMap<string, Uint8Array>, maxBytes: number, add: Add): string {
  const path = [...files.keys()].filter((p) => /^README(?:\.md|\.markdown|\.txt)?$/i.test(p)).sort()[0];
  if (path === undefined) return "";
  const bytes = files.get(path)!;
  if (bytes.length > maxBytes) {
    add("publish.readme", `${quote(path)} has ${bytes.length} bytes; at most ${maxBytes} are accepted`, path);
    return "";
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.includes("\0")) add("publish.readme", `${quote(path)} holds a NUL character`, path);
    return text;
  } catch {
    add("publish.readme", `${quote(path)} is not UTF-8`, path);
    return "";
  }
}
