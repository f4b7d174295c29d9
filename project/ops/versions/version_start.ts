/**
 * Starts another version of waft: to test it before it is installed, and for a project that pins it.
 *
 * In: a version's directory. Out: the text that its `waft --version` prints. The program gets no input, a time
 * limit, and an environment without the variables that select a version.
 */
import { spawn } from "node:child_process";
import process from "node:process";
import { platformName } from "../../base/paths.ts";
import { startCommand } from "../../versions/bundle_layout.ts";

const LIMIT_MS = 60_000;

/** The text that `waft --version` of the version in a directory prints. */
export function startVersion(directory: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { WAFT_RUNTIME: _, ...env } = process.env;
    const [file, args] = startCommand(directory, platformName(), ["--version"]);
    const child = spawn(file, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk) => out = (out + String(chunk)).slice(0, 1000));
    child.stderr.on("data", (chunk) => err = (err + String(chunk)).slice(0, 1000));
    child.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on("close", (status, signal) => {
      clearTimeout(timer);
      if (status === 0) resolve(out);
      else reject(new Error(`it exited with ${signal ?? `status ${status}`}: ${err.trim()}`));
    });
  });
}
