/**
 * The user's own plugins beside those of a project. In: the loaded project, if any, the folder of the user's plugins,
 * and the namespaces that a guest imports and nothing else serves. Out: a project with the user's plugins that serve
 * these namespaces, and with the plugins that they need; or the project as it was. Invariant: plugins of the project
 * win: a namespace that they serve never goes to a plugin of the user. No plugin is loaded for a guest that does not
 * import from it.
 */
import { fail } from "../base/diagnostic.ts";
import { sameInterface } from "../definitions/wit_interfaces.ts";
import type { Lockfile } from "../lockfile/lock_schema.ts";
import type { OpsContext } from "../packages/context.ts";
import { readProject } from "../project.ts";
import { type LoadOptions, loadProject } from "./load.ts";
import type { LoadedProject } from "./loaded.ts";

/** Adds the user's plugins that serve some of `wanted`. */
export async function withUserPlugins(
  context: OpsContext,
  root: string,
  project: LoadedProject | undefined,
  wanted: readonly string[],
  options: LoadOptions,
): Promise<LoadedProject | undefined> {
  const state = await readProject(root, context.files);
  const lockfile = state.lock?.lockfile;
  // A broken lockfile is reported by loading it.
  const served = lockfile === undefined ? undefined : namespacesFor(lockfile, project, wanted);
  if (served?.size === 0) return project;
  const only = served === undefined ? undefined : closureOf(lockfile!, served);
  const user = await loadProject(context, root, { ...options, user: true, ...(only === undefined ? {} : { only }) });
  const taken = project?.plugins.find(({ id }) => user.plugins.some((own) => own.id === id));
  if (taken !== undefined) {
    throw fail("user.conflict", `the project and your own plugins both need ${taken.id}`, {
      help: "add the plugins that the program imports from to the project, with `waft add`",
    });
  }
  return {
    root: project?.root ?? user.root,
    settings: project?.settings ?? {},
    plugins: [...project?.plugins ?? [], ...user.plugins.map((plugin) => ({ ...plugin, root }))],
    guest: [...project?.guest ?? [], ...user.guest.filter(({ module }) => served?.has(module) === true)],
    warnings: user.warnings,
    ...(project?.wasi === undefined ? {} : { wasi: project.wasi }),
    ...(project?.lockfile === undefined ? {} : { lockfile: project.lockfile }),
  };
}

/** The namespaces of `wanted` that the user's plugins offer and the project's do not. */
function namespacesFor(
  { guest }: Lockfile,
  project: LoadedProject | undefined,
  wanted: readonly string[],
): Set<string> {
  const taken = project?.guest.map(({ module }) => module) ?? [];
  const isFree = (name: string) => !taken.some((module) => sameInterface(module, name));
  return new Set(
    Object.keys(guest.bindings).filter((offered) =>
      wanted.some((name) => sameInterface(offered, name) && isFree(name))
    ),
  );
}

/** The providers of some namespaces, and all plugins that they call. */
function closureOf({ guest, plugins }: Lockfile, namespaces: ReadonlySet<string>): Set<string> {
  const found = new Set<string>();
  const left = [...namespaces].map((namespace) => guest.bindings[namespace]);
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    left.push(...Object.values(plugins[id]?.bindings ?? {}).flat());
    left.push(...Object.keys(plugins[id]?.definition.requires ?? {}).filter((other) => other in plugins));
  }
  return found;
}
