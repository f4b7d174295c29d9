/**
 * From requirements to the complete content of a lockfile, except the decisions on authority.
 *
 * In: the requirements to meet, the usable part of the previous lockfile, choices for bindings. Out: exact
 * versions, checked packages, bindings, load order, and the authority that each plugin still holds from the last
 * review. Only the caches are written. `add`, `rm`, `plugin update`, `plugin grant` and `plugin plan` all start here.
 */
import { bindContracts, type BindingQuestion, type BoundPlugin, loadOrder } from "../../definitions/contracts.ts";
import { checkConfig } from "../../definitions/config_schema.ts";
import { findAuthority, narrowGrant } from "../../definitions/authorities.ts";
import { type Definition, definitionDigest, scopeOf } from "../../definitions/definition.ts";
import { type Diagnostic, fail, ProjectError } from "../../base/diagnostic.ts";
import type { JsonObject } from "../../base/json_read.ts";
import { checkLinks } from "../../definitions/link_check.ts";
import type { LockedPackage, LockedSource } from "../../lockfile/lock_schema.ts";
import type { Previous } from "../../lockfile/lock_merge.ts";
import { InspectionError } from "../../definitions/module_inspector.ts";
import type { Resolution } from "../../packages/resolution.ts";
import { resolve } from "../../packages/resolve.ts";
import type { Release, Source } from "../../packages/source.ts";
import type { OciRequest } from "../../packages/source_oci.ts";
import { RegistrySource } from "../../packages/source_registry.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";
import { fetchPackage, promisedPlugin } from "../../packages/fetch.ts";
import { verifyRelease } from "./verify_release.ts";

/** The input of `prepare`. */
interface PrepareRequest {
  readonly root: string;
  readonly requirements: { readonly [id: string]: string };
  readonly previous: Previous;
  /** Project paths that provide packages, besides those that are locked so. */
  readonly paths?: readonly string[];
  /** Packages in OCI registries, whose references are asked for again. */
  readonly oci?: readonly OciRequest[];
  /** Ids whose locked version is not preferred; with "all", no locked version is. */
  readonly update?: ReadonlySet<string> | "all";
  readonly allowYanked?: boolean;
  /** Providers by `<namespace>` or `<consumer> <namespace>`. */
  readonly bind?: ReadonlyMap<string, readonly string[]>;
  /** Configuration to set, by plugin id. */
  readonly config?: ReadonlyMap<string, JsonObject>;
}

/** A plugin that is ready for review. */
export interface PreparedPlugin extends BoundPlugin {
  readonly id: string;
  readonly package: string;
  readonly release: Release;
  readonly entry: { readonly path: string; readonly digest: `sha256:${string}`; readonly size: number };
  /** The grants carried over from the last review, narrowed to the current requests. */
  grants: { [name: string]: JsonObject };
  denied: string[];
  readonly bindings: { readonly [namespace: string]: string[] };
  readonly config: JsonObject;
  /** The release notes of its package. */
  readonly notes?: string;
}

/** Everything but the decisions. */
export interface Prepared {
  readonly resolution: Resolution;
  readonly plugins: { readonly [id: string]: PreparedPlugin };
  readonly packages: { readonly [id: string]: Omit<LockedPackage, "seal"> };
  readonly order: readonly string[];
  readonly warnings: readonly Diagnostic[];
  readonly downloaded: number;
  readonly linksChecked: boolean;
}

/** A plugin of a chosen release, with the module that its entry names. */
interface FoundPlugin {
  readonly definition: Definition;
  readonly release: Release;
  readonly entry: PreparedPlugin["entry"];
  readonly bytes: Uint8Array;
  readonly notes?: string;
}

/** The packages of a resolution and their plugins, by id. */
interface FetchedPackages {
  readonly packages: { readonly [id: string]: Omit<LockedPackage, "seal"> };
  readonly found: { readonly [id: string]: FoundPlugin };
  readonly downloaded: number;
}

/** Resolves, fetches, checks and binds. */
export async function prepare(context: OpsContext, request: PrepareRequest): Promise<Prepared> {
  const sources = new Sources(context, request);
  await sources.openNamed();
  const resolution = await resolveRequest(context, request, sources);
  const { packages, found, downloaded } = await fetchAll(context, request, resolution, sources);
  await checkAllLinks(context, found);
  const plugins = preparedPlugins(request, found, await bindAll(request, found, sources));
  const order = loadOrder(plugins);
  if ("cycle" in order) {
    throw fail("resolve.cycle", `cyclic dependency between plugins: ${order.cycle.join(" -> ")}`);
  }
  return {
    resolution,
    plugins,
    packages,
    order: order.order,
    warnings: Object.values(plugins).flatMap(releaseWarnings),
    downloaded,
    linksChecked: context.inspect !== undefined,
  };
}

