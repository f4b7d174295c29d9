/**
 * A thread of pthread_test.ts, in the way of Emscripten's glue: it knows nothing of waft, gets module and memory in a message, and checks
 * them as the glue does. It runs as a Worker of the web or of node:worker_threads.
 */
import { parentPort } from "node:worker_threads";

interface Load {
  cmd: "load";
  wasmModule: WebAssembly.Module;
  wasmMemory: WebAssembly.Memory;
  thread: number;
}

type Port = { postMessage(message: unknown): void };

async function runThread({ wasmModule, wasmMemory, thread }: Load, port: Port): Promise<void> {
  if (!(wasmModule instanceof WebAssembly.Module)) throw new TypeError("Argument 0 must be a WebAssembly.Module");
  if (!(wasmMemory instanceof WebAssembly.Memory)) throw new TypeError("the memory is no WebAssembly.Memory");
  if (!(wasmMemory.buffer instanceof SharedArrayBuffer)) throw new TypeError("the memory is not shared");
  const instance = await WebAssembly.instantiate(wasmModule, { env: { memory: wasmMemory } });
  const { work } = instance.exports as { work(thread: number): number };
  const sections = WebAssembly.Module.customSections(wasmModule, "name").length;
  port.postMessage({ cmd: "done", result: work(thread), sections, back: wasmModule });
}

const web = globalThis as unknown as Port & { onmessage: ((event: MessageEvent) => void) | null };
const isWeb = new URL(import.meta.url).searchParams.has("web");
const port: Port = isWeb ? web : parentPort!;

function receive(data: unknown): void {
  const message = data as Load | { cmd: "ping" };
  if (message.cmd === "ping") port.postMessage({ cmd: "pong" });
  else {
    runThread(message, port).catch((error: unknown) => port.postMessage({ cmd: "error", message: String(error) }));
  }
}

if (isWeb) web.onmessage = (event) => receive(event.data);
else parentPort!.on("message", receive);
port.postMessage({ cmd: "loaded" });
