/**
 * From a release to an opened package, every byte of it verified.
 *
 * In: a release and its source. Out: the package with its definitions and entries. The archive comes from the
 * cache or the source. Its size and digest must match the release, and the definitions inside must have the digests
 * that the index promised. A difference is an integrity failure (exit 5), never a warning.
 */
import { readArchive } from "./archive.ts";
import { type OpenPackage, openPackage, type PackagePlugin } from "../definitions/catalog.ts";
import { fail, ProjectError } from "../base/diagnostic.ts";
import { digestBytes, jcs } from "../base/integrity.ts";
import { type InspectedModule, InspectionError } from "../definitions/module_inspector.ts";
import type { Release, Source } from "./source.ts";
import { PathSource } from "./source_path.ts";
import type { OpsContext } from "./context.ts";
import { notesOf } from "./release_notes.ts";

/** An opened package and whether it had to be downloaded. */
interface Fetched {
  readonly opened: OpenPackage;
  readonly downloaded: boolean;
  /** The release notes in the archive. */
  readonly notes?: string;
}

/** Fetches, checks and opens the package of a release. */
export async function fetchPackage(context: OpsContext, release: Release, source: Source): Promise<Fetched> {
  const { digest, size } = release.artifact;
  const name = `${release.package} ${release.version}`;
  if (source instanceof PathSource) return { opened: await openPath(release, source), downloaded: false };
  let bytes = await context.cache.get(digest, size);
  const downloaded = bytes === undefined;
  if (bytes === undefined) {
    bytes = await source.archive(release);
    if (bytes.length !== size || digestBytes(bytes) !== digest) {
      throw fail("integrity.artifact", `the archive of ${name} from ${source.name} does not match its release`, {
        help: `expected ${digest} (${size} bytes), got ${digestBytes(bytes)} (${bytes.length} bytes)`,
      });
    }
    await context.cache.put(bytes);
  }
  let opened: OpenPackage;
  let notes: string | undefined;
  try {
    const files = readArchive(bytes);
    opened = await openPackage(files, release.version);
    notes = notesOf(files);
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    throw new ProjectError([
      { code: "integrity.package", severity: "error", message: `the package ${name} from ${source.name} is not valid` },
      ...error.diagnostics,
    ]);
  }
  if (opened.id !== release.package) {
    throw fail("integrity.package", `the archive of ${name} holds the package ${opened.id}`);
  }
  return { opened, downloaded, ...(notes === undefined ? {} : { notes }) };
}

/** Opens the package in a directory; its files must match the release. */
async function openPath(release: Release, source: PathSource): Promise<OpenPackage> {
  const { opened, artifact } = await source.open();
  const { digest, size } = release.artifact;
  if (artifact.digest !== digest || artifact.size !== size) {
    throw fail("integrity.artifact", `${release.package} in ${source.name} does not match its release`, {
      help: `expected ${digest} (${size} bytes), got ${artifact.digest} (${artifact.size} bytes)`,
    });
  }
  return opened;
}

/** The plugin of an opened package that a release promised. */
export function promisedPlugin(opened: OpenPackage, release: Release): PackagePlugin {
  const plugin = opened.plugins[release.id];
  if (plugin === undefined) {
    throw fail("integrity.package", `${release.package} ${release.version} does not hold ${release.id}`);
  }
  if (plugin.digest !== release.definitionDigest) {
    throw fail(
      "integrity.definition",
      `the definition of ${release.id} ${release.version} does not match its release`,
      {
        help: `expected ${release.definitionDigest}, got ${plugin.digest}`,
      },
    );
  }
  for (
    const [part, own, listed] of [
      ["requirements", plugin.definition.requires, release.requires],
      ["engines", plugin.definition.compatibility.engines, release.compatibility.engines],
      ["platforms", plugin.definition.compatibility.platforms.toSorted(), release.compatibility.platforms.toSorted()],
    ] as const
  ) {
    if (jcs(own) === jcs(listed)) continue;
    throw fail(
      "integrity.definition",
      `the ${part} of ${release.id} ${release.version} differ from those in its index`,
    );
  }
  return plugin;
}

/** The imports and exports of a module; throws a ProjectError for an invalid module. */
export async function inspectEntry(context: OpsContext, entry: string, bytes: Uint8Array): Promise<InspectedModule> {
  if (context.inspect === undefined) throw fail("link.uninspected", "this build cannot inspect modules");
  try {
    return await context.inspect(bytes);
  } catch (error) {
    if (!(error instanceof InspectionError)) throw error;
    throw fail("link.module", `${entry} is not a valid module: ${error.message}`, { file: entry });
  }
}
