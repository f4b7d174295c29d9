/**
 * A thread for tests: receives a module and a memory by their tokens, and calls exports on request.
 */
import {
  host,
  type Instance,
  Memory,
  Module,
  type SharedMemoryToken,
  type SharedModuleToken,
} from "../../engine/mod.ts";
import { serve } from "../support/test_worker.ts";

export type Request =
  | { kind: "instantiate"; module: SharedModuleToken; memory?: SharedMemoryToken }
  | { kind: "call"; name: string; args: (number | bigint)[]; deadline?: number }
  | { kind: "make"; pages: number; maximum: number }
  | { kind: "code size" }
  | { kind: "loops entered" }
  | { kind: "drop" }
  | { kind: "forge"; module: SharedModuleToken; memory: SharedMemoryToken }
  | { kind: "adopt"; values: unknown[] };

/** Tokens that are not those of `share`. */
function forgeries(module: SharedModuleToken, memory: SharedMemoryToken): unknown[] {
  const control = new SharedArrayBuffer(16);
  new BigInt64Array(control).fill(1n << 40n);
  const [, ...rest] = module.buffers;
  const foreign = { ...JSON.parse(module.description), base: 4096 };
  return [
    { ...memory, pages: new SharedArrayBuffer(65536), control },
    { ...memory, control },
    { ...memory, pages: new ArrayBuffer(65536) },
    JSON.parse(JSON.stringify({ ...memory, pages: {}, control: {} })),
    { ...module, version: module.version + 1 },
    { ...module, description: JSON.stringify(foreign) },
    { ...module, buffers: [new SharedArrayBuffer(4), ...rest] },
    { ...module, buffers: [new ArrayBuffer(4), ...rest] },
    // An empty buffer is like any other.
    ...module.buffers.flatMap((buffer, k) =>
      buffer.byteLength === 0
        ? []
        : [{ ...module, buffers: module.buffers.with(k, new SharedArrayBuffer(buffer.byteLength)) }]
    ),
    { ...module, seal: memory.seal },
    JSON.parse(JSON.stringify({ ...module, buffers: [] })),
    null,
    "module",
  ];
}

/** The name of the error with which a value is refused as a token; empty if it is accepted. */
function adopt(value: unknown): string {
  const isMemory = (value as { waft?: string } | null)?.waft === "memory";
  try {
    if (isMemory) Memory.fromShared(value as SharedMemoryToken);
    else Module.fromShared(value as SharedModuleToken);
    return "";
  } catch (error) {
    return (error as Error).name;
  }
}

let module: Module | undefined;
let instance: Instance | undefined;
let memory: Memory | undefined;

function answer(request: Request): unknown {
  switch (request.kind) {
    case "instantiate":
      memory = request.memory && Memory.fromShared(request.memory);
      module = Module.fromShared(request.module);
      instance = module.instantiate({}, {
        env: { memory: memory ?? host.memory(1), pause: () => {} },
      });
      return undefined;
    case "call": {
      const context = request.deadline === undefined ? {} : { deadline: request.deadline };
      return instance!.call(context, request.name, ...request.args);
    }
    case "make":
      memory = host.sharedMemory(request.pages, request.maximum);
      new Uint8Array(memory.buffer).fill(7);
      return memory.share();
    case "forge":
      return forgeries(request.module, request.memory);
    case "adopt":
      return request.values.map(adopt);
    case "code size":
      return module!.codeSize;
    case "loops entered":
      return module!.loopsEntered;
    case "drop":
      module = undefined;
      instance = undefined;
      memory = undefined;
      return undefined;
  }
}

serve(answer);
