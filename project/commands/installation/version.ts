/**
 * `waft version install|list|use|which|update|rollback|uninstall|prune`: the versions of waft on this machine.
 */
import type { Command } from "commander";
import process from "node:process";
import { join } from "node:path";
import { fail } from "../../base/diagnostic.ts";
import type { VersionContext } from "../../ops/versions/version.ts";
import {
  addGlobalOptions,
  type CommandEnvironment,
  type GlobalFlags,
  type Outcome,
  runCommand,
} from "../project/project_command.ts";

interface VersionFlags extends GlobalFlags {
  readonly base?: string;
  readonly force?: boolean;
  readonly use?: boolean;
}

/** Adds `version` with its subcommands. */
export function addCommand(program: Command): void {
  const version = program.command("version").description("Install and choose versions of waft.");
  const sub = (
    name: string,
    description: string,
    work: (env: CommandEnvironment, flags: VersionFlags, target: string | undefined) => Promise<Outcome>,
    shape: (command: Command) => Command = (command) => command,
  ): void => {
    addGlobalOptions(shape(version.command(name).description(description))).action((...given: unknown[]) => {
      // commander passes the arguments, then the flags, then the command.
      const flags = given.at(-2) as VersionFlags;
      const target = given.length > 2 ? given[0] as string | undefined : undefined;
      return runCommand(`version.${name}`, flags, (env) => work(env, flags, target));
    });
  };
  const site = (command: Command): Command => command.option("--base <url>", "Release site (also WAFT_RELEASE_BASE)");
  sub(
    "install",
    "Install canary, nightly, latest or an exact version",
    install,
    (c) => site(c.argument("<target>")).option("--use", "Also make it the active version"),
  );
  sub("list", "List installed versions", list);
  sub("use", "Make an installed version the active one", use, (c) => c.argument("<target>"));
  sub("which", "Print the directory of the active version, or of another one", which, (c) => c.argument("[target]"));
  sub("update", "Update to the newest version of the active version's channel", update, site);
  sub("rollback", "Return to the previously active version", rollback);
  sub(
    "uninstall",
    "Remove an installed version",
    uninstall,
    (c) => c.argument("<version>").option("--force", "Also remove the active version; the previous one becomes active"),
  );
  sub("prune", "Remove all versions except the active and the previous one", prune);
}

async function install(env: CommandEnvironment, flags: VersionFlags, target = ""): Promise<Outcome> {
  const { installVersion, useVersion } = await import("../../ops/versions/version.ts");
  const context = await versionContext(env, flags);
  const result = await installVersion(context, target);
  if (flags.use === true) await useVersion(context, result.version);
  const done = result.already ? `${result.version} is already installed` : `installed ${result.version}`;
  const next = flags.use === true || result.activated
    ? `; it is the active version`
    : `\nto make it the active version: waft version use ${result.version}`;
  return { data: result, text: done + next };
}

async function list(env: CommandEnvironment): Promise<Outcome> {
  const [{ listVersions }, { machinePaths }, { layoutTable, safe }] = await Promise.all([
    import("../../ops/versions/version.ts"),
    import("../../base/paths.ts"),
    import("../../base/terminal.ts"),
  ]);
  const versions = await listVersions(machinePaths());
  const rows = versions.map((v) => [
    v.active ? "*" : v.previous ? "-" : " ",
    v.active ? env.colors.bold(v.version) : v.version,
    v.channel,
    v.channel === "source" ? "" : safe(v.receipt.kind),
    safe(v.receipt.commit.slice(0, 12)),
  ]);
  const text = rows.length === 0
    ? "no versions are installed"
    : [...layoutTable(rows, env.columns), env.colors.dim("* active, - previous")].join("\n");
  return { data: { versions }, text };
}

async function use(env: CommandEnvironment, flags: VersionFlags, target = ""): Promise<Outcome> {
  const { useVersion } = await import("../../ops/versions/version.ts");
  const result = await useVersion(await versionContext(env, flags), target);
  return { data: result, text: `${result.version} is the active version` };
}

