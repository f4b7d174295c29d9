/**
 * `waft plugin …`: list, check, plan, update, grant, inspect, catalog, publish, yank, deprecate, publishers,
 * transfer. Each sub-command loads its operation when it runs.
 */
import type { Command } from "commander";
import { resolve } from "node:path";
import process from "node:process";
import { EXIT, fail } from "../../base/diagnostic.ts";
import { requirePluginId } from "../../definitions/plugin_id.ts";
import { addDecisionOptions, changeDecisions, type DecisionOptions } from "./decision_flags.ts";
import {
  addGlobalOptions,
  addUserOption,
  type CommandEnvironment,
  type GlobalFlags,
  type Outcome,
  runCommand,
} from "./project_command.ts";

/** Adds `plugin` with its subcommands. */
export function addCommand(program: Command): void {
  const plugin = program.command("plugin").description("Manage the project's plugins.");
  const sub = <F extends GlobalFlags>(
    name: string,
    description: string,
    work: (env: CommandEnvironment, args: readonly string[], flags: F) => Promise<Outcome>,
    shape: (command: Command) => Command = (command) => command,
  ): void => {
    addGlobalOptions(shape(plugin.command(name).description(description))).action((...given: unknown[]) => {
      // commander passes the arguments, then the flags, then the command.
      const flags = given.at(-2) as F;
      const args = given.slice(0, -2).flat().filter((arg): arg is string => typeof arg === "string");
      return runCommand(`plugin.${name}`, flags, (env) => work(env, args, flags));
    });
  };
  sub("list", "List the plugins of the project.", list, addUserOption);
  sub("check", "Verify the lockfile, artifacts, grants, links and registry records.", check, addUserOption);
  sub<PlanFlags>(
    "plan",
    "Show pending changes and the link of each import.",
    plan,
    (c) =>
      addUserOption(c.argument("[ids...]", "Plugins to update (with --update)"))
        .option("--update", "Plan an update of the given plugins, or of all")
        .option("--detailed-exitcode", "Exit with status 10 if there are changes"),
  );
  sub<GlobalFlags & DecisionOptions>(
    "update",
    "Update plugins to the newest versions within their ranges.",
    update,
    (c) => addUserOption(addDecisionOptions(c.argument("[ids...]", "Plugins to update (default: all)"))),
  );
  sub<GlobalFlags & DecisionOptions>(
    "grant",
    "Review a plugin's authorities again.",
    grant,
    (c) => addUserOption(addDecisionOptions(c.argument("<id>", "The plugin"))),
  );
  sub(
    "inspect",
    "Show a plugin's definition: authorities, provided and consumed contracts.",
    inspect,
    (c) => c.argument("<plugin>", "<id>, <id>@<range>, or a directory"),
  );
  sub(
    "catalog",
    "Scaffold register/catalog.json from a module's imports and exports.",
    catalog,
    (c) => c.argument("<module>", "The module, relative to the package"),
  );
  sub<PublishFlags>(
    "publish",
    "Check and publish the package of this directory.",
    publish,
    (c) =>
      c.option("--allow-dirty", "Publish even if packaged files are not committed")
        .option("--notes <file>", "Release notes (default: the section of the version in CHANGELOG.md)")
        .option("--to <reference>", "Publish to an OCI registry, oci://HOST/NAME[:TAG], under the version by default"),
  );
  sub<YankFlags>(
    "yank",
    "Yank a version that you published (exclude it from new resolutions), or un-yank it.",
    yank,
    (c) =>
      c.argument("<release>", "<package>@<version>")
        .option("--reason <text>", "Reason, shown to users of the version")
        .option("--severity <word>", "broken, security or other")
        .option("--undo", "Un-yank the version"),
  );
  sub<DeprecateFlags>(
    "deprecate",
    "Tell the users of a package or version that you published what to use instead.",
    deprecate,
    (c) =>
      c.argument("<release>", "<package> or <package>@<version>")
        .option("--message <text>", "What users are told")
        .option("--undo", "Take the deprecation back"),
  );
  sub<PublishersFlags>(
    "publishers",
    "List, add or remove the workflows that may publish your packages without a stored token.",
    publishers,
    (c) =>
      c.argument("[prefix]", "The ids that a workflow may publish; without it, the publishers are listed")
        .option("--issuer <name>", "github, gitlab, or the address of an issuer that the registry accepts")
        .option("--claim <name=value>", "A claim that its tokens must have; may be repeated", several, [])
        .option("--remove <id>", "Remove a publisher"),
  );
  sub<TransferFlags>(
    "transfer",
    "Offer a package to another account, accept an offer, or list the offers.",
    transfer,
    (c) =>
      c.argument("[package]", "The package; without it, the offers are listed")
        .option("--to <account>", "Offer the package to an account of the registry")
        .option("--accept", "Accept the offer: your account owns the package from then on")
        .option("--cancel", "Withdraw the offer, or decline it"),
  );
}

