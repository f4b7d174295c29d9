/**
 * Contracts, bindings, load order and reach.
 *
 * In: a set of plugins with their definitions and, once made, their bindings. Out: the possible providers of each
 * contract, the bindings that need no choice, faults of given bindings, the order in which plugins start, and the
 * providers (with their grants) that a plugin can act through. Several candidates always need an explicit choice; the
 * first never wins by default.
 */
import { type ConsumedContract, contractNamespace, type Definition, type ProvidedContract } from "./definition.ts";
import type { JsonObject } from "../base/json_read.ts";
import { formatType, sameType } from "./module_inspector.ts";

/** The properties of a plugin that decide its bindings. */
export interface BoundPlugin {
  readonly definition: Definition;
  readonly grants: { readonly [name: string]: JsonObject };
  readonly bindings: { readonly [namespace: string]: readonly string[] };
}

/** Plugins by id. */
export type PluginSet = { readonly [id: string]: BoundPlugin };

/** The reason why a provider does not fit a consumer; undefined if it does. */
export function mismatch(consumed: ConsumedContract, provided: ProvidedContract | undefined): string | undefined {
  if (provided === undefined) return "it does not provide this contract";
  for (const f of consumed.functions) {
    const own = provided.functions.find((g) => g.name === f.name);
    if (own === undefined) return `it has no function "${f.name}"`;
    if (!sameType(f, own)) return `"${f.name}" is ${formatType(own)} there and ${formatType(f)} here`;
  }
  return undefined;
}

/** The contract of a plugin with that namespace. */
export function providedAs(definition: Definition, namespace: string): ProvidedContract | undefined {
  return definition.provides.find((p) => contractNamespace(p) === namespace);
}

/** Ids of the plugins that fit a consumed contract, in code-unit order; a plugin never provides to itself. */
function candidates(
  consumer: string,
  consumed: ConsumedContract,
  definitions: { readonly [id: string]: Definition },
): string[] {
  const namespace = contractNamespace(consumed);
  return Object.keys(definitions).sort().filter((id) =>
    id !== consumer && mismatch(consumed, providedAs(definitions[id], namespace)) === undefined
  );
}

/** A binding that needs a choice, or a required one without a provider. */
export interface BindingQuestion {
  readonly consumer: string;
  readonly namespace: string;
  readonly mode: ConsumedContract["mode"];
  readonly candidates: readonly string[];
  /** Plugins that provide the namespace but do not fit, with the reason. */
  readonly unfit: readonly { readonly id: string; readonly reason: string }[];
}

/** The result of binding all contracts of a set. */
interface BindingPlan {
  readonly bindings: { readonly [consumer: string]: { readonly [namespace: string]: string[] } };
  /** Several candidates and no choice. */
  readonly ambiguous: readonly BindingQuestion[];
  /** Required and no candidate. */
  readonly unbound: readonly BindingQuestion[];
}

/** Binds every consumed contract: to the choice for `consumer namespace` or `namespace`, else to the only candidate. */
export function bindContracts(
  definitions: { readonly [id: string]: Definition },
  choices: ReadonlyMap<string, readonly string[]>,
): BindingPlan {
  const bindings: { [id: string]: { [namespace: string]: string[] } } = Object.create(null);
  const ambiguous: BindingQuestion[] = [];
  const unbound: BindingQuestion[] = [];
  for (const consumer of Object.keys(definitions).sort()) {
    const own = bindings[consumer] = Object.create(null) as { [namespace: string]: string[] };
    for (const consumed of definitions[consumer].consumes) {
      const namespace = contractNamespace(consumed);
      const fit = candidates(consumer, consumed, definitions);
      const chosen = (choices.get(`${consumer} ${namespace}`) ?? choices.get(namespace))?.filter((id) =>
        fit.includes(id)
      );
      const unfit = Object.keys(definitions).sort().filter((id) => id !== consumer && !fit.includes(id)).flatMap(
        (id) => {
          const provided = providedAs(definitions[id], namespace);
          return provided === undefined ? [] : [{ id, reason: mismatch(consumed, provided)! }];
        },
      );
      const question = { consumer, namespace, mode: consumed.mode, candidates: fit, unfit };
      if (consumed.mode === "many") own[namespace] = [...(chosen ?? fit)].sort();
      else if (chosen !== undefined && chosen.length === 1) own[namespace] = [chosen[0]];
      else if (fit.length === 1) own[namespace] = [fit[0]];
      else if (fit.length > 1) ambiguous.push(question);
      else if (consumed.mode === "required") unbound.push(question);
    }
  }
  return { bindings, ambiguous, unbound };
}

