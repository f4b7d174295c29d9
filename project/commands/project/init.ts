/**
 * `waft init`: start a project. Asks at a terminal; `--quick`, `--template` and `--full … --yes` ask nothing.
 */
import type { Command } from "commander";
import process from "node:process";
import { basename, resolve } from "node:path";
import { fail, ProjectError } from "../../base/diagnostic.ts";
import type { InitRequest } from "../../ops/project/init.ts";
import { addGlobalOptions, type CommandEnvironment, type GlobalFlags, runCommand } from "./project_command.ts";

interface InitFlags extends GlobalFlags {
  readonly quick?: boolean;
  readonly full?: boolean;
  readonly kind?: string;
  readonly template?: string;
  readonly name?: string;
  readonly module?: string;
  readonly description?: string;
  readonly license?: string;
  readonly repository?: string;
  readonly packageVersion?: string;
  readonly author?: string;
  readonly yes?: boolean;
  readonly upgrade?: boolean;
  readonly host?: string;
}

/** Adds `init`. */
export function addCommand(program: Command): void {
  const command = program.command("init")
    .description("Start a project in this directory.")
    .option("--quick", "Create only a minimal waft.json")
    .option("--full", "Create a complete application or plugin")
    .option("--kind <kind>", "application or plugin (with --full)")
    .option(
      "--template <name>",
      "A program by language: typescript, assemblyscript, c, rust, or http (a component that answers requests)",
    )
    .option("--name <name>", "Name of the application or plugin")
    .option("--module <id>", "The plugin's id, such as github.com/acme/kv")
    .option("--description <text>", "Description of the plugin")
    .option("--license <spdx>", "The plugin's license, such as Apache-2.0")
    .option("--repository <url>", "The plugin's https:// repository")
    .option("--package-version <version>", "The plugin's first version (default 0.1.0)")
    .option("--author <name>", "The plugin's author")
    .option("--yes", "Use the given options and the defaults; never prompt")
    .option("--upgrade", "Rewrite a waft.json of schema v0")
    .option("--host <host>", "Host for short plugin keys (with --upgrade)");
  addGlobalOptions(command).action((flags: InitFlags) => runCommand("init", flags, (env) => init(env, flags)));
}

async function init(env: CommandEnvironment, flags: InitFlags) {
  const root = resolve(process.cwd(), flags.project ?? ".");
  const { DISK } = await import("../../base/files.ts");
  if (flags.upgrade === true) {
    const { upgradeManifest } = await import("../../ops/project/upgrade.ts");
    const ask = env.interactive && flags.host === undefined ? (await import("./init_prompt.ts")).askHost : undefined;
    const data = await upgradeManifest(root, DISK, {
      ...(flags.host === undefined ? {} : { host: flags.host }),
      ...(ask === undefined ? {} : { ask }),
      dryRun: flags.dryRun === true,
    });
    return { data, text: data.changes.join("\n") || "waft.json is of schema v1 already." };
  }
  const { initProject, missingFlags } = await import("../../ops/project/init.ts");
  const { MANIFEST_FILE } = await import("../../base/constants.ts");
  // Printed before the first question.
  if (await DISK.status(resolve(root, MANIFEST_FILE)) !== undefined) {
    throw fail("project.exists", `${MANIFEST_FILE} exists already; nothing was created`, { file: MANIFEST_FILE });
  }
  const request = await requestFrom(env, flags, root, missingFlags);
  if (request === undefined) return { data: null, text: "Nothing was created.", exitCode: 1 as const };
  const assembling = request.kind === "plugin"
    ? { assemble: (await import("../../definitions/engine_inspector.ts")).assemble }
    : {};
  const data = flags.dryRun === true
    ? { kind: request.kind, root, created: [] }
    : await initProject({ ...request, ...assembling }, DISK);
  const next = request.kind === "plugin"
    ? "waft plugin publish --dry-run"
    : request.kind === "application"
    ? "waft run main.wat 20 22"
    : request.kind === "template"
    ? (await import("../../ops/project/templates.ts")).TEMPLATES.find(({ name }) => name === request.template)!
      .commands.join(", then ")
    : "waft add <plugin>";
  const lines = [...data.created.map((path) => `created ${path}`), `next: ${next}`];
  return { data, text: lines.join("\n") };
}

async function requestFrom(
  env: CommandEnvironment,
  flags: InitFlags,
  root: string,
  missingFlags: (request: Omit<InitRequest, "root">) => string[],
): Promise<InitRequest | undefined> {
  if (flags.quick === true && flags.full === true) throw fail("usage.init", "--quick and --full exclude each other");
  if (flags.template !== undefined) {
    if (flags.quick === true || flags.full === true) {
      throw fail("usage.init", "--template excludes --quick and --full");
    }
    return { root, kind: "template", template: flags.template, name: flags.name ?? basename(root) };
  }
  if (flags.quick === true) return { root, kind: "quick" };
  const given = {
    ...(flags.name === undefined ? {} : { name: flags.name }),
    ...(flags.module === undefined ? {} : { module: flags.module }),
    ...(flags.description === undefined ? {} : { description: flags.description }),
    ...(flags.license === undefined ? {} : { license: flags.license }),
    ...(flags.repository === undefined ? {} : { repository: flags.repository }),
    ...(flags.packageVersion === undefined ? {} : { version: flags.packageVersion }),
    ...(flags.author === undefined ? {} : { author: flags.author }),
  };
  if (flags.kind !== undefined && flags.kind !== "application" && flags.kind !== "plugin") {
    throw fail("usage.init", `--kind must be application or plugin, not ${JSON.stringify(flags.kind)}`);
  }
  if (env.interactive && flags.yes !== true) {
    const { askInit } = await import("./init_prompt.ts");
    return await askInit(
      { root, ...given, name: given.name ?? basename(root) },
      flags.full === true ? flags.kind ?? "full" : undefined,
    );
  }
  if (flags.full !== true) {
    throw fail("usage.init", "init needs answers, and there is no terminal to prompt on", {
      help: "waft init --quick, waft init --template rust, or waft init --full --kind application --name <name> --yes",
    });
  }
  if (flags.kind === undefined) throw fail("usage.init", "--full needs --kind application or --kind plugin");
  const request = { kind: flags.kind, ...given } as const;
  const missing = missingFlags(request);
  if (missing.length > 0) {
    throw new ProjectError([{
      code: "usage.init",
      severity: "error",
      message: `--full --kind ${flags.kind} needs ${missing.join(", ")}`,
    }]);
  }
  return { root, ...request };
}
