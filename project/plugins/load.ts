/**
 * Loads and checks everything needed to run a guest with the project's plugins. Runs no guest or plugin code.
 *
 * In: a project. Out: plugins in start order with their module's bytes, link tables and configuration, and the
 * guest's plugin namespaces; or every reason to refuse: any finding of the strict parse, a missing lockfile, grants
 * that the user of this machine never accepted, an artifact or module that differs from the locked one, an engine,
 * platform or policy that does not fit, a required authority that is denied, an import without a link. Uses no network
 * when the blobs are in the cache.
 */
import { findAuthority } from "../definitions/authorities.ts";
import { withDefaults } from "../definitions/config_schema.ts";
import { loadOrder } from "../definitions/contracts.ts";
import { contractInterfaces, type Definition } from "../definitions/definition.ts";
import { asCallersSee, checkLinks } from "../definitions/link_check.ts";
import { type Diagnostic, fail, ProjectError } from "../base/diagnostic.ts";
import { jcs } from "../base/integrity.ts";
import type { Lockfile } from "../lockfile/lock_schema.ts";
import type { InspectedModule } from "../definitions/module_inspector.ts";
import { effectiveGrants, guestLinks, linkEntry, missingAuthorities } from "./plugin_grants.ts";
import { missingLock, readProject, requireManifest, requirementsOf } from "../project.ts";
import type { Release } from "../packages/source.ts";
import { engineSatisfies } from "../base/version.ts";
import { type OpsContext, SourceSet } from "../packages/context.ts";
import { fetchPackage, inspectEntry, promisedPlugin } from "../packages/fetch.ts";
import { keptYanks } from "../packages/kept_yanks.ts";
import { type AskToAccept, requireAccepted } from "./acceptance.ts";
import type { ComponentRuntime } from "./component_part.ts";
import type { LoadedPlugin, LoadedProject } from "./loaded.ts";

/** Most pages of a plugin's memory when its definition sets no limit. */
export const DEFAULT_MEMORY_PAGES = 1024;

export type { LoadedPlugin, LoadedProject } from "./loaded.ts";

/** Options of loading. */
export interface LoadOptions {
  /** Refuse packages from paths, unless `allowPathPlugins`. */
  readonly locked?: boolean;
  /** Accept packages from paths even if `locked`. */
  readonly allowPathPlugins?: boolean;
  /** Accepts the lockfile whose grants have this digest, without a record on this machine. */
  readonly trust?: string;
  /**
   * Asks the user to accept the grants that no record covers; absent without a terminal.
   *
   * @internal
   */
  readonly ask?: AskToAccept;
  /**
   * Load these plugins, which call no others, instead of all.
   *
   * @internal
   */
  readonly only?: ReadonlySet<string>;
  /**
   * Whether these are the user's own plugins, for the help of errors.
   *
   * @internal
   */
  readonly user?: boolean;
}

/** Loads the plugins of a project; throws a ProjectError with every reason to refuse. */
export async function loadProject(
  context: OpsContext,
  root: string,
  options: LoadOptions = {},
): Promise<LoadedProject> {
  if (context.inspect === undefined) throw fail("link.uninspected", "this build cannot inspect modules");
  const state = await readProject(root, context.files);
  const { manifest } = requireManifest(state);
  const settings = manifest.settings ?? {};
  const requirements = requirementsOf(manifest);
  if (state.lock === undefined) {
    if (Object.keys(requirements).length > 0) throw new ProjectError([missingLock()]);
    await requireAccepted(context, root, undefined, options);
    return { root, settings, plugins: [], guest: [], warnings: [] };
  }
  const { lockfile } = state.lock;
  if (lockfile === undefined) throw new ProjectError(state.lock.diagnostics);
  refuseUnfit(context, lockfile, options);
  await requireAccepted(context, root, lockfile, options);
  const order = loadOrder(lockfile.plugins);
  if ("cycle" in order) throw fail("lock.reference", order.cycle.join(" -> "));
  const plugins: LoadedPlugin[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const id of order.order) {
    if (options.only?.has(id) === false) continue;
    plugins.push(await loadPlugin(context, root, lockfile, id, diagnostics));
  }
  if (diagnostics.length > 0) throw new ProjectError(diagnostics);
  const guest = guestLinks(lockfile.guest.bindings, lockfile.plugins, context.machine.policy.deny);
  const { wasi } = lockfile.guest;
  const warnings = await keptYanks(context, root, lockfile);
  return { root, settings, plugins, guest, lockfile, warnings, ...(wasi === undefined ? {} : { wasi }) };
}

