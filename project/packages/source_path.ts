/**
 * A package in a directory of the project, for development.
 *
 * In: a directory that holds a plugin's `waft.json` and register catalog. Out: one release with exactly the files
 * that publishing would ship, so development runs the published content. The lockfile pins the digest of their
 * canonical tar, which is the same on every host, unlike compressed output. A change of the plugin makes the lockfile
 * differ until the next `waft add`.
 */
import { systemName } from "@waft/engine/internal/host/process";
import { isWindowsName } from "@waft/engine/internal/host/windows_names";
import { join, relative, sep } from "node:path";
import { pathFault, writeTar } from "./archive.ts";
import { type OpenPackage, openPackage, packageManifest } from "../definitions/catalog.ts";
import { fail, quote } from "../base/diagnostic.ts";
import { DISK, type Files, isSymbolicLink } from "../base/files.ts";
import { digestBytes } from "../base/integrity.ts";
import type { LockedSource } from "../lockfile/lock_schema.ts";
import type { JsonObject } from "../base/json_read.ts";
import { CATALOG_FILE, MANIFEST_FILE } from "../base/constants.ts";
import { isWithin } from "../base/system_path.ts";
import type { Release, Source } from "./source.ts";
import { canonicalVersion } from "../base/version.ts";

/** The version of a path package whose manifest gives none. */
const UNVERSIONED = "0.0.0-dev";

/** A package opened from a directory. */
interface PathPackage {
  readonly opened: OpenPackage;
  /** Digest and size of the canonical tar. */
  readonly artifact: Release["artifact"];
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/** Reads the files that publishing would ship: manifest, catalog, entries, README and LICENSE, nothing else. */
export async function collectPackage(directory: string, files: Files = DISK): Promise<Map<string, Uint8Array>> {
  const collected = new Map<string, Uint8Array>();
  const take = async (path: string, required: boolean): Promise<void> => {
    const full = join(directory, ...path.split("/"));
    // A link could ship a file from outside the package.
    const real = await files.status(full) === undefined ? undefined : await files.realPath(full);
    const root = await files.realPath(directory);
    if (real !== undefined && (await isSymbolicLink(full) || !real.startsWith(root + sep))) {
      throw fail("package.link", `${path} is a symbolic link or leads out of the package`, { file: path });
    }
    const bytes = await files.read(full, 32 << 20);
    if (bytes !== undefined) collected.set(path, bytes);
    else if (required) throw fail("package.missing", `${path} does not exist in ${directory}`);
  };
  await take(MANIFEST_FILE, true);
  await take(CATALOG_FILE, false);
  for (const name of await files.list(directory)) {
    if (/^(?:README|LICENSE|LICENCE|NOTICE)(?:[.-][A-Za-z0-9._-]+)?$/i.test(name)) {
      if ((await files.status(join(directory, name)))?.kind === "file") await take(name, false);
    }
  }
  const catalog = collected.get(CATALOG_FILE);
  if (catalog === undefined) return collected;
  for (const entry of entriesOf(catalog)) await take(entry, false);
  return collected;
}

/** Portable entry paths of a catalog; openPackage judges the rest. Names of devices would open those on Windows. */
function entriesOf(catalog: Uint8Array): string[] {
  try {
    const { plugins } = JSON.parse(new TextDecoder().decode(catalog)) as { readonly plugins?: readonly JsonObject[] };
    return (plugins ?? []).map((p) => p.entry).filter((e): e is string =>
      typeof e === "string" && /^[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*$/.test(e) && pathFault(e) === undefined
    );
  } catch {
    return [];
  }
}

/** Opens the package in a directory. */
export async function openDirectory(directory: string, version?: string, files: Files = DISK): Promise<PathPackage> {
  const collected = await collectPackage(directory, files);
  const { metadata } = await packageManifest(collected);
  const own = version ?? (metadata.version === undefined ? UNVERSIONED : canonicalVersion(metadata.version)!);
  const opened = await openPackage(collected, own);
  const tar = writeTar(collected);
  return { opened, artifact: { digest: digestBytes(tar), size: tar.length }, files: collected };
}

/** A directory as a source. */
export class PathSource implements Source {
  readonly name: string;
  readonly locked: LockedSource;
  readonly #directory: string;
  readonly #files: Files;
  #opened: Promise<PathPackage> | undefined;

  /** `path` is relative to the project and stays inside it. */
  constructor(projectRoot: string, path: string, files: Files = DISK) {
    this.#directory = join(projectRoot, path);
    this.#files = files;
    this.name = path;
    this.locked = { kind: "path", path: projectPath(projectRoot, this.#directory) };
  }

  /** The package, opened once. */
  open(): Promise<PathPackage> {
    this.#opened ??= openDirectory(this.#directory, undefined, this.#files);
    return this.#opened;
  }

  async releases(id: string): Promise<readonly Release[] | undefined> {
    const { opened, artifact } = await this.open();
    const plugin = opened.plugins[id];
    if (plugin === undefined) return undefined;
    const { definition, digest } = plugin;
    return [{
      id,
      version: opened.version,
      package: opened.id,
      definitionDigest: digest,
      requires: definition.requires,
      compatibility: definition.compatibility,
      artifact,
    }];
  }

  /** The bytes that the digest is of. */
  async archive(): Promise<Uint8Array> {
    return writeTar((await this.open()).files);
  }
}

/** A path inside the project as the lockfile writes it: `.` or `./a/b`; throws when it leads out. */
export function projectPath(projectRoot: string, target: string): string {
  if (!isWithin(target, projectRoot)) {
    throw fail("usage.path", `${target} is outside the project ${projectRoot}`, {
      help: "a path plugin must be inside the project",
    });
  }
  const names = relative(projectRoot, target).split(sep);
  if (names[0] === "") return ".";
  const strange = systemName() === "win32" ? names.find((name) => !isWindowsName(name)) : undefined;
  if (strange !== undefined) {
    throw fail("usage.path", `${target} does not name a directory: ${quote(strange)} means something else on Windows`);
  }
  return `./${names.join("/")}`;
}
