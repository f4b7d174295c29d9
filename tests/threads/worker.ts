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
  | { kind: "drop" };

let instance: Instance | undefined;
let memory: Memory | undefined;

function answer(request: Request): unknown {
  switch (request.kind) {
    case "instantiate":
      memory = request.memory && Memory.fromShared(request.memory);
      instance = Module.fromShared(request.module).instantiate({}, {
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
    case "drop":
      instance = undefined;
      memory = undefined;
      return undefined;
  }
}

serve(answer);
