/**
 * The program of a runner's process with components. In: the requests of the program that started it, through standard
 * input. Out: its answers, through standard output.
 */
import { exitProcess } from "@waft/engine/internal/host/process";
import { serveRunner } from "@waft/engine/internal/runner/service";
import { EXTENSION } from "./operations.ts";

try {
  await serveRunner({ [EXTENSION]: async () => await import("./extension.ts") });
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  await exitProcess(1);
}
await exitProcess(0);
