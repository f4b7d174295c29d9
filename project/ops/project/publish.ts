/**
 * `plugin publish`: runs every check of the registry locally, then builds the archive and sends it.
 *
 * In: a package's directory. Out: the publication, real or simulated: version and its origin, files, digests,
 * authorities. The version is `package.version`, else the highest version tag reachable from HEAD; that tag must be on
 * HEAD itself and the tree clean. Only allow-listed files ship.
 */
import { join } from "node:path";
import { digestBytes } from "../../base/integrity.ts";
import { type Diagnostic, fail, ProjectError } from "../../base/diagnostic.ts";
import { checkLinks } from "../../definitions/link_check.ts";
import { InspectionError } from "../../definitions/module_inspector.ts";
import { packageManifest } from "../../definitions/catalog.ts";
import { writeArchive } from "../../packages/archive.ts";
import { CHANGELOG_FILE, changelogSection, NOTES_FILE, notesFault, notesOf } from "../../packages/release_notes.ts";
import { collectPackage, openDirectory } from "../../packages/source_path.ts";
import { canonicalVersion, compareVersions } from "../../base/version.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";
import { type GitState, gitState } from "./git_state.ts";

/** Bytes of a changelog. */
const MAX_CHANGELOG_BYTES = 16 << 20;

/** The package to publish, and the mode of publication. */
export interface PublishRequest {
  readonly root: string;
  readonly dryRun: boolean;
  readonly allowDirty: boolean;
  /** The file of the release notes; without it, the section of the version in the changelog, if there is one. */
  readonly notes?: string;
  /** A reference to an OCI registry, in place of the registry; its tag is that of the version if it has none. */
  readonly to?: string;
}

/** The publication, real or simulated. */
export interface PublishResult {
  readonly package: string;
  readonly version: string;
  readonly versionSource: "package.version" | "git tag";
  readonly files: readonly { readonly path: string; readonly size: number; readonly digest: string }[];
  readonly artifact: { readonly digest: string; readonly size: number };
  readonly plugins: readonly {
    readonly id: string;
    readonly definitionDigest: string;
    readonly entry: string;
    readonly authorities: readonly string[];
  }[];
  readonly dirty: readonly string[];
  readonly linksChecked: boolean;
  readonly dryRun: boolean;
  /** The registry, or the reference in an OCI registry, with the digest once it is published. */
  readonly registry: string;
  readonly created?: boolean;
  readonly url?: string;
  /** The address of the version's page. */
  readonly page?: string;
  /** The release notes; null for none. */
  readonly notes: string | null;
}

/** Checks and publishes. */
export async function publishPackage(context: OpsContext, request: PublishRequest): Promise<PublishResult> {
  const { root } = request;
  const { metadata } = await packageManifest(await collectPackage(root, context.files));
  const git = await gitState(root);
  let version: string;
  let versionSource: PublishResult["versionSource"];
  if (metadata.version !== undefined) {
    version = canonicalVersion(metadata.version)!;
    versionSource = "package.version";
  } else {
    version = taggedVersion(git);
    versionSource = "git tag";
  }
  const { opened, files: own } = await openDirectory(root, version, context.files);
  const notes = await releaseNotes(context, request, version);
  const files = notes === undefined ? own : new Map([...own, [NOTES_FILE, notes.bytes]]);
  const archive = writeArchive(files);
  const shipped = (path: string) => files.has(path) || (notes?.isFromChangelog === true && path === CHANGELOG_FILE);
  const dirty = git === undefined ? [] : git.dirty.filter(shipped);
  if (dirty.length > 0 && !request.allowDirty) {
    throw new ProjectError([{
      code: "publish.dirty",
      severity: "error",
      message: `files that would ship differ from the commit: ${dirty.join(", ")}`,
      help: "commit them, or pass --allow-dirty",
    }]);
  }
  const links: Diagnostic[] = [];
  if (context.inspect !== undefined) {
    for (const plugin of Object.values(opened.plugins)) {
      try {
        links.push(...checkLinks(plugin.definition, await context.inspect(plugin.bytes), plugin.entry.path));
      } catch (error) {
        if (!(error instanceof InspectionError)) throw error;
        links.push({
          code: "link.module",
          severity: "error",
          message: `${plugin.entry.path} is not a valid module: ${error.message}`,
          file: plugin.entry.path,
        });
      }
    }
  }
  if (links.length > 0) throw new ProjectError(links);
  const oci = request.to === undefined ? undefined : await ociTarget(request.to, version);
  const registry = oci === undefined ? new SourceSet(context, root).forId(opened.id) : undefined;
  const result: PublishResult = {
    package: opened.id,
    version,
    versionSource,
    files: [...files].sort(([a], [b]) => a < b ? -1 : 1).map(([path, bytes]) => ({
      path,
      size: bytes.length,
      digest: digestBytes(bytes),
    })),
    artifact: { digest: digestBytes(archive), size: archive.length },
    plugins: Object.values(opened.plugins).map((p) => ({
      id: p.definition.id,
      definitionDigest: p.digest,
      entry: p.entry.path,
      authorities: p.definition.authorities.map((a) => `${a.name} (${a.mode})`),
    })),
    dirty,
    linksChecked: context.inspect !== undefined,
    dryRun: request.dryRun,
    registry: registry?.name ?? oci?.reference ?? "",
    notes: notesOf(files) ?? null,
  };
  if (request.dryRun) return result;
  if (context.offline) throw fail("registry.offline", "publishing needs the network, and --offline forbids it");
  if (registry === undefined) return { ...result, registry: await oci!.push(archive, context.fetch) };
  if (context.token === undefined && context.identity !== undefined) {
    const { workflowToken } = await import("../../packages/identity_token.ts");
    registry.useToken(await workflowToken(registry, opened.id, context.identity, context.fetch));
  }
  const { created, url } = await registry.publish(opened.id, version, archive);
  const page = `${registry.name}/plugins/${opened.id.replaceAll("/", ":")}/v/${encodeURIComponent(version)}`;
  return { ...result, created, url, page };
}

