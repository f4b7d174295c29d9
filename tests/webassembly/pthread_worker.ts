/**
 * A thread of pthread_test.ts, modelled on Emscripten's glue: it does not refer to waft, receives module and memory in
 * a message, and checks them as the glue does. pthread_node_worker.ts and pthread_web_worker.ts start it, one for each
 * kind of Worker.
 */

interface Load {
  cmd: "load";
  wasmModule: WebAssembly.Module;
  wasmMemory: WebAssembly.Memory;
  thread: number;
}

/** The destination of answers. */
export type Port = { postMessage(message: unknown): void };

async function runThread({ wasmModule, wasmMemory, thread }: Load, port: Port): Promise<void> {
  if (!(wasmModule instanceof WebAssembly.Module)) throw new TypeError("Argument 0 must be a WebAssembly.Module");
  if (!(wasmMemory instanceof WebAssembly.Memory)) throw new TypeError("the memory is not a WebAssembly.Memory");
  if (!(wasmMemory.buffer instanceof SharedArrayBuffer)) throw new TypeError("the memory is not shared");
  const instance = await WebAssembly.instantiate(wasmModule, { env: { memory: wasmMemory } });
  const { work } = instance.exports as { work(thread: number): number };
  const sections = WebAssembly.Module.customSections(wasmModule, "name").length;
  port.postMessage({ cmd: "done", result: work(thread), sections, back: wasmModule });
}

/** Answers the messages that `listen` delivers by posting to `port`. */
export function startThread(port: Port, listen: (listener: (data: unknown) => void) => void): void {
  listen((data) => {
    const message = data as Load | { cmd: "ping" };
    if (message.cmd === "ping") return port.postMessage({ cmd: "pong" });
    runThread(message, port).catch((error: unknown) => port.postMessage({ cmd: "error", message: String(error) }));
  });
  port.postMessage({ cmd: "loaded" });
}