function resolveRequest(context: OpsContext, request: PrepareRequest, sources: Sources): Promise<Resolution> {
  const { minReleaseAgeMs } = context.machine;
  return resolve({
    requirements: request.requirements,
    locked: preferredVersions(request),
    engines: context.engines,
    platform: context.platform,
    allowYanked: request.allowYanked === true,
    ...(minReleaseAgeMs > 0 ? { notAfterMs: context.now() - minReleaseAgeMs } : {}),
  }, { load: (ids) => sources.load(ids) });
}

/** The locked versions of the plugins that the request does not update, by id. */
function preferredVersions({ previous, update }: PrepareRequest): Map<string, string> {
  const versions = new Map<string, string>();
  if (update === "all") return versions;
  for (const [id, plugin] of Object.entries(previous.plugins)) {
    const pack = previous.packages[plugin.package];
    if (pack !== undefined && update?.has(id) !== true) versions.set(id, pack.version);
  }
  return versions;
}

/** Fetches and verifies the packages of all chosen releases. */
async function fetchAll(
  context: OpsContext,
  { previous }: PrepareRequest,
  resolution: Resolution,
  sources: Sources,
): Promise<FetchedPackages> {
  const packages: { [id: string]: Omit<LockedPackage, "seal"> } = Object.create(null);
  const found: { [id: string]: FoundPlugin } = Object.create(null);
  let downloaded = 0;
  for (const release of resolution.chosen.values()) {
    const source = sources.of(release.id);
    keepsItsDigest(release, previous, source);
    // A locked release was verified when it was locked; offline, no other release can be chosen.
    if (source instanceof RegistrySource && !(context.offline && isLocked(release, previous))) {
      await verifyRelease(context, source, release);
    }
    const fetched = await fetchPackage(context, release, source);
    if (fetched.downloaded && packages[release.package] === undefined && source.locked.kind !== "path") {
      downloaded++;
    }
    packages[release.package] = lockedPackage(release, source);
    const { notes } = fetched;
    found[release.id] = {
      ...promisedPlugin(fetched.opened, release),
      release,
      ...(notes === undefined ? {} : { notes }),
    };
  }
  return { packages, found, downloaded };
}

function lockedPackage(release: Release, source: Source): Omit<LockedPackage, "seal"> {
  const { version, artifact, publisher } = release;
  const { locked } = source;
  const signed = locked.kind !== "registry" || publisher === undefined ? {} : { publisher };
  return { version, source: locked, artifact, ...signed };
}

/** The plugins in the order of their ids. */
function preparedPlugins(
  request: PrepareRequest,
  found: FetchedPackages["found"],
  bindings: { readonly [id: string]: PreparedPlugin["bindings"] },
): { [id: string]: PreparedPlugin } {
  const plugins: { [id: string]: PreparedPlugin } = Object.create(null);
  for (const id of Object.keys(found).sort()) {
    const { definition, release, entry, notes } = found[id];
    plugins[id] = {
      id,
      package: release.package,
      release,
      definition,
      entry,
      ...carriedDecision(definition, id, request.previous),
      bindings: bindings[id] ?? {},
      config: configFor(id, definition, request),
      ...(notes === undefined ? {} : { notes }),
    };
  }
  return plugins;
}

function releaseWarnings({ id, release, definition }: PreparedPlugin): Diagnostic[] {
  const { version, yanked, deprecated } = release;
  const warnings: Diagnostic[] = [];
  if (deprecated !== undefined) {
    const message = `${id} ${version} is deprecated: ${deprecated}`;
    warnings.push({ code: "registry.deprecated", severity: "warning", message });
  } else if (release.stability === "deprecated" || definition.stability === "deprecated") {
    warnings.push({ code: "registry.deprecated", severity: "warning", message: `${id} ${version} is deprecated` });
  }
  if (yanked !== undefined) {
    const message = `${id} ${version} was yanked (${yanked.severity}): ${yanked.reason}`;
    warnings.push({ code: "registry.yanked", severity: "warning", message, help: `waft plugin update ${id}` });
  }
  return warnings;
}

/**
 * Finds the source of each id: a path of the project, an OCI registry, the registry that the lockfile names, or the
 * configured registry.
 */
