/**
 * A package of plugins in an OCI registry.
 *
 * In: a reference, with the digest of a manifest once one is locked. Out: one release, whose archive has the digest
 * that the manifest names. Invariant: the lockfile names the manifest by its digest, so a tag that moves changes
 * nothing until it is asked for again; the registry then only says which digest that is.
 */
import { fail, ProjectError } from "../base/diagnostic.ts";
import { type OpenPackage, openPackage } from "../definitions/catalog.ts";
import { UsageError } from "../base/failure.ts";
import type { Digest } from "../base/integrity.ts";
import type { LockedSource } from "../lockfile/lock_schema.ts";
import { readArchive } from "./archive.ts";
import type { BlobCache } from "./cache.ts";
import type { PluginArtifact, PluginReference } from "./oci/plugin_artifact.ts";
import type { Release, Source } from "./source.ts";

/** The locked form of a package in an OCI registry. */
type LockedOciSource = Extract<LockedSource, { kind: "oci" }>;

/** A package in an OCI registry. */
export interface OciRequest {
  readonly reference: string;
  /** The digest of its manifest; without it, the registry says which one the reference names. */
  readonly manifest?: Digest;
  /** The stored form of the key by which the manifest must be signed. */
  readonly signedBy?: string;
}

/** What a source in an OCI registry is made of. */
interface OciSourceOptions {
  readonly cache: BlobCache;
  readonly offline: boolean;
  readonly fetch?: typeof globalThis.fetch;
  /** Throws unless the machine's policy allows the registry at this host. */
  readonly requireAllowed: (host: string) => void;
  /** The versions to choose from, if the reference has neither tag nor digest. */
  readonly range?: string;
}

/** A package that was pulled. */
interface OciPackage {
  readonly opened: OpenPackage;
  readonly artifact: PluginArtifact;
}

/** An OCI registry as a source of one package. */
export class OciSource implements Source {
  readonly name: string;
  readonly #wanted: OciRequest;
  readonly #options: OciSourceOptions;
  #pulled: Promise<OciPackage> | undefined;
  #fresh: Promise<OciPackage> | undefined;
  #locked: LockedOciSource | undefined;

  /** Without `manifest`, the registry says which one the reference names. */
  constructor(wanted: OciRequest, options: OciSourceOptions) {
    this.name = wanted.reference;
    this.#wanted = wanted;
    this.#options = options;
    if (wanted.manifest !== undefined) this.#lock(wanted.manifest);
  }

  /** What the lockfile says about the source. Throws an Error before `open` if the manifest is not known. */
  get locked(): LockedOciSource {
    if (this.#locked === undefined) throw new Error(`${this.name} has not been opened`);
    return this.#locked;
  }

  /** The package, pulled once. */
  open(): Promise<OpenPackage> {
    this.#pulled ??= this.#pull(false);
    return this.#pulled.then(({ opened }) => opened);
  }

  /** Asks the registry for the locked manifest and its signature, whatever is cached; throws a ProjectError. */
  async verify(): Promise<void> {
    this.#fresh ??= this.#pull(true);
    await this.#fresh;
  }

  async releases(id: string): Promise<readonly Release[] | undefined> {
    const { plugins, id: own, version } = await this.open();
    const plugin = plugins[id];
    if (plugin === undefined) return undefined;
    const { archive } = (await this.#pulled!).artifact;
    return [{
      id,
      version,
      package: own,
      definitionDigest: plugin.digest,
      requires: plugin.definition.requires,
      compatibility: plugin.definition.compatibility,
      artifact: { digest: archive.digest, size: archive.size },
    }];
  }

  async archive(): Promise<Uint8Array> {
    await this.open();
    return (await this.#pulled!).artifact.bytes;
  }

  #lock(manifest: Digest): void {
    const { reference, signedBy } = this.#wanted;
    this.#locked = { kind: "oci", reference, manifest, ...(signedBy === undefined ? {} : { signedBy }) };
  }

  async #pull(fresh: boolean): Promise<OciPackage> {
    const [{ pullPlugin }, { parseRepository }, { SignatureError }, { IntegrityError }] = await Promise.all([
      import("./oci/plugin_artifact.ts"),
      import("./oci/reference.ts"),
      import("./oci/signature.ts"),
      import("./oci/transfer.ts"),
    ]);
    const { cache, offline, fetch, range, requireAllowed } = this.#options;
    const { signedBy, manifest } = this.#wanted;
    let artifact: PluginArtifact;
    try {
      const parsed = parseRepository(this.name);
      requireAllowed(parsed.host);
      const reference: PluginReference = manifest === undefined ? parsed : { ...parsed, digest: manifest };
      artifact = await pullPlugin(reference, {
        cache,
        offline,
        fresh,
        ...(fetch === undefined ? {} : { fetch }),
        ...(range === undefined ? {} : { range }),
        ...(signedBy === undefined ? {} : { signedBy }),
      });
    } catch (error) {
      if (error instanceof ProjectError) throw error;
      const code = error instanceof UsageError
        ? "usage.reference"
        : error instanceof SignatureError
        ? "signature.missing"
        : error instanceof IntegrityError
        ? "integrity.artifact"
        : offline
        ? "registry.offline"
        : "registry.oci";
      throw fail(code, `${this.name}: ${(error as Error).message}`);
    }
    this.#lock(artifact.manifest);
    return { artifact, opened: await this.#opened(artifact) };
  }

  async #opened({ bytes, version }: PluginArtifact): Promise<OpenPackage> {
    try {
      return await openPackage(readArchive(bytes), version);
    } catch (error) {
      if (!(error instanceof ProjectError)) throw error;
      const message = `the package in ${this.name} is not valid`;
      throw new ProjectError([{ code: "integrity.package", severity: "error", message }, ...error.diagnostics]);
    }
  }
}
