/**
 * From grants and bindings to link tables: the link target of each import of a plugin, and of each plugin namespace of
 * a guest.
 *
 * In: a locked plugin (definition, grants, denials, bindings), the imports of its module or component, and the
 * machine's policy. Out: one entry per import with its link target and scope, or a finding for an import without a
 * link. Pure: plugin_host.ts turns entries into functions. The sandbox depends on this invariant: an import without an
 * entry is a link error before any code runs, and entries come only from this table.
 */
import { findAuthority, HOST_FUNCTIONS, HOST_NAMESPACES, STATUS } from "../definitions/authorities.ts";
import { definesNamespace, guestMismatch } from "../definitions/contracts.ts";
import { contractNamespace, type Definition } from "../definitions/definition.ts";
import { type Diagnostic, quote } from "../base/diagnostic.ts";
import { emptyObject, type JsonObject } from "../base/json_read.ts";
import {
  formatType,
  type FunctionType,
  type InspectedModule,
  type ModuleImport,
  sameType,
  type WorldItem,
} from "../definitions/module_inspector.ts";
import { hostInterface } from "../definitions/wit_interfaces.ts";

/** The link target of an import. */
type LinkTarget =
  /** The plugin's own namespace, which is always linked. */
  | { readonly kind: "self" }
  /** A host function, with every granted authority that opens it and its scope. */
  | { readonly kind: "host"; readonly grants: { readonly [authority: string]: JsonObject } }
  /** The caller's exported memory itself. */
  | { readonly kind: "caller-memory" }
  /** A stub that returns the documented "denied" status. */
  | { readonly kind: "denied"; readonly status: number; readonly reason: string }
  /** An export of a single provider; for a whole interface, the namespace of its contract. */
  | { readonly kind: "provider"; readonly provider: string; readonly export: string }
  /** An export of one of several providers, chosen by the leading i32; `ordinals[i]` provides ordinal i. */
  | { readonly kind: "providers"; readonly ordinals: readonly string[]; readonly export: string }
  /** The number of providers. */
  | { readonly kind: "count"; readonly value: number };

/** A linked import. */
export interface Link {
  readonly module: string;
  readonly name: string;
  readonly type?: FunctionType;
  readonly target: LinkTarget;
}

