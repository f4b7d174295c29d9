/**
 * The entry module of single executables (scripts/package/single.ts). In: the command line, and the executable itself.
 * Out: an exit status. Runs the child of the engine's self-test, the program of an application
 * (project/ops/build/application.ts), or the command. Start-up time counts, so each of them is loaded on demand.
 */
import process from "node:process";
import { exitProcess } from "@waft/engine/internal/host/process";
import { type Application, readApplication } from "./project/ops/build/application.ts";

async function start(args: string[]): Promise<number> {
  let application: Application | undefined;
  try {
    application = readApplication(process.execPath);
  } catch (error) {
    const { FileFailure, report } = await import("./project/base/failure.ts");
    report(new FileFailure(process.execPath, error));
    return 1;
  }
  if (application === undefined) return await (await import("./cli.ts")).main(args);
  const { runApplication } = await import("./project/commands/run/application.ts");
  return await runApplication(application, process.execPath, args);
}

// Started by engine/host/self_check.ts with the path of a module, which this executable contains.
if (process.env["WAFT_SELF_TEST"] === "running") await import("./engine/api/self_test_program.ts");
else await exitProcess(await start(process.argv.slice(2)));
