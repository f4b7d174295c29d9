/**
 * The shared frame of the project commands: global flags, the context, the JSON envelope, exit codes.
 *
 * In: parsed flags and the command's action. Out: text on stdout and findings on stderr, or with `--json` a
 * single JSON document that holds both; `process.exitCode`. This file loads no prompt, schema validator or network
 * code.
 */
import { writeText } from "@waft/engine/internal/host/process";
import type { Command } from "commander";
import process from "node:process";
import {
  type Diagnostic,
  EXIT,
  type ExitCode,
  formatDiagnostic,
  jsonLine,
  ProjectError,
} from "../../base/diagnostic.ts";
import { DISK_ERRORS } from "../../base/failure.ts";
import type { OpsContext } from "../../packages/context.ts";
import { canPrompt, type Palette, palette, standardOutput, type TextOutput, wantsColor } from "../../base/terminal.ts";

/** Flags of every project command. */
export interface GlobalFlags {
  readonly json?: boolean;
  readonly input: boolean;
  readonly locked?: boolean;
  readonly offline?: boolean;
  readonly dryRun?: boolean;
  readonly project?: string;
  /** The user's own plugins are meant, not a project's. */
  readonly user?: boolean;
  readonly registry?: string;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly color?: string;
}

/** The environment passed to a command. */
export interface CommandEnvironment extends TextOutput {
  readonly flags: GlobalFlags;
  /** Colours for stderr, where prompts and reviews are shown. */
  readonly errorColors: Palette;
  readonly interactive: boolean;
  /** The context; `inspect` loads the engine's front end too. */
  context(options?: { readonly inspect?: boolean }): Promise<OpsContext>;
  /** The project's root. */
  root(): Promise<string>;
}

/** The result of a command. */
export interface Outcome {
  readonly data: unknown;
  /** The text for people, without a final newline. */
  readonly text: string;
  readonly diagnostics?: readonly Diagnostic[];
  /** Present if the status does not follow from the diagnostics. */
  readonly exitCode?: ExitCode;
}

/** Adds the global flags to a command. */
export function addGlobalOptions(command: Command): Command {
  return command
    .option("--json", "Print one JSON document on stdout")
    .option("--no-input", "Never prompt; fail if a decision is missing")
    .option("--locked", "Fail if a file of the project would change")
    .option("--offline", "Do not use the network")
    .option("--dry-run", "Make no changes")
    .option("--project <dir>", "The project's directory (default: the nearest one with waft.json)")
    .option("--registry <url>", "The plugin registry")
    .option("--quiet", "Print findings only")
    .option("--verbose", "Print more detail")
    .option("--color <when>", "auto, always or never");
}

/** Adds the option of the commands that can change the user's own plugins. */
export function addUserOption(command: Command): Command {
  return command.option("--user", "Your own plugins, which serve all programs that you run, instead of a project's");
}

/** Runs a command's work and turns its outcome into output and exit code. */
export async function runCommand(
  name: string,
  flags: GlobalFlags,
  work: (env: CommandEnvironment) => Promise<Outcome>,
): Promise<void> {
  const { env } = process;
  const environment: CommandEnvironment = {
    flags,
    ...standardOutput(flags.color),
    errorColors: palette(wantsColor(flags.color, process.stderr.isTTY === true, env)),
    interactive: canPrompt(
      { input: process.stdin.isTTY === true, output: process.stderr.isTTY === true },
      env,
      { input: flags.input, json: flags.json === true },
    ),
    async context(options = {}) {
      const { makeContext } = await import("../../packages/context.ts");
      const inspect = options.inspect === true
        ? (await import("../../definitions/engine_inspector.ts")).inspectPlugin
        : undefined;
      return await makeContext({
        offline: flags.offline === true,
        ...(flags.registry === undefined ? {} : { registry: flags.registry }),
        ...(inspect === undefined ? {} : { inspect }),
      });
    },
    async root() {
      if (flags.user === true) return await userRoot(name, flags);
      const { requireProject } = await import("../../project_root.ts");
      return await requireProject(process.cwd(), flags.project);
    },
  };
  let outcome: Outcome;
  const quiet = flags.quiet === true || flags.json === true;
  const done = quiet || process.stderr.isTTY !== true
    ? () => {}
    : (await import("../../base/progress.ts")).startWaiting(`waft ${name.replace(".", " ")}`);
  try {
    if (flags.color !== undefined && !["auto", "always", "never"].includes(flags.color)) {
      throw new ProjectError([{
        code: "usage.color",
        severity: "error",
        message: `--color must be auto, always or never, not ${JSON.stringify(flags.color)}`,
      }]);
    }
    outcome = await work(environment);
  } catch (error) {
    const failure = asProjectError(error);
    if (failure === undefined) throw error;
    outcome = { data: null, text: "", diagnostics: failure.diagnostics, exitCode: failure.exitCode };
  } finally {
    done();
  }
  const diagnostics = outcome.diagnostics ?? [];
  const error = diagnostics.find((d) => d.severity === "error");
  const exitCode = outcome.exitCode ?? (error === undefined ? EXIT.ok : new ProjectError(diagnostics).exitCode);
  const shown = diagnostics.map((d) => paint(d, environment.errorColors)).join("\n");
  if (flags.json === true) {
    const ok = exitCode === EXIT.ok || exitCode === EXIT.pending;
    writeText(
      1,
      `${jsonLine({ schemaVersion: 1, command: name, ok, data: outcome.data, diagnostics })}\n`,
    );
    process.exitCode = exitCode;
    return;
  }
  if (shown !== "") process.stderr.write(`${shown}\n`);
  if (outcome.text !== "" && flags.quiet !== true) writeText(1, `${outcome.text}\n`);
  process.exitCode = exitCode;
}

/** The folder of the user's own plugins, which `add` makes. */
async function userRoot(command: string, { project, dryRun, locked }: GlobalFlags): Promise<string> {
  if (project !== undefined) {
    throw new ProjectError([{
      code: "usage.user",
      severity: "error",
      message: "--user and --project exclude each other",
    }]);
  }
  const { requireUserFolder } = await import("../../user_project.ts");
  return await requireUserFolder(command === "add" && dryRun !== true && locked !== true);
}

function paint(d: Diagnostic, colors: Palette): string {
  const text = formatDiagnostic(d);
  const color = d.severity === "error" ? colors.red : d.severity === "warning" ? colors.yellow : colors.dim;
  return `waft: ${text.replace(`${d.code}:`, color(`${d.code}:`))}`;
}

/** Failures of the operating system that a user can act on, as findings; undefined for bugs. */
function asProjectError(error: unknown): ProjectError | undefined {
  if (error instanceof ProjectError) return error;
  const { code, path } = (error ?? {}) as { readonly code?: unknown; readonly path?: unknown };
  const reason = typeof code === "string" ? SYSTEM[code] : undefined;
  if (reason === undefined) return undefined;
  const file = typeof path === "string" ? { file: path } : {};
  return new ProjectError([{ code: "system.failed", severity: "error", message: reason, ...file }]);
}

const SYSTEM: { readonly [code: string]: string | undefined } = {
  EACCES: "permission denied",
  EPERM: "the operation is not permitted",
  EMFILE: "too many open files",
  EISDIR: "this is a directory; a file is required",
  ENOTDIR: "a component of the path is not a directory",
  ENOENT: "no such file or directory",
  ELOOP: "too many symbolic links",
  ENAMETOOLONG: "the name is too long",
  EINVAL: "this is not a regular file",
  ...DISK_ERRORS,
};

/** Collects a repeatable option. */
export function collect(value: string, list: readonly string[]): string[] {
  return [...list, value];
}