class Sources {
  readonly #context: OpsContext;
  readonly #request: PrepareRequest;
  readonly #set: SourceSet;
  readonly #named = new Map<string, Source>();
  readonly #used = new Map<string, Source>();

  constructor(context: OpsContext, request: PrepareRequest) {
    this.#context = context;
    this.#request = request;
    this.#set = new SourceSet(context, request.root);
  }

  async openNamed(): Promise<void> {
    const asked = (this.#request.paths ?? []).map((path) => this.#set.directory(path));
    for (const source of asked) {
      const { opened } = await source.open();
      for (const id of Object.keys(opened.plugins)) this.#named.set(id, source);
    }
    for (const wanted of this.#request.oci ?? []) {
      const source = this.#set.oci(wanted);
      const { plugins } = await source.open();
      for (const id of Object.keys(plugins)) this.#named.set(id, source);
    }
    for (const [id, plugin] of Object.entries(this.#request.previous.plugins)) {
      const locked = this.#request.previous.packages[plugin.package]?.source;
      if (this.#named.has(id)) continue;
      if (locked?.kind === "path") this.#named.set(id, this.#set.directory(locked.path));
      if (locked?.kind === "oci") this.#named.set(id, this.#ofOci(id, locked));
    }
  }

  /** The source of a locked package: of its locked manifest, or of the one that its reference names now. */
  #ofOci(id: string, locked: Extract<LockedSource, { kind: "oci" }>): Source {
    const { update, previous, requirements } = this.#request;
    const own = previous.plugins[id].package;
    const isUpdated = update === "all" ||
      update !== undefined && [...update].some((other) => previous.plugins[other]?.package === own);
    if (!isUpdated || locked.reference.includes("@")) return this.#set.oci(locked);
    const { manifest: _, ...wanted } = locked;
    return this.#set.oci(wanted, requirements[id]);
  }

  of(id: string): Source {
    let source = this.#used.get(id);
    if (source === undefined) {
      const plugin = this.#request.previous.plugins[id];
      const locked: LockedSource | undefined = plugin === undefined
        ? undefined
        : this.#request.previous.packages[plugin.package]?.source;
      source = this.#named.get(id) ?? (locked?.kind === "registry" ? this.#set.locked(locked) : this.#set.forId(id));
      this.#used.set(id, source);
    }
    return source;
  }

  registry(id: string): ReturnType<SourceSet["forId"]> {
    return this.#set.forId(id);
  }

  async load(ids: readonly string[]): Promise<Map<string, readonly Release[] | undefined>> {
    const answers = await Promise.all(ids.map(async (id) => [id, await this.#releases(id)] as const));
    return new Map(answers);
  }

  async #releases(id: string): Promise<readonly Release[] | undefined> {
    try {
      return await this.of(id).releases(id);
    } catch (error) {
      const kept = this.#context.offline ? this.#lockedRelease(id) : undefined;
      if (kept === undefined) throw error;
      return [kept];
    }
  }

  /** The release of a locked plugin, built from the lockfile alone, for offline use. */
  #lockedRelease(id: string): Release | undefined {
    const plugin = this.#request.previous.plugins[id];
    const pack = plugin === undefined ? undefined : this.#request.previous.packages[plugin.package];
    if (plugin === undefined || pack === undefined) return undefined;
    return {
      id,
      version: pack.version,
      package: plugin.package,
      definitionDigest: definitionDigest(plugin.definition),
      requires: plugin.definition.requires,
      compatibility: plugin.definition.compatibility,
      artifact: pack.artifact,
      ...(pack.publisher === undefined ? {} : { publisher: pack.publisher }),
    };
  }
}

/**
 * Throws when the archive of a locked version has a different digest now: versions are immutable, so it was replaced.
 */
function keepsItsDigest(release: Release, previous: Previous, source: Source): void {
  const locked = previous.packages[release.package];
  if (locked?.version !== release.version || locked.source.kind === "path" || source.locked.kind === "path") return;
  if (locked.artifact.digest === release.artifact.digest) return;
  throw fail(
    "integrity.republished",
    `${release.package} ${release.version} is locked as ${locked.artifact.digest}, but ${source.name} now offers ${release.artifact.digest}`,
    {
      help:
        "versions are immutable: find out who changed it; to go on, remove the package with `waft rm` and add it again",
    },
  );
}

function isLocked(release: Release, previous: Previous): boolean {
  const locked = previous.packages[release.package];
  return locked?.version === release.version && locked.artifact.digest === release.artifact.digest;
}

async function checkAllLinks(context: OpsContext, found: FetchedPackages["found"]): Promise<void> {
  if (context.inspect === undefined) return;
  const diagnostics: Diagnostic[] = [];
  for (const id of Object.keys(found).sort()) {
    const { definition, entry, bytes } = found[id];
    try {
      diagnostics.push(...checkLinks(definition, await context.inspect(bytes), entry.path));
    } catch (error) {
      if (!(error instanceof InspectionError)) throw error;
      diagnostics.push({
        code: "link.module",
        severity: "error",
        message: `${id}: ${entry.path} is not a valid module: ${error.message}`,
        file: entry.path,
      });
    }
  }
  if (diagnostics.length > 0) throw new ProjectError(diagnostics);
}

async function bindAll(
  request: PrepareRequest,
  found: FetchedPackages["found"],
  sources: Sources,
): Promise<{ readonly [id: string]: PreparedPlugin["bindings"] }> {
  const definitions: { [id: string]: Definition } = Object.create(null);
  for (const id of Object.keys(found)) definitions[id] = found[id].definition;
  // Previous bindings persist while they fit; the command line takes precedence.
  const choices = new Map<string, readonly string[]>();
  for (const [id, plugin] of Object.entries(request.previous.plugins)) {
    for (const [namespace, providers] of Object.entries(plugin.bindings)) {
      const many = definitions[id]?.consumes.find((c) => `${c.id}@${c.major}` === namespace)?.mode === "many";
      if (!many) choices.set(`${id} ${namespace}`, providers);
    }
  }
  for (const [key, providers] of request.bind ?? []) {
    for (const known of [...choices.keys()]) if (known.endsWith(` ${key}`)) choices.delete(known);
    choices.set(key, providers);
  }
  const plan = bindContracts(definitions, choices);
  const diagnostics: Diagnostic[] = [];
  for (const q of plan.ambiguous) {
    diagnostics.push({
      code: "binding.choice",
      severity: "error",
      message: `${q.consumer} takes one provider of ${q.namespace}, and there are ${q.candidates.length}: ${
        q.candidates.join(", ")
      }`,
      help: `choose with --bind '${q.namespace}=${q.candidates[0]}'`,
    });
  }
  for (const q of plan.unbound) diagnostics.push(await unbound(q, sources));
  if (diagnostics.length > 0) throw new ProjectError(diagnostics);
  return plan.bindings;
}

async function unbound(q: BindingQuestion, sources: Sources): Promise<Diagnostic> {
  const known = await sources.registry(q.consumer).providers(q.namespace);
  const unfit = q.unfit.map((u) => `${u.id}: ${u.reason}`).join("; ");
  const help = known.length > 0
    ? `known providers: ${known.join(", ")}; add one of them`
    : "add a plugin that provides it; contracts pull nothing in by themselves";
  return {
    code: "binding.unbound",
    severity: "error",
    message: `${q.consumer} requires ${q.namespace}, which no plugin of the project provides${
      unfit === "" ? "" : ` (${unfit})`
    }`,
    help,
  };
}

/**
 * The decisions that the last review still covers: narrowed grants, and denials of authorities that are still
 * requested.
 */
function carriedDecision(
  definition: Definition,
  id: string,
  previous: Previous,
): { grants: { [name: string]: JsonObject }; denied: string[] } {
  const before = previous.reviewed.get(id);
  const grants: { [name: string]: JsonObject } = Object.create(null);
  const denied: string[] = [];
  if (before === undefined || !before.intact) return { grants, denied };
  for (const request of definition.authorities) {
    const old = before.plugin.grants[request.name];
    const kind = findAuthority(request.name)?.scope ?? "none";
    const narrowed = old === undefined ? undefined : narrowGrant(kind, scopeOf(request), old);
    if (narrowed !== undefined) grants[request.name] = narrowed;
    else if (before.plugin.denied.includes(request.name)) denied.push(request.name);
  }
  return { grants, denied };
}

function configFor(id: string, definition: Definition, request: PrepareRequest): JsonObject {
  const old = request.previous.plugins[id]?.config ?? {};
  const config = Object.assign(Object.create(null) as JsonObject, old, request.config?.get(id));
  const faults = checkConfig(config, definition.configSchema, `/plugins/${id.replaceAll("/", "~1")}/config`);
  if (faults.length > 0) {
    throw new ProjectError(faults.map((v) => ({
      code: "lock.config",
      severity: "error",
      message: `${v.message} (rule: ${v.rule})`,
      pointer: v.pointer,
      help: `set it with --set '${id}:<key>=<value>'`,
    })));
  }
  return config;
}
