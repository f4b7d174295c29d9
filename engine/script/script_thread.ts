/**
 * A thread of a test script, in a Worker: reads the same script text again, goes to its `thread` command, and runs the commands there. In:
 * {@linkcode ThreadTask} as worker data. Out: a message with the counts. What it sees of the parent's modules are their shared
 * memories, which is all that threads can have in common.
 */
import { parentPort, workerData } from "node:worker_threads";
import { type EngineOptions, Memory, type SharedMemoryToken } from "../engine.ts";
import { type Command, parseScript } from "../text/script.ts";
import { runCommands, type ScriptResult } from "./run_script.ts";

/** What a thread is to do. */
export interface ThreadTask {
  text: string | Uint8Array;
  /** Indices of the `thread` command in the script, from the outermost in. */
  path: readonly number[];
  options: EngineOptions;
  /** Exported shared memories by the name of the module. */
  shared: readonly { module: string; memories: Readonly<Record<string, SharedMemoryToken>> }[];
}

/** What it ends with: the counts, or why it could not run. */
export type ThreadReply = { result: ScriptResult } | { error: string };

async function runThread({ text, path, options, shared }: ThreadTask): Promise<ScriptResult> {
  let commands: readonly Command[] = parseScript(text);
  for (const index of path) commands = (commands[index] as Command & { kind: "thread" }).commands;
  const foreign = new Map(
    shared.map(({ module, memories }) => [
      module,
      Object.fromEntries(Object.entries(memories).map(([name, token]) => [name, Memory.fromShared(token)])),
    ]),
  );
  return await runCommands({ text, path, commands, options, foreign });
}

if (parentPort !== null) {
  const port = parentPort;
  // After this module has been evaluated: see wasi/thread_worker.ts.
  setTimeout(async () => {
    let reply: ThreadReply;
    try {
      reply = { result: await runThread(workerData as ThreadTask) };
    } catch (error) {
      reply = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
    port.postMessage(reply);
  });
}
