/**
 * The context of every operation: the project's root, the machine's configuration, the sources of packages.
 *
 * In: the flags of a command (or a test's choices). Out: one immutable context. Operations print nothing and read
 * no other environment.
 */
import { ProjectError } from "../base/diagnostic.ts";
import { DISK, type Files } from "../base/files.ts";
import { BlobCache } from "./cache.ts";
import { Credentials } from "./credentials.ts";
import { type IdentitySource, identitySource } from "./identity_source.ts";
import type { LockedSource } from "../lockfile/lock_schema.ts";
import { type MachineConfig, readMachine, registryFor, requireAllowed, requireTrusted } from "./machine.ts";
import type { ModuleInspector } from "../definitions/module_inspector.ts";
import { type MachinePaths, machinePaths, platformName } from "../base/paths.ts";
import type { Source } from "./source.ts";
import { type OciRequest, OciSource } from "./source_oci.ts";
import { PathSource } from "./source_path.ts";
import { RegistrySource } from "./source_registry.ts";
import { VERSION } from "../base/version_string.ts";

/** The context of an operation. */
export interface OpsContext {
  /** @internal */
  readonly files: Files;
  /** @internal */
  readonly paths: MachinePaths;
  /** @internal */
  readonly machine: MachineConfig;
  /** @internal */
  readonly cache: BlobCache;
  /** Whether the network must not be used. */
  readonly offline: boolean;
  /** Versions of the host's engines, for `engines` ranges. */
  readonly engines: { readonly [name: string]: string };
  /** The platform of this machine, such as `linux/amd64`. */
  readonly platform: string;
  /**
   * Reads the imports and exports of modules; without it, link checks are skipped, which the findings report.
   *
   * @internal
   */
  readonly inspect?: ModuleInspector;
  /** The registry's token. */
  readonly token?: string;
  /**
   * Where a workflow gets its identity token, for publishing without a token of the registry.
   *
   * @internal
   */
  readonly identity?: IdentitySource;
  /** Replaces `globalThis.fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The choices open to a command or a test. */
export interface ContextChoices {
  /** Use no network. */
  readonly offline?: boolean;
  /** Address of the registry; the machine's by default. */
  readonly registry?: string;
  /** @internal */
  readonly files?: Files;
  /** @internal */
  readonly paths?: MachinePaths;
  /** Environment variables; the process's by default. */
  readonly env?: { readonly [name: string]: string | undefined };
  /** `inspectPlugin`, which enables link checks. */
  readonly inspect?: ModuleInspector;
  /** Replaces `globalThis.fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Versions of engines, for `engines` ranges; this build's by default. */
  readonly engines?: { readonly [name: string]: string };
  /** The clock, in milliseconds since 1970. */
  readonly now?: () => number;
}

/** Builds a context. */
export async function makeContext(choices: ContextChoices = {}): Promise<OpsContext> {
  const files = choices.files ?? DISK;
  const paths = choices.paths ?? machinePaths();
  const env = choices.env ?? process.env;
  const machine = await readMachine(paths, {
    env,
    files,
    ...(choices.registry === undefined ? {} : { registry: choices.registry }),
  });
  const identity = identitySource(env);
  const token = env.WAFT_TOKEN || await keptToken(paths, files, machine.registry);
  return {
    files,
    paths,
    machine,
    cache: new BlobCache(paths, files),
    offline: choices.offline === true,
    engines: choices.engines ?? { waft: VERSION },
    platform: platformName(),
    now: choices.now ?? Date.now,
    ...(choices.inspect === undefined ? {} : { inspect: choices.inspect }),
    ...(identity === undefined ? {} : { identity }),
    ...(token === undefined || token === "" ? {} : { token }),
    ...(choices.fetch === undefined ? {} : { fetch: choices.fetch }),
  };
}

/**
 * The token stored by `waft login`; undefined when the file is unusable, so that only operations which need a token
 * fail.
 */
async function keptToken(paths: MachinePaths, files: Files, registry: string): Promise<string | undefined> {
  try {
    return await new Credentials(paths, files).token(registry);
  } catch (error) {
    if (error instanceof ProjectError) return undefined;
    throw error;
  }
}

/** Opens sources, each once. */
export class SourceSet {
  readonly #context: OpsContext;
  readonly #root: string;
  readonly #registries = new Map<string, RegistrySource>();
  readonly #paths = new Map<string, PathSource>();
  readonly #oci = new Map<string, OciSource>();

  constructor(context: OpsContext, root: string) {
    this.#context = context;
    this.#root = root;
  }

  /** The registry at an address. */
  registry(address: string): RegistrySource {
    let source = this.#registries.get(address);
    if (source === undefined) {
      const { paths, offline, files, fetch, token, machine } = this.#context;
      requireAllowed(address, machine);
      source = new RegistrySource(address, {
        paths,
        offline,
        files,
        ...(fetch === undefined ? {} : { fetch }),
        ...(token === undefined || address !== machine.registry ? {} : { token }),
      });
      this.#registries.set(address, source);
    }
    return source;
  }

  /** The directory at a path of the project. */
  directory(path: string): PathSource {
    let source = this.#paths.get(path);
    if (source === undefined) this.#paths.set(path, source = new PathSource(this.#root, path, this.#context.files));
    return source;
  }

  /**
   * A package in an OCI registry. `range`: the versions to choose from, if the reference has neither tag nor digest.
   */
  oci(wanted: OciRequest, range?: string): OciSource {
    const key = JSON.stringify([wanted, range]);
    let source = this.#oci.get(key);
    if (source === undefined) {
      const { cache, offline, fetch, machine } = this.#context;
      source = new OciSource(wanted, {
        cache,
        offline,
        requireAllowed: (host) => requireAllowed(`https://${host}`, machine),
        ...(fetch === undefined ? {} : { fetch }),
        ...(range === undefined ? {} : { range }),
      });
      this.#oci.set(key, source);
    }
    return source;
  }

  /** The source that a lockfile names; a registry of waft must be one that this machine trusts. */
  locked(source: LockedSource): Source {
    if (source.kind === "path") return this.directory(source.path);
    if (source.kind === "oci") return this.oci(source);
    requireTrusted(source.registry, this.#context.machine);
    return this.registry(source.registry);
  }

  /** The registry that serves an id by the machine's configuration. */
  forId(id: string): RegistrySource {
    return this.registry(registryFor(id, this.#context.machine));
  }
}
