/**
 * Projects of plugins in text form, linked as by a lockfile, and guests that run with them. Tests only.
 *
 * In: plugin texts with their requests, grants and bindings. Out: a LoadedProject whose link tables come from the
 * functions that real projects use, or the ProjectError of an import that cannot be linked.
 */
import { NewEngine } from "@waft/engine";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findAuthority, fullGrant } from "../../project/definitions/authorities.ts";
import { loadOrder } from "../../project/definitions/contracts.ts";
import {
  type ConsumedContract,
  type ContractFunction,
  contractInterfaces,
  type DefinedWorld,
  type Definition,
  scopeOf,
} from "../../project/definitions/definition.ts";
import { inspectComponent } from "../../project/definitions/component_inspector.ts";
import { asCallersSee, checkLinks } from "../../project/definitions/link_check.ts";
import type { InspectedModule } from "../../project/definitions/module_inspector.ts";
import { isComponent } from "../../component/binary/section_ids.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import * as runtime from "../../project/plugins/component_plugin.ts";
import { type Diagnostic, ProjectError } from "../../project/base/diagnostic.ts";
import { assemble, inspectModule } from "../../project/definitions/engine_inspector.ts";
import { type Digest, digestBytes, jcs } from "../../project/base/integrity.ts";
import type { JsonObject } from "../../project/base/json_read.ts";
import type { LoadedPlugin, LoadedProject } from "../../project/plugins/load.ts";
import { effectiveGrants, guestLinks, linkEntry } from "../../project/plugins/plugin_grants.ts";
import { type Guest, type HostOptions, type InstanceGraph, PluginHost } from "../../project/plugins/plugin_host.ts";
import { definition } from "../project/sample_plugins.ts";

/** Id of the plugin, and of its contract, in most tests. */
export const PLUGIN = "t.example/p";
export const CONTRACT = "t.example/c";

/** A plugin of a test. */
export interface TestPlugin {
  readonly id?: string;
  /** The module or component, as text or in binary form. */
  readonly wat: string | Uint8Array;
  /** The interface that a component exports for the contract. */
  readonly interface?: string;
  /** Functions of the contract that it provides, `name params->results` each, such as `go i32,i32->i32`. */
  readonly provides?: readonly string[];
  readonly contract?: string;
  readonly namespaces?: readonly string[];
  readonly consumes?: readonly ConsumedContract[];
  /** Requested authorities with their scopes, all required unless listed in `optional`. */
  readonly requests?: { readonly [authority: string]: JsonObject };
  readonly optional?: readonly string[];
  /** Granted authorities; default: all requests in full. */
  readonly grants?: { readonly [authority: string]: JsonObject };
  readonly bindings?: { readonly [namespace: string]: readonly string[] };
  readonly config?: JsonObject;
  readonly maxMemoryPages?: number;
  /** The world that its definition lists; default: that of the component. */
  readonly world?: DefinedWorld;
}

/** `name params->results` as a contract function. */
export function contractFunction(text: string): ContractFunction {
  const [name, type] = text.split(" ") as [string, string];
  const [params, results] = type.split("->") as [string, string];
  const list = (types: string): string[] => types === "" ? [] : types.split(",");
  return { name, params: list(params), results: list(results) };
}

/** A project of these plugins; throws a ProjectError for imports that nothing links. */
export function projectOf(plugins: readonly TestPlugin[], root: string): LoadedProject {
  const set: { [id: string]: ReturnType<typeof lockedPlugin> } = {};
  for (const plugin of plugins) set[plugin.id ?? PLUGIN] = lockedPlugin(plugin);
  const order = loadOrder(set);
  if ("cycle" in order) throw new Error(`cycle ${order.cycle.join(" ")}`);
  const diagnostics: Diagnostic[] = [];
  const loaded: LoadedPlugin[] = order.order.map((id) => {
    const locked = set[id];
    const { bytes, module } = locked;
    const links = linkEntry(locked, module);
    diagnostics.push(...links.diagnostics);
    if (module.world !== undefined) diagnostics.push(...checkLinks(locked.definition, module, "x.wasm"));
    const hooks = Object.keys(effectiveGrants(locked, [])).flatMap((name) => findAuthority(name)?.hooks ?? []);
    return {
      id,
      version: "1.0.0",
      bytes,
      digest: digestBytes(bytes),
      module,
      links: links.links,
      config: new TextEncoder().encode(jcs(locked.config)),
      maxMemoryPages: locked.maxMemoryPages,
      ...componentPart(locked.definition, module),
      hooks: hooks.filter((hook) => module.exports.some((e) => e.name === `waft:hooks@1#${hook}`)),
    };
  });
  if (diagnostics.length > 0) throw new ProjectError(diagnostics);
  const bindings: { [namespace: string]: string } = {};
  for (const [id, { definition }] of Object.entries(set)) {
    for (const p of definition.provides) for (const n of [`${p.id}@1`, ...p.namespaces ?? []]) bindings[n] = id;
  }
  return { root, settings: {}, plugins: loaded, guest: guestLinks(bindings, set), warnings: [] };
}