interface PlanFlags extends GlobalFlags {
  readonly update?: boolean;
  readonly detailedExitcode?: boolean;
}
interface PublishFlags extends GlobalFlags {
  readonly allowDirty?: boolean;
  readonly notes?: string;
  readonly to?: string;
}

async function list(env: CommandEnvironment): Promise<Outcome> {
  const [{ listPlugins }, { describeScope }, { layoutTable, safe }] = await Promise.all([
    import("../../ops/project/list.ts"),
    import("../../definitions/authorities.ts"),
    import("../../base/terminal.ts"),
  ]);
  const data = await listPlugins(await env.context(), await env.root());
  const rows = data.plugins.map((p) => {
    const grants = Object.keys(p.grants).sort().map((name) => {
      const scope = describeScope(p.grants[name]);
      return scope === "" ? name : `${name}[${scope}]`;
    });
    const state = p.yanked === undefined ? p.state : `yanked: ${safe(p.yanked.reason)}`;
    const via = p.direct ? "direct" : p.requiredBy.join(", ");
    return [
      p.id,
      p.version,
      p.kind,
      via,
      p.state === "ok" ? state : env.colors.yellow(state),
      safe(grants.join(" ") || "(none)"),
    ];
  });
  const table = [["PLUGIN", "VERSION", "KIND", "VIA", "STATE", "GRANTS"], ...rows];
  return { data, text: rows.length === 0 ? "The project has no plugins." : layoutTable(table, env.columns).join("\n") };
}

async function check(env: CommandEnvironment): Promise<Outcome> {
  const [{ checkProject }, { layoutTable }] = await Promise.all([
    import("../../ops/project/check.ts"),
    import("../../base/terminal.ts"),
  ]);
  const { checks, diagnostics } = await checkProject(await env.context({ inspect: true }), await env.root());
  const paint = { ok: env.colors.green, warning: env.colors.yellow, failed: env.colors.red, skipped: env.colors.dim };
  const lines = layoutTable(checks.map((c) => [paint[c.status](c.status), c.name, c.detail]), env.columns);
  const errors = diagnostics.filter((d) => d.severity === "error").length;
  const warnings = diagnostics.length - errors;
  const many = (n: number, word: string): string => `${n} ${word}${n === 1 ? "" : "s"}`;
  lines.push(
    errors > 0
      ? `failed with ${many(errors, "error")}`
      : warnings > 0
      ? `passed with ${many(warnings, "warning")}`
      : "passed",
  );
  return { data: { checks }, diagnostics, text: lines.join("\n") };
}

async function plan(env: CommandEnvironment, ids: readonly string[], flags: PlanFlags): Promise<Outcome> {
  const [{ planProject }, { changeLines }, { layoutTable }] = await Promise.all([
    import("../../ops/project/plan.ts"),
    import("./change_output.ts"),
    import("../../base/terminal.ts"),
  ]);
  if (ids.length > 0 && flags.update !== true) throw fail("usage.plan", "plugin ids require --update");
  ids.forEach(requirePluginId);
  const which = flags.update !== true ? undefined : ids.length === 0 ? "all" as const : new Set(ids);
  const { diagnostics, pending, ...data } = await planProject(
    await env.context({ inspect: true }),
    await env.root(),
    which,
  );
  const lines = changeLines(data.changes, env.colors, { all: true, columns: env.columns });
  if (data.loadOrder.length > 0) {
    lines.push(`load order: ${data.loadOrder.map((id, i) => `${i + 1} ${id}`).join("  ")}`);
  }
  if (data.links.length > 0) {
    lines.push(
      "links:",
      ...layoutTable(data.links.map((l) => [`  ${l.importer}`, `${l.module} ${l.name}`.trim(), `-> ${l.by}`])),
    );
  }
  lines.push(
    pending
      ? `Nothing was written. Apply with: waft ${flags.update === true ? "plugin update" : "add"}`
      : "Nothing would change.",
  );
  const exitCode = pending && flags.detailedExitcode === true ? EXIT.pending : undefined;
  return {
    data: { ...data, pending },
    diagnostics,
    text: lines.join("\n"),
    ...(exitCode === undefined ? {} : { exitCode }),
  };
}

