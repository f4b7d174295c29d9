/** A number of Workers that run one shared module on one shared memory, each with an instance of its own. */
import { type EngineOptions, type Memory, type Module, NewEngine } from "../../engine/mod.ts";
import { host } from "../../engine/mod.ts";
import type { Reply, Request } from "./worker.ts";

/** One Worker and its unanswered request. */
export class Member {
  readonly #worker: Worker;

  constructor() {
    this.#worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  }

  ask(request: Request): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#worker.onmessage = ({ data }: MessageEvent<Reply>) => {
        if ("error" in data) reject(new Error(data.error));
        else resolve(data.result);
      };
      this.#worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message));
      };
      this.#worker.postMessage(request);
    });
  }

  call(name: string, ...args: (number | bigint)[]): Promise<unknown> {
    return this.ask({ kind: "call", name, args });
  }

  terminate(): void {
    this.#worker.terminate();
  }
}

/** Everything that a test of threads uses. */
export interface Team extends Disposable {
  readonly members: readonly Member[];
  readonly memory: Memory;
  readonly module: Module;
}

/** How the module is compiled, and the limits of the memory. */
export type TeamOptions = Omit<EngineOptions, "bounds"> & {
  bounds?: "guard" | "explicit";
  pages?: number;
  maximum?: number;
};

/** `size` Workers with an instance each of the module in `text`, which imports the memory "env" "memory". */
export async function assemble(
  size: number,
  text: string,
  { pages = 1, maximum = 16, ...options }: TeamOptions = {},
): Promise<Team> {
  const module = NewEngine(options).compile(text);
  const memory = host.sharedMemory(pages, maximum, options.bounds);
  const members = Array.from({ length: size }, () => new Member());
  const request: Request = { kind: "instantiate", module: module.share(), memory: memory.share() };
  await Promise.all(members.map((member) => member.ask(request)));
  return {
    members,
    memory,
    module,
    [Symbol.dispose]: () => {
      for (const member of members) member.terminate();
      module.unshare();
    },
  };
}