/**
 * The guest-side namespaces that plugins offer: contract namespaces and granted legacy ones, each with its providers.
 */
export function guestOffers(plugins: PluginSet, direct: ReadonlySet<string>): Map<string, string[]> {
  const offers = new Map<string, string[]>();
  const offer = (namespace: string, id: string): void => {
    const known = offers.get(namespace);
    if (known === undefined) offers.set(namespace, [id]);
    else if (!known.includes(id)) known.push(id);
  };
  for (const id of Object.keys(plugins).sort()) {
    if (!direct.has(id)) continue;
    const { definition, grants } = plugins[id];
    for (const provided of definition.provides) {
      offer(contractNamespace(provided), id);
      for (const namespace of provided.namespaces ?? []) if (definesNamespace(grants, namespace)) offer(namespace, id);
    }
  }
  return offers;
}

/** True when the grants let the plugin appear under a legacy namespace. */
export function definesNamespace(grants: { readonly [name: string]: JsonObject }, namespace: string): boolean {
  const scope = Object.hasOwn(grants, "import.define") ? grants["import.define"] : undefined;
  return Array.isArray(scope?.namespaces) && scope.namespaces.includes(namespace);
}

/** The reason why a plugin cannot serve a guest namespace; undefined if it can. */
export function guestMismatch(plugin: BoundPlugin, namespace: string): string | undefined {
  for (const provided of plugin.definition.provides) {
    if (contractNamespace(provided) === namespace) return undefined;
    if (provided.namespaces?.includes(namespace) === true) {
      return definesNamespace(plugin.grants, namespace) ? undefined : "import.define is not granted for it";
    }
  }
  return "it does not provide this namespace";
}

/** Start order, or the cycle that forbids one: topological over requires and bindings, ties in code-unit order. */
export function loadOrder(plugins: PluginSet): { readonly order: string[] } | { readonly cycle: string[] } {
  const state = new Map<string, "open" | "done">();
  const order: string[] = [];
  const path: string[] = [];
  for (const root of Object.keys(plugins).sort()) {
    // An explicit stack: a long chain of plugins must not overflow the stack of JavaScript.
    const stack: { id: string; next: string[] }[] = [];
    const enter = (id: string): void => {
      state.set(id, "open");
      path.push(id);
      stack.push({ id, next: dependenciesOf(plugins[id]).filter((d) => Object.hasOwn(plugins, d)) });
    };
    if (!state.has(root)) enter(root);
    while (stack.length > 0) {
      const top = stack.at(-1)!;
      const next = top.next.shift();
      if (next === undefined) {
        stack.pop();
        path.pop();
        state.set(top.id, "done");
        order.push(top.id);
      } else if (state.get(next) === "open") return { cycle: [...path.slice(path.indexOf(next)), next] };
      else if (!state.has(next)) enter(next);
    }
  }
  return { order };
}

function dependenciesOf(plugin: BoundPlugin): string[] {
  const all = new Set(Object.keys(plugin.definition.requires));
  for (const namespace of Object.keys(plugin.bindings)) for (const id of plugin.bindings[namespace]) all.add(id);
  return [...all].sort();
}

/** The providers that a plugin can reach through bindings, directly or transitively, with their grants. */
export function reachOf(
  id: string,
  plugins: PluginSet,
): { [provider: string]: { readonly [name: string]: JsonObject } } {
  const reach: { [provider: string]: { readonly [name: string]: JsonObject } } = Object.create(null);
  const open = [id];
  while (open.length > 0) {
    const plugin = plugins[open.pop()!];
    for (const namespace of Object.keys(plugin?.bindings ?? {})) {
      for (const provider of plugin!.bindings[namespace]) {
        if (provider === id || provider in reach || plugins[provider] === undefined) continue;
        reach[provider] = plugins[provider].grants;
        open.push(provider);
      }
    }
  }
  return reach;
}
