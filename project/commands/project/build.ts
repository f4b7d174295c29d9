/**
 * `waft build FILE -o APP`: makes one executable of a module or component: a copy of waft's single executable, followed
 * by the compiled program (ops/build/application.ts). In: a program, and the inputs that its guest gets at every
 * start. Out: the executable, written completely or not at all.
 */
import type { Machine } from "@waft/engine";
import { isSingleExecutable } from "@waft/engine/internal/host/process";
import type { Command } from "commander";
import { statSync } from "node:fs";
import process from "node:process";
import { FileFailure, UsageError } from "../../base/failure.ts";
import type { Application, ApplicationInputs } from "../../ops/build/application.ts";
import { compileProgram } from "../../ops/build/compile_program.ts";
import { componentBytes } from "../../ops/tools/component_bytes.ts";
import { readInput } from "../../ops/tools/read_input.ts";
import { machineOf } from "../../ops/build/machine_name.ts";
import { readShape } from "../../ops/run/module_shape.ts";
import { requireFunction } from "../../ops/run/run_module.ts";
import { runtimePlatform } from "../../ops/build/single_runtime.ts";
import { writeApplication } from "../../ops/build/write_application.ts";
import { type CompileProgress, compileProgress } from "../tools/compile_progress.ts";
import { addOptions, type OptionRow } from "../option_rows.ts";
import { projectGroups } from "../run/project_guest.ts";
import { guestGrants, PROJECT_OPTION_ROWS } from "../run/run_flags.ts";

interface BuildFlags {
  readonly output: string;
  readonly runtime?: string;
  readonly cpu?: string;
  readonly invoke?: string;
  readonly oci?: string;
  readonly sysroot?: string;
  readonly dir: string[];
  readonly env: string[];
  readonly project?: string;
  readonly bare?: boolean;
}

const OPTION_ROWS: readonly OptionRow[] = [
  { flags: "--runtime <file>", description: "Single executable of waft to copy, for any system (default: this one)" },
  { flags: "--cpu <features>", description: "Instruction-set extensions that the code may use, separated by commas" },
  { flags: "--invoke <name>", description: "Exported function to call (default: _start, else the only one)" },
  {
    flags: "--oci <name:tag>",
    description: "Write a container image of this name (OCI layout, tar) with the executable",
  },
  { flags: "--sysroot <dir>", description: "System whose C library the image gets, with --oci (default: /)" },
  {
    flags: "--dir <host::guest>",
    description: "Give the guest a directory at every start (repeatable)",
    repeatable: true,
  },
  {
    flags: "--env <name=value>",
    description: "Set an environment variable of the guest (repeatable)",
    repeatable: true,
  },
  ...PROJECT_OPTION_ROWS,
];

/** Adds `build`. */
export function addCommand(program: Command): void {
  const command = program.command("build")
    .description("Make one executable of a module or component: the runtime and the compiled program.")
    .argument("<file>", "Module or component, in binary or text form; - is standard input")
    .requiredOption("-o, --output <file>", "Executable or image to write");
  addOptions(command, OPTION_ROWS).action(async (file: string, flags: BuildFlags) => {
    const { output, invoke, dir, env } = flags;
    const wasi = await allowedWasi(flags);
    const runtime = flags.runtime ?? ownRuntime();
    const platform = runtimePlatform(runtime);
    const machine = machineOf("--runtime", platform, flags.cpu);
    requireImageOptions(flags, platform);
    const progress = await compileProgress();
    const { form, program } = await compiled(file, invoke, machine, progress);
    const inputs: ApplicationInputs = {
      form,
      ...(invoke === undefined ? {} : { invoke }),
      dir,
      env,
      ...(wasi === undefined ? {} : { wasi }),
    };
    try {
      if (flags.oci === undefined) writeApplication(output, runtime, { inputs, program });
      else {await (await import("../../ops/build/write_image.ts")).writeImage(output, runtime, { inputs, program }, {
          name: flags.oci,
          platform,
          sysroot: flags.sysroot ?? "/",
        });}
    } catch (error) {
      throw new FileFailure(output, error);
    }
    progress.finish(output, statSync(output).size);
  });
}

/** The name of an image with its tag, as container tools take it. */
const IMAGE_NAME = /^[a-z0-9][a-z0-9._-]*(?::\d{1,5}\/)?(?:[/._-]*[a-z0-9]+)*:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;

/** Throws UsageError unless the options for images fit together. */
function requireImageOptions({ oci, sysroot }: BuildFlags, platform: string): void {
  if (oci === undefined) {
    if (sysroot !== undefined) throw new UsageError("--sysroot needs --oci");
    return;
  }
  if (!IMAGE_NAME.test(oci)) throw new UsageError(`--oci takes NAME:TAG, such as team/app:1.0, not "${oci}"`);
  if (!platform.startsWith("linux/")) {
    throw new UsageError(`--oci: containers run Linux; the runtime is for ${platform}: name another with --runtime`);
  }
}

/**
 * The groups of WASI that the project allows its guests; undefined: all, or there is no project. Rejects with an error
 * for flags that are malformed or not allowed.
 */
async function allowedWasi(flags: BuildFlags): Promise<readonly string[] | undefined> {
  const grants = guestGrants(flags);
  const { wasiGroups } = await projectGroups(flags);
  if (wasiGroups === undefined) return undefined;
  const { narrowedInputs } = await import("../../definitions/wasi_groups.ts");
  narrowedInputs({ args: [], ...grants }, wasiGroups);
  return wasiGroups;
}

/** The executable of this process, if it is a single one. Throws UsageError. */
function ownRuntime(): string {
  if (isSingleExecutable()) return process.execPath;
  throw new UsageError(
    "waft build copies a single executable of waft, and this waft is not one: name one with --runtime FILE. " +
      "Releases contain them (waft-VERSION-OS-ARCH-standalone.tar.gz); in a clone, `deno task single` builds one",
  );
}

/** Compiles a file for a machine. Rejects with FileFailure. */
async function compiled(
  file: string,
  invoke: string | undefined,
  machine: Machine,
  progress: CompileProgress,
): Promise<{ form: ApplicationInputs["form"]; program: Application["program"] }> {
  const done = progress.start(`compiling ${file}`);
  try {
    const bytes = readInput(file);
    const component = await componentBytes(bytes);
    if (component !== undefined) {
      const { buildComponent } = await import("../../ops/build/built_component.ts");
      return { form: "component", program: await buildComponent(component, machine, invoke) };
    }
    const shape = readShape(bytes);
    if (shape !== undefined) requireFunction(file, shape, invoke);
    return { form: "module", program: await compileProgram(bytes, machine, progress.option) };
  } catch (error) {
    throw error instanceof UsageError ? error : new FileFailure(file, error);
  } finally {
    done();
  }
}
