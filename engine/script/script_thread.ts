/**
 * A thread of a test script, in a Worker: parses the same script, finds its `thread` command, and runs the commands
 * there. In: {@linkcode ThreadTask} as worker data. Out: a message with the counts. Of the parent's modules it can
 * access the shared memories only.
 */
import { parentPort, workerData } from "node:worker_threads";
import { type EngineOptions, Memory, type SharedMemoryToken } from "../api/engine.ts";
import { type Command, parseScript } from "../text/script.ts";
import { runCommands, type ScriptResult } from "./run_script.ts";

/** The task of a thread. */
export interface ThreadTask {
  text: string | Uint8Array;
  /** Indices of the `thread` command in the script, from the outermost in. */
  path: readonly number[];
  options: EngineOptions;
  /** Exported shared memories by the name of the module. */
  shared: readonly { module: string; memories: Readonly<Record<string, SharedMemoryToken>> }[];
}

/** The result of a thread: the counts, or the reason for which it could not run. */
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
  // After the evaluation of this module: see wasi/thread_worker.ts.
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
