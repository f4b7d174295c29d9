/**
 * Derives everything the registry keeps about a release from its archive.
 *
 * In: an archive, and the id and version it is to be published as. Out: metadata, definitions with digests, files, and
 * the README as text and HTML; or every finding. The checks are those of the client, in the same code. The registry
 * trusts nothing that the client claims and runs nothing that the author wrote. Runs in a separate process
 * (check_process.ts).
 */
import { readArchive } from "../../project/packages/archive.ts";
import { type OpenPackage, openPackage } from "../../project/definitions/catalog.ts";
import { type Diagnostic, ProjectError, quote } from "../../project/base/diagnostic.ts";
import { inspectPlugin } from "../../project/definitions/engine_inspector.ts";
import { digestBytes } from "../../project/base/integrity.ts";
import { checkLinks } from "../../project/definitions/link_check.ts";
import type { PackageMetadata } from "../../project/manifest/manifest.ts";
import { InspectionError } from "../../project/definitions/module_inspector.ts";
import { CATALOG_FILE, MANIFEST_FILE } from "../../project/base/constants.ts";
import { canonicalVersion } from "../../project/base/version.ts";
import { NOTES_FILE, notesFault, notesOf } from "../../project/packages/release_notes.ts";
import type { Release } from "../../project/packages/source.ts";
import { renderAuthorText } from "../site/markdown.ts";
import type { NewPlugin, ReleaseFile } from "../store/releases.ts";
import { checkGraph, type LoadReleases } from "./graph.ts";

/** The id and version that an archive must have, and its bounds. */
export interface CheckRequest {
  readonly package: string;
  readonly version: string;
  readonly readmeBytes: number;
  readonly readmeHtmlBytes: number;
}

/** A task of the check process; its bytes are an archive or Markdown. */
export type CheckTask =
  | ({ readonly kind: "archive" } & CheckRequest)
  | { readonly kind: "readme"; readonly readmeHtmlBytes: number };

/** The answer to a `load` message. */
export interface TaskInput {
  readonly releases: { readonly [id: string]: readonly Release[] };
}

/** A message of the check process. */
export type CheckReply =
  | { readonly kind: "load"; readonly ids: readonly string[] }
  | { readonly kind: "result"; readonly result: CheckResult | string };

/** The contents of an archive. */
interface CheckedPackage {
  readonly metadata: PackageMetadata;
  readonly plugins: readonly NewPlugin[];
  readonly readme: string;
  /** The README as safe HTML. */
  readonly readmeHtml: string;
  /** The release notes as text; "" for none. */
  readonly notes: string;
  readonly files: readonly ReleaseFile[];
}

/** The outcome of a check. `graph` says that the requirements cannot be met, `invalid` that the package is wrong. */
export type CheckResult =
  | { readonly ok: true; readonly checked: CheckedPackage }
  | { readonly ok: false; readonly fault: "invalid" | "graph"; readonly diagnostics: readonly Diagnostic[] };

/** Checks an archive; `load` gives the published releases of the plugins that it requires. */
export async function checkArchive(
  archive: Uint8Array,
  request: CheckRequest,
  load: LoadReleases,
): Promise<CheckResult> {
  try {
    const files = readArchive(archive);
    const opened = await openPackage(files, request.version);
    const found = [...checkIdentity(opened, request), ...checkFiles(files, opened)];
    for (const plugin of Object.values(opened.plugins)) found.push(...await checkModule(plugin));
    const readme = readReadme(files, request, found);
    const unfit = notesFault(files.get(NOTES_FILE) ?? new Uint8Array());
    if (unfit !== undefined) found.push(finding("publish.notes", `${NOTES_FILE} ${unfit}`, NOTES_FILE));
    if (found.length > 0) return { ok: false, fault: "invalid", diagnostics: found };
    const plugins = Object.values(opened.plugins).map(({ definition, digest, entry }) => ({
      definition,
      digest,
      entry,
    }));
    const artifact = { digest: digestBytes(archive), size: archive.length };
    const unmet = await checkGraph({ package: request.package, version: request.version, plugins, artifact }, load);
    if (unmet.length > 0) return { ok: false, fault: "graph", diagnostics: unmet };
    return {
      ok: true,
      checked: {
        metadata: opened.metadata,
        plugins,
        ...readme,
        notes: notesOf(files) ?? "",
        files: [...files].map(([path, bytes]) => ({ path, size: bytes.length, digest: digestBytes(bytes) })),
      },
    };
  } catch (error) {
    if (error instanceof ProjectError) return { ok: false, fault: "invalid", diagnostics: error.diagnostics };
    throw error;
  }
}

function finding(code: string, message: string, file: string, help?: string): Diagnostic {
  return { code, severity: "error", message, file, ...(help === undefined ? {} : { help }) };
}

/** Findings about the id and the version of a package. */
function checkIdentity(opened: OpenPackage, request: CheckRequest): Diagnostic[] {
  const found: Diagnostic[] = [];
  if (opened.id !== request.package) {
    const message = `the archive holds ${quote(opened.id)}, not ${quote(request.package)}`;
    found.push(finding("publish.package", message, MANIFEST_FILE));
  }
  const { version } = opened.metadata;
  if (version !== undefined && canonicalVersion(version) !== request.version) {
    const message = `package.version is ${quote(version)}, not ${quote(request.version)}`;
    found.push(finding("publish.version", message, MANIFEST_FILE));
  }
  return found;
}

/** Findings about files that do not belong into a package. */
function checkFiles(files: ReadonlyMap<string, Uint8Array>, opened: OpenPackage): Diagnostic[] {
  const entries = new Set(Object.values(opened.plugins).map((p) => p.entry.path));
  return [...files.keys()].filter((path) => !isAllowed(path, entries)).map((path) =>
    finding("publish.file", `${quote(path)} is not a file that packages ship`, path, `pack with "waft plugin publish"`)
  );
}

/** True for the files that packages ship: manifest, catalog, entries, README, license. */
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
    return checkLinks(plugin.definition, await inspectPlugin(plugin.bytes), plugin.entry.path);
  } catch (error) {
    if (!(error instanceof InspectionError)) throw error;
    return [{
      code: "link.module",
      severity: "error",
      message: `${plugin.entry.path} is not a valid module: ${error.message}`,
      file: plugin.entry.path,
    }];
  }
}

/** The README as text and as HTML, both within their bounds; adds findings. */
function readReadme(
  files: ReadonlyMap<string, Uint8Array>,
  limits: CheckRequest,
  found: Diagnostic[],
): { readonly readme: string; readonly readmeHtml: string } {
  const none = { readme: "", readmeHtml: "" };
  const path = [...files.keys()].filter((p) => /^README(?:\.md|\.markdown|\.txt)?$/i.test(p)).sort()[0];
  if (path === undefined) return none;
  const add = (message: string): void => void found.push(finding("publish.readme", `${quote(path)} ${message}`, path));
  const bytes = files.get(path)!;
  if (bytes.length > limits.readmeBytes) {
    add(`has ${bytes.length} bytes; at most ${limits.readmeBytes} are accepted`);
    return none;
  }
  const readme = utf8(bytes);
  if (readme === undefined) {
    add("is not UTF-8");
    return none;
  }
  if (readme.includes("\0")) add("holds a NUL character");
  const readmeHtml = renderAuthorText(readme);
  const size = new TextEncoder().encode(readmeHtml).length;
  if (size > limits.readmeHtmlBytes) {
    add(`renders to ${size} bytes of HTML; at most ${limits.readmeHtmlBytes} are accepted`);
  }
  return { readme, readmeHtml };
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