async function which(_env: CommandEnvironment, _flags: VersionFlags, target?: string): Promise<Outcome> {
  const [{ installedTarget }, { readActive }, { machinePaths }] = await Promise.all([
    import("../../ops/versions/version.ts"),
    import("../../versions/version_store.ts"),
    import("../../base/paths.ts"),
  ]);
  const paths = machinePaths();
  const named = target ?? (await readActive(paths)).current;
  if (named === undefined) throw fail("release.unknown", "no version is active");
  const version = await installedTarget(paths, named);
  const directory = join(paths.versions, version);
  return { data: { version, directory }, text: directory };
}

async function update(env: CommandEnvironment, flags: VersionFlags): Promise<Outcome> {
  const { updateVersion } = await import("../../ops/versions/version.ts");
  const result = await updateVersion(await versionContext(env, flags));
  const text = result.activated
    ? `updated ${result.from ?? "nothing"} to ${result.version}`
    : `${result.version} is the newest version of its channel`;
  return { data: result, text };
}

async function rollback(env: CommandEnvironment, flags: VersionFlags): Promise<Outcome> {
  const { rollbackVersion } = await import("../../ops/versions/version.ts");
  const result = await rollbackVersion(await versionContext(env, flags));
  return { data: result, text: `${result.version} is the active version again` };
}

async function uninstall(env: CommandEnvironment, flags: VersionFlags, target = ""): Promise<Outcome> {
  const { uninstallVersion } = await import("../../ops/versions/version.ts");
  const result = await uninstallVersion(await versionContext(env, flags), target, flags.force === true);
  return { data: result, text: `removed ${result.version}` };
}

async function prune(env: CommandEnvironment, flags: VersionFlags): Promise<Outcome> {
  const { pruneVersions } = await import("../../ops/versions/version.ts");
  const result = await pruneVersions(await versionContext(env, flags));
  const { removed } = result;
  return { data: result, text: removed.length === 0 ? "nothing to remove" : `removed ${removed.join(", ")}` };
}

/** The context of the version operations, from this machine and the flags. */
async function versionContext(env: CommandEnvironment, flags: VersionFlags): Promise<VersionContext> {
  const [{ machinePaths, platformName }, { startVersion }] = await Promise.all([
    import("../../base/paths.ts"),
    import("../../ops/versions/version_start.ts"),
  ]);
  const paths = machinePaths();
  const [{ trustedReleaseKeys }, { checkReleaseBase }, { readInstallReceipt }, { BASE_URL }] = await Promise.all([
    import("../../versions/release_keys.ts"),
    import("../../versions/release_download.ts"),
    import("../../ops/versions/self_install.ts"),
    import("../../base/constants.ts"),
  ]);
  const recorded = (await readInstallReceipt(paths))?.base;
  const bar = progressBar(env, flags);
  return {
    paths,
    platform: platformName(),
    start: startVersion,
    site: () => {
      if (flags.offline === true) {
        throw fail("release.offline", "looking up releases needs the network, and --offline forbids it");
      }
      return {
        base: checkReleaseBase(flags.base ?? (process.env.WAFT_RELEASE_BASE || undefined) ?? recorded ?? BASE_URL),
        keys: trustedReleaseKeys(process.env),
        paths,
        ...(bar === undefined ? {} : { onProgress: bar }),
      };
    },
  };
}

/** A progress bar on stderr if that is a terminal. */
function progressBar(
  env: CommandEnvironment,
  flags: GlobalFlags,
): ((done: number, total: number) => void) | undefined {
  if (process.stderr.isTTY !== true || flags.quiet === true || flags.json === true) return undefined;
  const width = 30;
  let last = -1;
  return (done, total) => {
    const percent = Math.floor(done * 100 / total);
    if (percent === last) return;
    last = percent;
    const full = Math.floor(done * width / total);
    const bar = "#".repeat(full) + ".".repeat(width - full);
    const text = `${env.errorColors.dim(bar)} ${percent} % of ${Math.ceil(total / (1 << 20))} MiB`;
    process.stderr.write(done >= total ? "\r\u001b[K" : `\r${text}`);
  };
}