/** The notes of the version to publish. Throws for ones that no registry accepts. */
async function releaseNotes(
  { files }: OpsContext,
  { root, notes: given }: PublishRequest,
  version: string,
): Promise<{ readonly bytes: Uint8Array; readonly isFromChangelog: boolean } | undefined> {
  const file = given ?? join(root, CHANGELOG_FILE);
  const bytes = await files.read(file, MAX_CHANGELOG_BYTES);
  if (bytes === undefined) {
    if (given === undefined) return undefined;
    throw fail("publish.notes", "there is no such file", { file });
  }
  const section = given === undefined ? changelogSection(new TextDecoder().decode(bytes), version) : undefined;
  if (given === undefined && section === undefined) return undefined;
  const notes = section === undefined ? bytes : new TextEncoder().encode(section);
  const fault = notesFault(notes);
  if (fault === undefined) return { bytes: notes, isFromChangelog: section !== undefined };
  const what = section === undefined ? file : `the section of ${version} in ${CHANGELOG_FILE}`;
  throw fail("publish.notes", `${what} ${fault}`, { file });
}

/** Where a package goes in an OCI registry. */
interface OciTarget {
  readonly reference: string;
  /** Pushes the archive. Returns the reference with its digest. */
  push(archive: Uint8Array, send: OpsContext["fetch"]): Promise<string>;
}

async function ociTarget(to: string, version: string): Promise<OciTarget> {
  const [{ pushPlugin, tagOf }, { parseRepository, referenceText }] = await Promise.all([
    import("../../packages/oci/plugin_artifact.ts"),
    import("../../packages/oci/reference.ts"),
  ]);
  const parsed = parseRepository(to);
  const target = parsed.tag === undefined && parsed.digest === undefined ? { ...parsed, tag: tagOf(version) } : parsed;
  const reference = referenceText(target);
  return {
    reference,
    async push(archive, send) {
      try {
        return await pushPlugin(target, { archive: new Uint8Array(archive), version }, send);
      } catch (error) {
        throw fail("registry.oci", `${reference}: ${(error as Error).message}`);
      }
    },
  };
}

function taggedVersion(git: GitState | undefined): string {
  const help = 'write "version" under "package" in waft.json, or tag the commit: git tag v0.1.0';
  if (git === undefined) {
    throw fail("publish.version", "package.version is absent and this is not a Git repository", { help });
  }
  const versions = git.tags.flatMap(({ name, commit }) => {
    const version = canonicalVersion(name);
    return version === undefined ? [] : [{ version, name, commit }];
  }).sort((a, b) => compareVersions(b.version, a.version));
  const newest = versions[0];
  if (newest === undefined) {
    throw fail("publish.version", "package.version is absent and no Git tag is a version", { help });
  }
  if (newest.commit !== git.head) {
    throw fail("publish.tag", `the newest version tag ${newest.name} is not on this commit`, {
      help: "check out the tag, or tag this commit with the next version",
    });
  }
  if (git.dirty.length > 0) {
    throw fail(
      "publish.dirty",
      `the version comes from the tag ${newest.name}, but the tree has changes: ${git.dirty.slice(0, 10).join(", ")}`,
      { help: "commit them and tag again" },
    );
  }
  return newest.version;
}
