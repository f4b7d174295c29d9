/**
 * `waft self install|uninstall`: installs and removes waft itself. install.sh runs `install` from the unpacked bundle.
 * Questions that the flags leave open are asked at the terminal.
 */
import type { Command } from "commander";
import { systemName } from "@waft/engine/internal/host/process";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline/promises";
import { fileURLToPath } from "node:url";
import { endProgress } from "../../base/progress.ts";
import { fail } from "../../base/diagnostic.ts";
import { VERSION } from "../../base/version_string.ts";
import type { PathPlan } from "../../ops/versions/path_edit.ts";
import { addGlobalOptions, type GlobalFlags, runCommand } from "../project/project_command.ts";

interface SelfFlags extends GlobalFlags {
  readonly yes?: boolean;
  readonly dir?: string;
  readonly base?: string;
  readonly modifyPath?: boolean;
  readonly sha256?: string;
  readonly commit?: string;
  readonly kind?: string;
  readonly purge?: boolean;
}

const IS_WINDOWS = systemName() === "win32";

/** Adds `self`. */
export function addCommand(program: Command): void {
  const self = program.command("self").description("Install and remove waft itself.");
  addGlobalOptions(self.command("install").description("Install this unpacked bundle (install.sh calls it)"))
    .option("--yes", "Use the defaults without prompting")
    .option("--dir <dir>", "Directory of the command (also WAFT_INSTALL_DIR)")
    .option("--base <url>", "Release site (also WAFT_RELEASE_BASE)")
    .option("--no-modify-path", "Do not edit the shell's start-up files")
    .option("--sha256 <hex>", "Digest of the archive")
    .option("--commit <hash>", "Commit of the build")
    .option("--kind <kind>", "bundle or source")
    .action((flags: SelfFlags) => runCommand("self.install", flags, (env) => install(flags, env.interactive)));
  addGlobalOptions(self.command("uninstall").description("Remove waft and all its versions, and undo its changes"))
    .option("--yes", "Do not prompt")
    .option("--purge", "Also remove configuration and credentials")
    .action((flags: SelfFlags) => runCommand("self.uninstall", flags, (env) => uninstall(flags, env.interactive)));
}

async function install(flags: SelfFlags, canAsk: boolean): Promise<{ data: unknown; text: string }> {
  const [{ installSelf }, { planPath }, { machinePaths, platformName, thisMachine }, { startVersion }, download] =
    await Promise.all([
      import("../../ops/versions/self_install.ts"),
      import("../../ops/versions/path_edit.ts"),
      import("../../base/paths.ts"),
      import("../../ops/versions/version_start.ts"),
      import("../../versions/release_download.ts"),
    ]);
  const from = bundleRoot();
  const facts = thisMachine();
  const paths = machinePaths(facts);
  const interactive = canAsk && flags.yes !== true;
  const bin = await chosenDirectory(flags, interactive, paths.bin, facts.home);
  // Pass the whole environment: the facts hold only the variables that affect paths.
  const plan = await planPath(bin, process.env, facts.home);
  const path = await maySetPath(flags, interactive, bin, plan) ? plan : undefined;
  const site = flags.base ?? (process.env.WAFT_RELEASE_BASE || undefined);
  const base = site === undefined ? undefined : download.checkReleaseBase(site);
  if (flags.dryRun === true) {
    return {
      data: { version: VERSION, bin, edits: path?.edits ?? [] },
      text: `would install ${VERSION} in ${join(paths.versions, VERSION)} and the command in ${bin}`,
    };
  }
  const result = await installSelf(
    {
      paths,
      platform: platformName(),
      start: startVersion,
      site: () => {
        throw fail("release.offline", "not used");
      },
    },
    facts,
    {
      from,
      bin,
      receipt: {
        schemaVersion: 1,
        version: VERSION,
        kind: flags.kind === "source" ? "source" : "bundle",
        platform: platformName(),
        commit: flags.commit ?? "",
        sha256: flags.sha256 ?? "",
        installedAt: new Date().toISOString(),
      },
      ...(base === undefined ? {} : { base }),
      ...(path === undefined ? {} : { path }),
    },
  );
  const lines = [
    `installed waft ${result.version}; the command is ${join(bin, "waft")}`,
    ...pathLines(bin, plan, path),
  ];
  return { data: { ...result, edits: path?.edits ?? [] }, text: lines.join("\n") };
}

