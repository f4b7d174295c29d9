/**
 * A thread of pthread_test.ts, in the way of Emscripten's glue: it knows nothing of waft, gets module and memory in a message, and checks
 * them as the glue does. pthread_node_worker.ts and pthread_web_worker.ts start it, by the two kinds of Workers.
 */

interface Load {
  cmd: "load";
  wasmModule: WebAssembly.Module;
  wasmMemory: WebAssembly.Memory;
  thread: number;
}

/** What answers are posted to. */
export type Port = { postMessage(message: unknown): void };

async function runThread({ wasmModule, wasmMemory, thread }: Load, port: Port): Promise<void> {
  if (!(wasmModule instanceof WebAssembly.Module)) throw new TypeError("Argument 0 must be a WebAssembly.Module");
  if (!(wasmMemory instanceof WebAssembly.Memory)) throw new TypeError("the memory is no WebAssembly.Memory");
  if (!(wasmMemory.buffer instanceof SharedArrayBuffer)) throw new TypeError("the memory is not shared");
  const instance = await WebAssembly.instantiate(wasmModule, { env: { memory: wasmMemory } });
  const { work } = instance.exports as { work(thread: number): number };
  const sections = WebAssembly.Module.customSections(wasmModule, "name").length;
  port.postMessage({ cmd: "done", result: work(thread), sections, back: wasmModule });
}

/** Serves messages that `listen` gives to a listener, by answers to `port`. */
export function startThread(port: Port, listen: (listener: (data: unknown) => void) => void): void {
  listen((data) => {
    const message = data as Load | { cmd: "ping" };
    if (message.cmd === "ping") return port.postMessage({ cmd: "pong" });
    runThread(message, port).catch((error: unknown) => port.postMessage({ cmd: "error", message: String(error) }));
  });
  port.postMessage({ cmd: "loaded" });
}
