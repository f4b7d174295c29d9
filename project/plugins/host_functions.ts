/**
 * Turns link-table entries into functions: maps each namespace to its function group, and each status to its result.
 *
 * In: one plugin of a graph and its links. Out: a function for each link that the host serves. Invariant of the
 * sandbox: a function is created only for a link whose target permits it, with that target's scopes. Functions that
 * return a count return the negated status, the others the status itself (authorities.ts, column "denied").
 */
import { HOST_FUNCTIONS } from "../definitions/authorities.ts";
import type { JsonObject } from "../base/json_read.ts";
import type { FunctionType } from "../definitions/module_inspector.ts";
import type { Link } from "./plugin_grants.ts";
import { callerFunctions } from "./caller.ts";
import { fileFunctions } from "./files.ts";
import { instanceFunctions } from "./instances.ts";
import {
  guestFunctions,
  monotonicClockFunctions,
  randomFunctions,
  stdioFunctions,
  wallClockFunctions,
} from "./machine.ts";
import { type HostBody, type HostFunctionGroup, type PluginNode, StatusError } from "./node.ts";
import { hookFunctions, selfFunctions } from "./self.ts";
import { socketFunctions } from "./sockets.ts";

const GROUPS: { readonly [namespace: string]: HostFunctionGroup } = {
  "waft:self@1": selfFunctions,
  "waft:hooks@1": hookFunctions,
  "waft:caller@1": callerFunctions,
  "waft:guest@1": guestFunctions,
  "waft:clock-wall@1": wallClockFunctions,
  "waft:clock-monotonic@1": monotonicClockFunctions,
  "waft:random@1": randomFunctions,
  "waft:stdio@1": stdioFunctions,
  "waft:fs@1": fileFunctions,
  "waft:net@1": socketFunctions,
  "waft:instance@1": instanceFunctions,
};

/** A function that a plugin imports. */
export type HostImport = (...args: never[]) => unknown;

/** The functions of every link of `node` that the host serves, by `namespace name`. */
export function hostImports(node: PluginNode): Map<string, HostImport> {
  const grants = new Map<string, { [authority: string]: JsonObject }>();
  for (const { module, target } of node.plugin.links) {
    if (target.kind !== "host" && target.kind !== "self") continue;
    grants.set(module, { ...grants.get(module), ...(target.kind === "host" ? target.grants : {}) });
  }
  const imports = new Map<string, HostImport>();
  const made = new Map<string, { readonly [name: string]: HostBody }>();
  for (const { module, name, target } of node.plugin.links) {
    if (target.kind !== "host" && target.kind !== "self") continue;
    let topic = made.get(module);
    if (topic === undefined) made.set(module, topic = GROUPS[module](node, grants.get(module)!));
    imports.set(`${module} ${name}`, guarded(topic[name], module, name));
  }
  return imports;
}

/** Turns StatusErrors into the status that the function's type has room for. */
function guarded(body: HostBody, namespace: string, name: string): HostImport {
  const row = HOST_FUNCTIONS.get(`${namespace}#${name}`)!;
  const counts = row.denied < 0 || namespace === "waft:self@1" || namespace === "waft:hooks@1";
  const wide = row.type.results[0] === "i64";
  const none = row.type.results.length === 0;
  const given = (result: number | bigint | void) => none ? undefined : wide ? BigInt(result!) : result;
  const failed = (error: unknown) => {
    if (!(error instanceof StatusError)) throw error;
    return given(counts ? -error.status : error.status);
  };
  return (...args) => {
    try {
      const result = body(...args);
      return result instanceof Promise ? result.then(given, failed) : given(result);
    } catch (error) {
      return failed(error);
    }
  };
}

/**
 * The stub of a denied authority or an unbound optional contract: the first result is the status, the others are zero;
 * references are null.
 */
export function deniedImport(type: FunctionType | undefined, status: number): HostImport {
  const values = (type?.results ?? []).map((result, i) => {
    if (result === "i64") return BigInt(i === 0 ? status : 0);
    return result.endsWith("ref") ? null : i === 0 ? status : 0;
  });
  return () => values.length === 0 ? undefined : values.length === 1 ? values[0] : values;
}

/** True when the host has a body for a link; tests ask it of every row of the table. */
export function serves(link: Pick<Link, "module">): boolean {
  return link.module in GROUPS;
}
