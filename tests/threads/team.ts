/** Several Workers that run one shared module on one shared memory, each with its own instance. */
import { type EngineOptions, type Memory, type Module, NewEngine } from "../../engine/mod.ts";
import { host } from "../../engine/mod.ts";
import { TestWorker } from "../support/test_worker.ts";
import type { Request } from "./worker.ts";

/** One Worker and its pending request. */
export class Member {
  readonly #worker = new TestWorker(new URL("./worker.ts", import.meta.url));

  ask(request: Request): Promise<unknown> {
    return this.#worker.ask(request);
  }

  call(name: string, ...args: (number | bigint)[]): Promise<unknown> {
    return this.ask({ kind: "call", name, args });
  }

  terminate(): void {
    this.#worker.terminate();
  }
}

/** The shared objects of a thread test. */
export interface Team {
  readonly members: readonly Member[];
  readonly memory: Memory;
  readonly module: Module;
}

/** Compilation options, and the limits of the memory. */
type TeamOptions = Omit<EngineOptions, "bounds"> & {
  bounds?: "guard" | "explicit";
  pages?: number;
  maximum?: number;
};

/**
 * Runs `action` with `size` Workers, each with an instance of the module in `text`, which imports the memory "env"
 * "memory".
 */
export async function withTeam(
  size: number,
  text: string,
  { pages = 1, maximum = 16, ...options }: TeamOptions,
  action: (team: Team) => Promise<void>,
): Promise<void> {
  const module = NewEngine(options).compile(text);
  const memory = host.sharedMemory(pages, maximum, options.bounds);
  const members = Array.from({ length: size }, () => new Member());
  try {
    const request: Request = { kind: "instantiate", module: module.share(), memory: memory.share() };
    await Promise.all(members.map((member) => member.ask(request)));
    await action({ members, memory, module });
  } finally {
    for (const member of members) member.terminate();
    module.unshare();
  }
}
