/**
 * The program of a runner's process. In: the requests of the program that started it, through standard input. Out: its
 * answers, through standard output.
 */
import { exitProcess } from "../host/process.ts";
import { serveRunner } from "./service.ts";

try {
  await serveRunner();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  await exitProcess(1);
}
await exitProcess(0);
