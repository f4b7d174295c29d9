/**
 * Runs the program of an application (ops/build/application.ts) in its executable. In: the application, the
 * executable's name, and the words of the command line, which all belong to the guest. Out: the exit status. Invariant:
 * the compiler is loaded only for modules that cannot run without it.
 */
import { openArtifact } from "@waft/engine/internal/open_cached_module";
import { writeText } from "@waft/engine/internal/host/process";
import { exitStatus, report } from "../../base/failure.ts";
import type { Application } from "../../ops/build/application.ts";
import { callGuest, planCall, programArguments, startGuest, startsThreads } from "../../ops/run/run_module.ts";
import { guestGrants } from "./run_flags.ts";

/** Runs an application. Errors are printed. */
export async function runApplication(
  application: Application,
  name: string,
  args: readonly string[],
): Promise<number> {
  try {
    const lines = await linesOf(application, name, args);
    if (lines.length > 0) writeText(1, lines.join("\n") + "\n");
    return 0;
  } catch (error) {
    report(error);
    return exitStatus(error);
  }
}

async function linesOf({ inputs, program }: Application, name: string, args: readonly string[]): Promise<string[]> {
  const { invoke } = inputs;
  const guest = {
    context: {},
    wasiGroups: inputs.wasi,
    ...guestGrants({ dir: [...inputs.dir], env: [...inputs.env] }),
  };
  if (inputs.form === "component") {
    const { runBuiltComponent } = await import("../../ops/build/built_component.ts");
    return await runBuiltComponent(name, program, args, { ...guest, ...(invoke === undefined ? {} : { invoke }) });
  }
  const module = openArtifact(program, {}) ?? (await import("@waft/engine")).NewEngine().load(program);
  const call = planCall(name, module, args, invoke);
  if (!startsThreads(module)) return await callGuest(name, startGuest(name, module, args, guest), call);
  const { runThreaded } = await import("../../ops/run/run_threaded.ts");
  await runThreaded(name, module, call.name, programArguments(name, args), guest);
  return [];
}
