/**
 * Runs the registry as a process, for tests that start, kill and restart it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../registry/main.ts", import.meta.url));
/** The command `waft`. */
export const WAFT = fileURLToPath(new URL("../../cli.ts", import.meta.url));

/** A process of the registry, and its output so far. */
export class App {
  readonly child: ChildProcess;
  text = "";
  readonly ended: Promise<number | null>;

  constructor(args: readonly string[], { main = MAIN, databaseUrl = "", env = {} as Record<string, string> } = {}) {
    this.child = spawn(process.execPath, ["run", "-A", "--no-check", main, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env, DATABASE_URL: databaseUrl },
    });
    const collect = (chunk: Uint8Array): void => {
      this.text += new TextDecoder().decode(chunk);
    };
    this.child.stdout!.on("data", collect);
    this.child.stderr!.on("data", collect);
    this.ended = new Promise((resolve) => this.child.once("exit", (code) => resolve(code)));
  }

  /** Waits until the output matches. */
  async saw(pattern: RegExp): Promise<string> {
    for (let i = 0; i < 400; i++) {
      const match = pattern.exec(this.text);
      if (match !== null) return match[1];
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error(`no ${pattern} in ${this.text}`);
  }
}
