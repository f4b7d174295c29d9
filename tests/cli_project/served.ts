/** Running servers for the tests of `waft serve`. In: a home folder and a command line. Out: processes, answers. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { type Agent, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

/** The path of a file of tests/component/fixtures. */
export const fixture = (name: string) => fileURLToPath(new URL(`../component/fixtures/${name}`, import.meta.url));

/** Calls `action` with a folder that exists as long as it runs. */
export async function inHome(action: (home: string) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-serve-"));
  try {
    await action(home);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** A running `waft serve`, with its output so far. */
export class Served {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  out = "";
  err = "";

  /** `through`: a program and its arguments that start the command which follows them. */
  constructor(home: string, args: readonly string[], through: readonly string[] = [], more: NodeJS.ProcessEnv = {}) {
    const env = { ...process.env, WAFT_HOME: join(home, "waft"), NO_COLOR: "1", WAFT_NO_REPORT: "1", ...more };
    const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
    const [program, ...words] = [...through, process.execPath, ...hostArguments(CLI), "serve", ...args];
    const child = spawn(program, words, { cwd: home, env, stdio });
    this.child = child;
    child.stdout.on("data", (part) => this.out += String(part));
    child.stderr.on("data", (part) => this.err += String(part));
    this.ended = new Promise((resolve) => child.on("close", (code) => resolve(code)));
  }

  /** Sends a signal. `ChildProcess.kill` of Deno does so once, and reports it as the cause of the end. */
  signal(name: "SIGINT" | "SIGTERM" | "SIGHUP"): void {
    const { pid } = this.child;
    if (pid !== undefined) process.kill(pid, name);
  }

  get events(): Record<string, unknown>[] {
    return this.out.split("\n").filter((line) => line !== "").map((line) =>
      JSON.parse(line) as Record<string, unknown>
    );
  }

  async until(condition: () => boolean): Promise<void> {
    let code: number | null | undefined;
    void this.ended.then((ended) => code = ended);
    while (!condition()) {
      if (code !== undefined) throw new Error(`ended with status ${code}: ${this.out}${this.err}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

/** Requests an address. */
export function get(url: string, agent: Agent | false = false): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { agent }, (message) => {
      let body = "";
      message.on("data", (part) => body += String(part));
      message.on("end", () => resolve({ status: message.statusCode ?? 0, body }));
    });
    sent.on("error", reject);
    sent.end();
  });
}