/** The links of a plugin. */
interface PluginLinks {
  readonly links: readonly Link[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The part of a locked plugin that linking needs. */
interface GrantedPlugin {
  readonly definition: Definition;
  readonly grants: { readonly [name: string]: JsonObject };
  readonly denied: readonly string[];
  readonly bindings: { readonly [namespace: string]: readonly string[] };
}

/**
 * Grants after the machine's policy: an authority that the policy denies is not granted, regardless of the
 * lockfile.
 */
export function effectiveGrants(plugin: GrantedPlugin, policyDeny: readonly string[]): { [name: string]: JsonObject } {
  const grants: { [name: string]: JsonObject } = Object.create(null);
  for (const name of Object.keys(plugin.grants)) {
    if (!policyDeny.includes(name) && findAuthority(name) !== undefined) grants[name] = plugin.grants[name];
  }
  return grants;
}

/** Required authorities that are not granted: the plugin cannot be used, and `run` refuses. */
export function missingAuthorities(plugin: GrantedPlugin, policyDeny: readonly string[]): string[] {
  const grants = effectiveGrants(plugin, policyDeny);
  return plugin.definition.authorities.filter((a) => a.mode === "required" && !(a.name in grants)).map((a) => a.name);
}

/** Links every import of a plugin's module. */
export function linkPlugin(
  plugin: GrantedPlugin,
  imports: readonly ModuleImport[],
  policyDeny: readonly string[] = [],
): PluginLinks {
  const { definition } = plugin;
  const grants = effectiveGrants(plugin, policyDeny);
  const links: Link[] = [];
  const diagnostics: Diagnostic[] = [];
  const refuse = (item: ModuleImport, reason: string): void => {
    diagnostics.push({
      code: "link.unlinked",
      severity: "error",
      message: `${definition.id}: the import ${quote(item.module)} ${quote(item.name)} cannot be linked: ${reason}`,
    });
  };
  for (const item of imports) {
    const target = targetOf(item, plugin, grants);
    if (typeof target === "string") refuse(item, target);
    else {links.push({
        module: item.module,
        name: item.name,
        ...(item.type === undefined ? {} : { type: item.type }),
        target,
      });}
  }
  return { links, diagnostics };
}

/** Links every import of a plugin's entry: of a module, or the interfaces that a component imports. */
export function linkEntry(
  plugin: GrantedPlugin,
  module: Pick<InspectedModule, "imports" | "world">,
  policyDeny: readonly string[] = [],
): PluginLinks {
  const { world } = module;
  if (world === undefined) return linkPlugin(plugin, module.imports, policyDeny);
  const grants = effectiveGrants(plugin, policyDeny);
  const links: Link[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const item of world.imports) {
    const target = interfaceTarget(item, plugin, grants);
    if (typeof target !== "string") links.push({ module: item.name, name: WHOLE_INTERFACE, target });
    else {
      const message = `${plugin.definition.id}: the import ${quote(item.name)} cannot be linked: ${target}`;
      diagnostics.push({ code: "link.unlinked", severity: "error", message });
    }
  }
  return { links, diagnostics };
}

/** The name of a link that stands for all functions of an interface. */
export const WHOLE_INTERFACE = "*";

/** The target of an imported interface, or the reason for having none. */
function interfaceTarget(
  item: WorldItem,
  plugin: GrantedPlugin,
  grants: { readonly [name: string]: JsonObject },
): LinkTarget | string {
  if (item.kind !== "interface") return `it is a ${item.kind}, not an interface`;
  const contract = plugin.definition.consumes.find((c) => c.interface === item.name);
  if (contract !== undefined) {
    const namespace = contractNamespace(contract);
    const [provider] = plugin.bindings[namespace] ?? [];
    if (provider !== undefined) return { kind: "provider", provider, export: namespace };
    return contract.mode === "optional"
      ? { kind: "denied", status: STATUS.denied, reason: "no provider is bound" }
      : "no provider is bound";
  }
  const row = hostInterface(item.name);
  return typeof row === "string" ? row : hostTarget(row.authorities, STATUS.denied, plugin, grants);
}

/** The target of an import of the host that any of `authorities` opens; `denied` is the result of its stub. */
function hostTarget(
  authorities: readonly string[],
  denied: number,
  plugin: GrantedPlugin,
  grants: { readonly [name: string]: JsonObject },
): LinkTarget | string {
  if (authorities.length === 0) return { kind: "self" };
  const open: { [authority: string]: JsonObject } = Object.create(null);
  for (const name of authorities) if (name in grants) open[name] = grants[name] ?? emptyObject();
  if (Object.keys(open).length > 0) return { kind: "host", grants: open };
  // Only an optional request gets a stub. A missing required authority stops the plugin; an unrequested one fails the
  // link.
  const optional = plugin.definition.authorities.find((a) => authorities.includes(a.name) && a.mode === "optional");
  if (optional === undefined) return `it needs ${authorities.join(" or ")}, which is not granted`;
  return { kind: "denied", status: denied, reason: `${optional.name} is denied` };
}

/** The target of an import, or the reason for having none. */
function targetOf(
  item: ModuleImport,
  plugin: GrantedPlugin,
  grants: { readonly [name: string]: JsonObject },
): LinkTarget | string {
  const contract = plugin.definition.consumes.find((c) => contractNamespace(c) === item.module);
  if (contract !== undefined) {
    if (item.kind !== "function") return "contracts have functions only";
    const providers = [...plugin.bindings[item.module] ?? []].sort();
    const many = contract.mode === "many";
    if (many && item.name === "#count") return { kind: "count", value: providers.length };
    const declared = contract.functions.find((f) => f.name === item.name);
    if (declared === undefined) return "the definition does not list it";
    const expected = many ? { params: ["i32", ...declared.params], results: declared.results } : declared;
    if (item.type === undefined || !sameType(item.type, expected)) return `its type is not ${formatType(expected)}`;
    const name = `${item.module}#${item.name}`;
    if (many) return { kind: "providers", ordinals: providers, export: name };
    if (providers.length === 1) return { kind: "provider", provider: providers[0], export: name };
    return contract.mode === "optional"
      ? { kind: "denied", status: 3, reason: "no provider is bound" }
      : "no provider is bound";
  }
  if (!HOST_NAMESPACES.has(item.module)) return "no grant and no bound contract links this namespace";
  if (item.module === "waft:caller@1" && item.name === "memory" && item.kind === "memory") {
    const both = "caller.memory.read" in grants && "caller.memory.write" in grants;
    return both ? { kind: "caller-memory" } : "it needs caller.memory.read and caller.memory.write";
  }
  const host = item.kind === "function" ? HOST_FUNCTIONS.get(`${item.module}#${item.name}`) : undefined;
  if (host === undefined) return "the host has no such function";
  if (item.type === undefined || !sameType(item.type, host.type)) return `its type is not ${formatType(host.type)}`;
  return hostTarget(host.authorities, host.denied, plugin, grants);
}

/** A namespace that guests can import from, and its target. */
export interface GuestLink {
  readonly module: string;
  readonly name: string;
  readonly type: FunctionType;
  readonly provider: string;
  readonly export: string;
}

/** Every function that plugins offer to guests through the lockfile's guest bindings. */
export function guestLinks(
  bindings: { readonly [namespace: string]: string },
  plugins: { readonly [id: string]: GrantedPlugin },
  policyDeny: readonly string[] = [],
): GuestLink[] {
  const links: GuestLink[] = [];
  for (const namespace of Object.keys(bindings).sort()) {
    const provider = bindings[namespace];
    const plugin = plugins[provider];
    if (plugin === undefined) continue;
    const grants = effectiveGrants(plugin, policyDeny);
    if (guestMismatch({ ...plugin, grants }, namespace) !== undefined) continue;
    const contract = plugin.definition.provides.find((p) =>
      contractNamespace(p) === namespace ||
      p.namespaces?.includes(namespace) === true && definesNamespace(grants, namespace)
    );
    for (const f of contract?.functions ?? []) {
      links.push({
        module: namespace,
        name: f.name,
        type: { params: f.params, results: f.results },
        provider,
        export: `${contractNamespace(contract!)}#${f.name}`,
      });
    }
  }
  return links;
}

/** Describes a link as a line of `plugin plan`. */
export function describeTarget(target: LinkTarget): string {
  switch (target.kind) {
    case "self":
      return "always linked";
    case "host":
      return `grant ${Object.keys(target.grants).sort().join(", ")}`;
    case "caller-memory":
      return "grant caller.memory.read, caller.memory.write";
    case "denied":
      return `denied stub (${target.reason})`;
    case "provider":
      return target.provider;
    case "providers":
      return target.ordinals.length === 0 ? "no provider" : target.ordinals.join(", ");
    case "count":
      return `the number ${target.value}`;
  }
}
