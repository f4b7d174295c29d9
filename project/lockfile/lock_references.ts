/**
 * The lockfile's references: class "reference" of the strict parse.
 *
 * In: a lockfile with valid shape and values. Out: findings for dangling references, unreferenced entries,
 * unsatisfied ranges, bindings to the wrong provider, and cycles.
 */
import { guestMismatch, loadOrder, mismatch, providedAs } from "../definitions/contracts.ts";
import { contractNamespace } from "../definitions/definition.ts";
import { quote, stepInto } from "../base/diagnostic.ts";
import { type LockReport, packageAt, pluginAt } from "./lock_report.ts";
import type { Lockfile } from "./lock_schema.ts";
import { satisfies } from "../base/version.ts";

/** Reports every reference that does not hold. */
export function checkReferences(lock: Lockfile, report: LockReport): void {
  const { packages, plugins } = lock;
  const versionOf = (id: string): string | undefined => packages[plugins[id]?.package ?? ""]?.version;
  const wants = (pointer: string, id: string, range: string, who: string): void => {
    const version = versionOf(id);
    if (plugins[id] === undefined) {
      report.add("reference", pointer, `${who} ${id}, which is not locked`, "run `waft add`", "key");
    } else if (version !== undefined && !satisfies(version, range)) {
      report.add("reference", pointer, `${who} ${id} ${quote(range, 60)}, but ${version} is locked`, "run `waft add`");
    }
  };
  for (const [id, range] of Object.entries(lock.requirements)) {
    wants(stepInto("/requirements", id), id, range, "the project requires");
  }
  for (const [id, plugin] of Object.entries(plugins)) {
    const at = pluginAt(id);
    if (packages[plugin.package] === undefined) {
      report.add("reference", `${at}/package`, `${id} is in package ${plugin.package}, which is not locked`);
    } else if (id !== plugin.package && !id.startsWith(`${plugin.package}/`)) {
      report.add(
        "reference",
        `${at}/package`,
        `${id} cannot belong to package ${plugin.package}: it is not a path below it`,
      );
    }
    for (const [needed, range] of Object.entries(plugin.definition.requires)) {
      wants(stepInto(`${at}/definition/requires`, needed), needed, range, `${id} requires`);
    }
    checkBindings(lock, id, report);
  }
  for (const [namespace, id] of Object.entries(lock.guest.bindings)) {
    const at = stepInto("/guest/bindings", namespace);
    const plugin = plugins[id];
    const reason = plugin === undefined ? "it is not locked" : guestMismatch(plugin, namespace);
    if (reason !== undefined) {
      report.add("reference", at, `guests cannot get ${quote(namespace)} from ${id}: ${reason}`);
    }
  }
  checkReachable(lock, report);
  const order = loadOrder(plugins);
  if ("cycle" in order) {
    report.add(
      "reference",
      pluginAt(order.cycle[0]),
      `cyclic dependency between plugins: ${order.cycle.join(" -> ")}`,
      undefined,
      "key",
    );
  }
}

function checkBindings(lock: Lockfile, id: string, report: LockReport): void {
  const plugin = lock.plugins[id];
  const at = `${pluginAt(id)}/bindings`;
  const consumed = new Map(plugin.definition.consumes.map((c) => [contractNamespace(c), c]));
  for (const [namespace, providers] of Object.entries(plugin.bindings)) {
    const contract = consumed.get(namespace);
    const here = stepInto(at, namespace);
    if (contract === undefined) {
      report.add("reference", here, `${id} does not consume ${quote(namespace)}`, undefined, "key");
      continue;
    }
    if (contract.mode !== "many" && providers.length > 1) {
      report.add("reference", here, `${id} takes one provider of ${namespace}, not ${providers.length}`);
    }
    providers.forEach((provider, i) => {
      const target = lock.plugins[provider];
      const reason = provider === id
        ? "it is the consumer itself"
        : target === undefined
        ? "it is not locked"
        : mismatch(contract, providedAs(target.definition, namespace));
      if (reason !== undefined) {
        report.add("reference", `${here}/${i}`, `${provider} cannot provide ${namespace} to ${id}: ${reason}`);
      }
    });
  }
  for (const [namespace, contract] of consumed) {
    if (contract.mode === "required" && (plugin.bindings[namespace]?.length ?? 0) === 0) {
      report.add(
        "reference",
        at,
        `${id} requires ${namespace}, but no provider is bound`,
        "run `waft add` and choose with --bind",
      );
    }
  }
}

function checkReachable(lock: Lockfile, report: LockReport): void {
  const reached = new Set<string>();
  const open = Object.keys(lock.requirements);
  while (open.length > 0) {
    const id = open.pop()!;
    if (reached.has(id) || lock.plugins[id] === undefined) continue;
    reached.add(id);
    open.push(...Object.keys(lock.plugins[id].definition.requires));
  }
  const used = new Set<string>();
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    used.add(plugin.package);
    if (!reached.has(id)) {
      report.add("reference", pluginAt(id), `nothing requires ${id}`, "run `waft add` to drop it", "key");
    }
  }
  for (const id of Object.keys(lock.packages)) {
    if (!used.has(id)) {
      report.add("reference", packageAt(id), `no plugin comes from package ${id}`, "run `waft add` to drop it", "key");
    }
  }
}
