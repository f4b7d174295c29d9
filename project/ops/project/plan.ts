/**
 * `plugin plan`: the effect of `add` or `plugin update`, without applying it.
 *
 * In: a project and the plugins to move. Out: changes with reasons, the load order, and the link table: each
 * import, its provider, and the grant that permits the link. Only the caches are written.
 */
import { guestOffers } from "../../definitions/contracts.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { fetchPackage, inspectEntry, promisedPlugin } from "../../packages/fetch.ts";
import { describeTarget, guestLinks, linkEntry } from "../../plugins/plugin_grants.ts";
import { readProject, requireManifest, requirementsOf } from "../../project.ts";
import { type Change, changesBetween } from "./changes.ts";
import { acceptedPrevious } from "./change.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";
import { prepare, type PreparedPlugin } from "./prepare.ts";

/** An entry of the link table. */
export interface PlannedLink {
  readonly importer: string;
  readonly module: string;
  readonly name: string;
  readonly by: string;
}

/** The plan. */
export interface PlanResult {
  readonly changes: readonly Change[];
  readonly loadOrder: readonly string[];
  readonly links: readonly PlannedLink[];
  readonly diagnostics: readonly Diagnostic[];
  /** True when something would be written or has to be reviewed. */
  readonly pending: boolean;
}

/** Plans. */
export async function planProject(
  context: OpsContext,
  root: string,
  update?: ReadonlySet<string> | "all",
): Promise<PlanResult> {
  const state = await readProject(root, context.files);
  const requirements = requirementsOf(requireManifest(state).manifest);
  const { previous, warnings } = await acceptedPrevious(context, state);
  const prepared = await prepare(context, {
    root,
    requirements,
    previous,
    ...(update === undefined ? {} : { update }),
  });
  const changes = changesBetween(previous, prepared, requirements);
  const links: PlannedLink[] = [];
  const diagnostics = [...warnings, ...prepared.warnings];
  for (const id of prepared.order) {
    links.push(
      ...await linksOf(context, root, prepared.plugins[id], prepared.packages[prepared.plugins[id].package].source),
    );
  }
  const guest: { [namespace: string]: string } = Object.create(null);
  for (const [namespace, ids] of guestOffers(prepared.plugins, new Set(Object.keys(requirements)))) {
    guest[namespace] = ids.includes(previous.guest[namespace] ?? "") ? previous.guest[namespace] : ids[0];
  }
  for (const link of guestLinks(guest, prepared.plugins, context.machine.policy.deny)) {
    links.push({ importer: "guest", module: link.module, name: link.name, by: link.provider });
  }
  const stale = state.lock === undefined ? Object.keys(requirements).length > 0 : state.lock.lockfile === undefined;
  const pending = stale || changes.some((c) => c.action !== "keep" || c.needsReview);
  return { changes, loadOrder: prepared.order, links, diagnostics, pending };
}

/** The links of one plugin, by its module's imports if they can be read, else by its definition. */
async function linksOf(
  context: OpsContext,
  root: string,
  plugin: PreparedPlugin,
  source: Parameters<SourceSet["locked"]>[0],
): Promise<PlannedLink[]> {
  const { id } = plugin;
  if (context.inspect !== undefined) {
    const fetched = await fetchPackage(context, plugin.release, new SourceSet(context, root).locked(source));
    const module = await inspectEntry(context, plugin.entry.path, promisedPlugin(fetched.opened, plugin.release).bytes);
    const { links, diagnostics } = linkEntry(plugin, module, context.machine.policy.deny);
    return [
      ...links.map((l) => ({ importer: id, module: l.module, name: l.name, by: describeTarget(l.target) })),
      ...diagnostics.map((d) => ({ importer: id, module: "", name: "", by: d.message })),
    ];
  }
  const rows: PlannedLink[] = [];
  for (const request of plugin.definition.authorities) {
    const by = request.name in plugin.grants
      ? `grant ${request.name}`
      : plugin.denied.includes(request.name)
      ? "denied"
      : "not decided yet";
    rows.push({ importer: id, module: request.name, name: "", by });
  }
  for (const contract of plugin.definition.consumes) {
    const namespace = `${contract.id}@${contract.major}`;
    for (const f of contract.functions) {
      rows.push({
        importer: id,
        module: namespace,
        name: f.name,
        by: plugin.bindings[namespace]?.join(", ") || "nothing",
      });
    }
  }
  return rows;
}