async function change(
  env: CommandEnvironment,
  flags: GlobalFlags & DecisionOptions,
  command: readonly string[],
  more: { readonly update?: ReadonlySet<string> | "all"; readonly asked?: ReadonlySet<string> },
): Promise<Outcome> {
  const [{ changeProject }, { changeOutcome }] = await Promise.all([
    import("../../ops/project/change.ts"),
    import("./change_output.ts"),
  ]);
  const decisions = await changeDecisions(env, flags, command);
  const result = await changeProject(await env.context({ inspect: true }), { ...decisions, ...more });
  return changeOutcome(result, env, flags, more.update !== undefined);
}

async function update(
  env: CommandEnvironment,
  ids: readonly string[],
  flags: GlobalFlags & DecisionOptions,
): Promise<Outcome> {
  await requireLocked(env, ids);
  return await change(env, flags, ["plugin", "update", ...ids], { update: ids.length === 0 ? "all" : new Set(ids) });
}

async function grant(
  env: CommandEnvironment,
  ids: readonly string[],
  flags: GlobalFlags & DecisionOptions,
): Promise<Outcome> {
  await requireLocked(env, ids);
  return await change(env, flags, ["plugin", "grant", ...ids], { asked: new Set(ids) });
}

/** Throws for ids that the lockfile does not have, as far as it can be read. */
async function requireLocked(env: CommandEnvironment, ids: readonly string[]): Promise<void> {
  ids.forEach(requirePluginId);
  const { readProject } = await import("../../project.ts");
  const state = await readProject(await env.root());
  const known = state.lock?.lockfile?.plugins;
  for (const id of ids) {
    if (known !== undefined && !(id in known)) {
      throw fail("usage.not-locked", `${id} is not a plugin of this project`, {
        help: `plugins: ${Object.keys(known).sort().join(", ") || "none"}`,
      });
    }
  }
}

async function inspect(env: CommandEnvironment, [spec]: readonly string[]): Promise<Outcome> {
  const [{ inspectPlugin }, { inspectText }] = await Promise.all([
    import("../../ops/project/inspect.ts"),
    import("../tools/inspect_output.ts"),
  ]);
  const plugins = await inspectPlugin(
    await env.context({ inspect: true }),
    resolve(process.cwd(), env.flags.project ?? "."),
    spec,
  );
  return { data: { plugins }, text: plugins.map((p) => inspectText(p, env)).join("\n\n") };
}

async function catalog(env: CommandEnvironment, [entry]: readonly string[], flags: GlobalFlags): Promise<Outcome> {
  const { scaffoldCatalog } = await import("../../ops/project/inspect.ts");
  const data = await scaffoldCatalog(
    await env.context({ inspect: true }),
    await env.root(),
    entry,
    flags.dryRun === true,
  );
  const todo = data.todo.map((text) => `to do: ${text}`);
  return { data, text: [data.written ? `created ${data.file}` : data.text.trimEnd(), ...todo].join("\n") };
}

async function publish(env: CommandEnvironment, _args: readonly string[], flags: PublishFlags): Promise<Outcome> {
  const [{ publishPackage }, { publishText }] = await Promise.all([
    import("../../ops/project/publish.ts"),
    import("../tools/inspect_output.ts"),
  ]);
  const data = await publishPackage(await env.context({ inspect: true }), {
    root: await env.root(),
    dryRun: flags.dryRun === true,
    allowDirty: flags.allowDirty === true,
    ...(flags.notes === undefined ? {} : { notes: resolve(process.cwd(), flags.notes) }),
    ...(flags.to === undefined ? {} : { to: flags.to }),
  });
  return { data, text: publishText(data, env) };
}

interface YankFlags extends GlobalFlags {
  readonly reason?: string;
  readonly severity?: string;
  readonly undo?: boolean;
}