/** The absolute directory of the command: from the flags, the environment, or the answer to a question. */
async function chosenDirectory(
  flags: SelfFlags,
  interactive: boolean,
  usual: string,
  home: string,
): Promise<string> {
  const chosen = flags.dir ?? (process.env.WAFT_INSTALL_DIR || undefined);
  let bin = chosen ?? usual;
  if (chosen === undefined && interactive) {
    const answer = await ask(`Directory of the command [${bin}]: `);
    if (answer !== "") bin = answer.startsWith("~/") ? join(home, answer.slice(2)) : answer;
  }
  if (!isAbsolute(bin)) bin = resolve(bin);
  const separator = IS_WINDOWS ? ";" : ":";
  if (/[\n\r]/.test(bin) || bin.includes(separator)) {
    throw fail("usage.dir", `a directory on the PATH holds no "${separator}" and no line break`);
  }
  return bin;
}

/** Whether the planned lines are added to the shells' start-up files; asks if the flags leave it open. */
async function maySetPath(flags: SelfFlags, interactive: boolean, bin: string, plan: PathPlan): Promise<boolean> {
  if (plan.edits.length === 0 || flags.modifyPath === false) return false;
  if (!interactive) return flags.yes === true;
  process.stderr.write(`${bin} is not on your PATH. These lines can be added:\n`);
  for (const { file, block } of plan.edits) {
    process.stderr.write(`  ${file}\n${block.trim().split("\n").map((l) => `    + ${l}`).join("\n")}\n`);
  }
  return /^(?:|y|yes)$/i.test(await ask("Add them? [Y/n] "));
}

/** The report about the PATH; `path` is the plan if it was carried out. */
function pathLines(bin: string, plan: PathPlan, path: PathPlan | undefined): string[] {
  const refused = plan.refused.map((reason) => `not changed: ${reason}`);
  if (path !== undefined) {
    const files = path.edits.map((e) => e.file).join(", ");
    return [`${bin} is on the PATH of new shells (${files}); for this one:`, `  ${plan.line}`, ...refused];
  }
  if (plan.onPath || IS_WINDOWS) return refused;
  return [`add this line to your shell's start-up file:`, `  ${plan.line}`, ...refused];
}

/** The root of the bundle that this program is part of. */
function bundleRoot(): string {
  const lib = fileURLToPath(new URL(".", import.meta.url));
  if (basename(lib) !== "lib") {
    throw fail("install.source", "this waft runs from source; only a bundle can install itself", {
      help: "use install.sh (with --from-source to build one first)",
    });
  }
  return dirname(lib);
}

async function uninstall(flags: SelfFlags, canAsk: boolean): Promise<{ data: unknown; text: string }> {
  const [{ planUninstall, uninstallSelf }, { machinePaths }] = await Promise.all([
    import("../../ops/versions/self_install.ts"),
    import("../../base/paths.ts"),
  ]);
  const paths = machinePaths();
  if (IS_WINDOWS) {
    throw fail("usage.windows", "a running program cannot remove its own files on Windows, so nothing was removed", {
      help: "run install.ps1 -Uninstall",
    });
  }
  const plan = await planUninstall(paths, flags.purge === true);
  if (!plan.isInstalled && flags.purge !== true) {
    throw fail("install.missing", "waft was not installed here by its installer, so there is nothing to uninstall", {
      help: "use the package manager that installed it; --purge still removes waft's caches and records",
    });
  }
  const list = [...plan.remove, ...plan.edits.map((e) => `the lines for waft in ${e.file}`)];
  const kept = plan.keep.length === 0 ? "" : `\nkept: ${plan.keep.join(", ")} (--purge removes it, too)`;
  if (flags.dryRun === true) return { data: plan, text: `would remove:\n  ${list.join("\n  ")}${kept}` };
  if (flags.yes !== true) {
    if (!canAsk) throw fail("usage.yes", "nothing was removed: give --yes, or run it in a terminal");
    process.stderr.write(`This removes:\n  ${list.join("\n  ")}${kept}\n`);
    if (!/^(?:y|yes)$/i.test(await ask("Remove them? [y/N] "))) return { data: null, text: "nothing was removed" };
  }
  const left = await uninstallSelf(paths, plan);
  return { data: { ...plan, left }, text: [`waft is removed${kept}`, ...left].join("\n") };
}

/** Reads one line from the terminal. */
async function ask(question: string): Promise<string> {
  endProgress();
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await lines.question(question)).trim();
  } finally {
    lines.close();
  }
}