function componentPart({ provides }: Definition, { world }: InspectedModule): Pick<LoadedPlugin, "component"> {
  return world === undefined ? {} : { component: { runtime, provides: contractInterfaces(provides) } };
}

function entryOf({ wat }: TestPlugin): { bytes: Uint8Array; module: InspectedModule } {
  const bytes = typeof wat !== "string" ? wat : wat.startsWith("(component") ? componentToBinary(wat) : assemble(wat);
  return { bytes, module: isComponent(bytes) ? inspectComponent(bytes) : inspectModule(bytes) };
}

function lockedPlugin(plugin: TestPlugin) {
  const { bytes, module } = entryOf(plugin);
  const { world } = module;
  const requests = plugin.requests ?? {};
  const id = plugin.id ?? PLUGIN;
  const made = definition(id, "1.0.0", {
    authorities: Object.entries(requests).map(([name, scope]) => ({
      name,
      mode: plugin.optional?.includes(name) ? "optional" as const : "required" as const,
      reason: "test",
      scope,
    })),
    provides: plugin.provides === undefined ? [] : [{
      id: plugin.contract ?? CONTRACT,
      major: 1,
      functions: plugin.provides.map(contractFunction),
      ...(plugin.interface === undefined ? {} : { interface: plugin.interface }),
      ...(plugin.namespaces === undefined ? {} : { namespaces: [...plugin.namespaces] }),
    }],
    consumes: [...plugin.consumes ?? []],
    ...(world === undefined && plugin.world === undefined ? {} : {
      world: plugin.world ?? {
        imports: world!.imports.map((i) => i.name),
        exports: world!.exports.map((e) => e.name),
      },
    }),
  });
  const full = Object.fromEntries(
    made.authorities.map((a) => [a.name, fullGrant(findAuthority(a.name)!.scope, scopeOf(a))]),
  );
  const grants = plugin.grants ?? full;
  return {
    bytes,
    module: asCallersSee(made, module),
    definition: made,
    grants,
    denied: Object.keys(requests).filter((name) => !(name in grants)),
    bindings: plugin.bindings ?? {},
    config: plugin.config ?? {},
    maxMemoryPages: plugin.maxMemoryPages ?? 16,
  };
}

const engine = NewEngine({ bounds: "explicit", interruptible: true, fuel: true });

/** A running test project. */
export interface Running {
  readonly graph: InstanceGraph;
  readonly root: string;
  readonly logged: string[];
  call(name: string, ...args: unknown[]): unknown;
}

/** Options of `withPlugins`. */
export interface RunChoices extends HostOptions {
  readonly guest?: Partial<Guest>;
  /** Fills the project folder before the plugins are instantiated. */
  readonly prepare?: (root: string) => void;
}

/** Compiles a guest in text form. */
export function guestModule(wat: string): { readonly module: Guest["module"]; readonly digest: Digest } {
  const bytes = new TextEncoder().encode(wat);
  return { module: engine.compile(wat), digest: digestBytes(bytes) };
}

/** Runs `work` with a guest and plugins in a temporary project folder. */
export function withPlugins(
  plugins: readonly TestPlugin[],
  guest: string,
  work: (running: Running) => void,
  choices: RunChoices = {},
): void {
  const root = mkdtempSync(join(tmpdir(), "waft-plugins-"));
  const logged: string[] = [];
  const { prepare, guest: more, ...hostOptions } = choices;
  let graph: InstanceGraph | undefined;
  try {
    prepare?.(root);
    const project = projectOf(plugins, root);
    const log = (plugin: string, level: number, text: string) => void logged.push(`${plugin} ${level} ${text}`);
    const host = new PluginHost(project, engine, { log, ...hostOptions });
    graph = host.start({ ...guestModule(guest), args: ["guest.wasm"], ...more });
    const live = graph;
    work({ graph, root, logged, call: (name, ...args) => live.call({}, name, ...args) });
  } finally {
    graph?.close();
    rmSync(root, { recursive: true, force: true });
  }
}

/** A host for these plugins, for tests that supply the guests. */
export function hostOf(plugins: readonly TestPlugin[], root: string, options: HostOptions = {}): PluginHost {
  return new PluginHost(projectOf(plugins, root), engine, options);
}

/** Code of the first finding that `action` throws, or "ok". */
export function findingOf(action: () => void): string {
  try {
    action();
    return "ok";
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    return error.diagnostics[0].code;
  }
}