async function yank(env: CommandEnvironment, [spec]: readonly string[], flags: YankFlags): Promise<Outcome> {
  const [{ yankRelease }, { safe }] = await Promise.all([
    import("../../ops/project/yank.ts"),
    import("../../base/terminal.ts"),
  ]);
  const { reason, severity } = flags;
  const root = resolve(process.cwd(), flags.project ?? ".");
  const data = await yankRelease(await env.context(), root, {
    spec,
    undo: flags.undo === true,
    ...(reason === undefined ? {} : { reason }),
    ...(severity === undefined ? {} : { severity }),
  });
  const { package: id, version, yanked, registry } = data;
  const text = yanked === null
    ? `un-yanked ${id} ${version} in ${registry}`
    : `yanked ${id} ${version} in ${registry} (${yanked.severity}: ${safe(yanked.reason)})`;
  return { data, text };
}

interface PublishersFlags extends GlobalFlags {
  readonly issuer?: string;
  readonly claim: readonly string[];
  readonly remove?: string;
}

function several(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

async function publishers(
  env: CommandEnvironment,
  [prefix]: readonly string[],
  flags: PublishersFlags,
): Promise<Outcome> {
  const [{ changePublishers }, { layoutTable, safe }] = await Promise.all([
    import("../../ops/project/publishers.ts"),
    import("../../base/terminal.ts"),
  ]);
  const { issuer, claim, remove } = flags;
  const data = await changePublishers(await env.context(), resolve(process.cwd(), flags.project ?? "."), {
    claims: claim,
    ...(prefix === undefined ? {} : { prefix }),
    ...(issuer === undefined ? {} : { issuer }),
    ...(remove === undefined ? {} : { remove }),
  });
  const rows = data.publishers.map((p) => {
    const claims = Object.entries(p.claims).map(([name, value]) => `${name}=${value}`).join(" ");
    return [safe(p.id), safe(p.prefix), safe(p.issuer), safe(claims)];
  });
  const text = rows.length === 0
    ? `There are no trusted publishers of this account in ${data.registry}.`
    : layoutTable([["ID", "PREFIX", "ISSUER", "CLAIMS"], ...rows], env.columns).join("\n");
  return { data, text };
}

interface TransferFlags extends GlobalFlags {
  readonly to?: string;
  readonly accept?: boolean;
  readonly cancel?: boolean;
}

async function transfer(env: CommandEnvironment, [id]: readonly string[], flags: TransferFlags): Promise<Outcome> {
  const [{ transferPackage }, { layoutTable, safe }] = await Promise.all([
    import("../../ops/project/transfer.ts"),
    import("../../base/terminal.ts"),
  ]);
  const data = await transferPackage(await env.context(), resolve(process.cwd(), flags.project ?? "."), {
    accept: flags.accept === true,
    cancel: flags.cancel === true,
    ...(id === undefined ? {} : { package: id }),
    ...(flags.to === undefined ? {} : { to: flags.to }),
  });
  const rows = data.offers.map((o) => [o.name, o.from, o.to, o.offeredAt.slice(0, 10)].map(safe));
  const table = rows.length === 0
    ? ["There are no offers from or to this account."]
    : layoutTable([["PACKAGE", "FROM", "TO", "OFFERED"], ...rows], env.columns);
  return { data, text: [...data.done === null ? [] : [`${data.done} ${id}`], ...table].join("\n") };
}

interface DeprecateFlags extends GlobalFlags {
  readonly message?: string;
  readonly undo?: boolean;
}

async function deprecate(env: CommandEnvironment, [spec]: readonly string[], flags: DeprecateFlags): Promise<Outcome> {
  const [{ deprecateRelease }, { safe }] = await Promise.all([
    import("../../ops/project/deprecate.ts"),
    import("../../base/terminal.ts"),
  ]);
  const root = resolve(process.cwd(), flags.project ?? ".");
  const data = await deprecateRelease(await env.context(), root, {
    spec,
    undo: flags.undo === true,
    ...(flags.message === undefined ? {} : { message: flags.message }),
  });
  const what = `${data.package}${data.version === null ? "" : ` ${data.version}`}`;
  const text = data.deprecated === null
    ? `${what} is no longer deprecated in ${data.registry}`
    : `deprecated ${what} in ${data.registry}: ${safe(data.deprecated)}`;
  return { data, text };
}