/** The checks that need no package contents. */
function refuseUnfit(context: OpsContext, lock: Lockfile, options: LoadOptions): void {
  const { deny } = context.machine.policy;
  const found: Diagnostic[] = [];
  const add = (code: string, message: string, help?: string): void => {
    found.push({ code, severity: "error", message, ...(help === undefined ? {} : { help }) });
  };
  for (const [id, pack] of Object.entries(lock.packages)) {
    if (options.locked === true && options.allowPathPlugins !== true && pack.source.kind === "path") {
      add(
        "lock.path",
        `${id} comes from the path ${pack.source.path}, which --locked refuses`,
        "pass --allow-path-plugins, or publish it",
      );
    }
  }
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    const { engines, platforms } = plugin.definition.compatibility;
    for (const [name, range] of Object.entries(engines)) {
      const version = context.engines[name];
      if (version !== undefined && !engineSatisfies(version, range)) {
        add("incompatible.engine", `${id} needs ${name} ${range}; this is ${version}`);
      }
    }
    if (platforms.length > 0 && !platforms.includes(context.platform)) {
      add("incompatible.platform", `${id} is for ${platforms.join(", ")}; this is ${context.platform}`);
    }
    if (context.machine.runtime === "runner" && plugin.definition.world === undefined) {
      add(
        "incompatible.runtime",
        `${id} is a module, and this machine runs plugins in processes of their own, which only components can`,
        'set "runtime" to "prefer-runner" in config.json of the machine to run modules in the program\'s process',
      );
    }
    for (const name of missingAuthorities(plugin, deny)) {
      const policy = name in plugin.grants;
      add(
        policy ? "policy.denied" : "authority.denied",
        `${id} requires ${name}, which ${policy ? "this machine's policy" : "the review"} denies`,
        policy ? undefined : `run \`waft plugin grant ${id}\`, or remove the plugin`,
      );
    }
  }
  if (found.length > 0) throw new ProjectError(found);
}

async function loadPlugin(
  context: OpsContext,
  root: string,
  lock: Lockfile,
  id: string,
  diagnostics: Diagnostic[],
): Promise<LoadedPlugin> {
  const plugin = lock.plugins[id];
  const { definition } = plugin;
  const pack = lock.packages[plugin.package];
  const release: Release = {
    id,
    version: pack.version,
    package: plugin.package,
    definitionDigest: plugin.definitionDigest,
    requires: definition.requires,
    compatibility: definition.compatibility,
    artifact: pack.artifact,
  };
  const source = new SourceSet(context, root).locked(pack.source);
  if (pack.source.kind === "path") {
    // The cache may still hold the locked content; the current content of the directory decides.
    const now = await source.releases(id);
    if (now?.[0]?.artifact.digest !== pack.artifact.digest) {
      throw fail("lock.path-changed", `${plugin.package} in ${pack.source.path} changed since it was locked`, {
        help: "run `waft add`",
      });
    }
  }
  const { opened } = await fetchPackage(context, release, source);
  const held = promisedPlugin(opened, release);
  if (held.entry.digest !== plugin.entry.digest || held.entry.path !== plugin.entry.path) {
    throw fail("integrity.entry", `the module of ${id} is not the one that is locked`);
  }
  const module = asCallersSee(definition, await inspectEntry(context, plugin.entry.path, held.bytes));
  const { deny } = context.machine.policy;
  const linked = linkEntry(plugin, module, deny);
  diagnostics.push(...linked.diagnostics, ...lyingWorld(definition, module, plugin.entry.path));
  return {
    id,
    version: pack.version,
    bytes: held.bytes,
    digest: plugin.entry.digest,
    module,
    links: linked.links,
    config: new TextEncoder().encode(jcs(withDefaults(plugin.config, definition.configSchema))),
    maxMemoryPages: definition.limits.maxMemoryPages ?? DEFAULT_MEMORY_PAGES,
    hooks: hooksOf(Object.keys(effectiveGrants(plugin, deny)), module),
    ...await componentPart(context, definition, module),
  };
}

/** Findings about a component whose world differs from the one that was reviewed. */
function lyingWorld(definition: Definition, module: InspectedModule, file: string): Diagnostic[] {
  return module.world === undefined && definition.world === undefined ? [] : checkLinks(definition, module, file);
}

/** The code that runs a component as a plugin, which is loaded for components only. */
async function componentPart({ machine }: OpsContext, { provides }: Definition, module: InspectedModule) {
  if (module.world === undefined) return {};
  const runtime: ComponentRuntime = machine.runtime === "process"
    ? await import("./component_plugin.ts")
    : await import("./runner_plugin.ts");
  return { component: { runtime, provides: contractInterfaces(provides) } };
}

/** Hook exports that a granted authority covers; others are never called. */
function hooksOf(granted: readonly string[], module: InspectedModule): string[] {
  const allowed = granted.flatMap((name) => findAuthority(name)?.hooks ?? []);
  return allowed.filter((hook) =>
    module.exports.some((e) => e.kind === "function" && e.name === `waft:hooks@1#${hook}`)
  );
}
