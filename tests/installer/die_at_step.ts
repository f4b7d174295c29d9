/**
 * Installs a version or waft itself, or uninstalls waft, and kills its own process (kill -9) at the given step; prints
 * the number of steps if it runs to the end. In: a `Deadly` as JSON argument. Used by version_test.ts and
 * self_install_test.ts.
 */
import { spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { planPath } from "../../project/ops/versions/path_edit.ts";
import {
  installSelf,
  planUninstall,
  type SelfInstall,
  uninstallSelf,
} from "../../project/ops/versions/self_install.ts";
import { installVersion, uninstallVersion, useVersion } from "../../project/ops/versions/version.ts";
import { type MachineFacts, machinePaths } from "../../project/base/paths.ts";
import type { ReleaseKeys } from "../../project/versions/release_index.ts";
import { contextFor } from "./release_fixture.ts";

/** The operation, the machine, and the step to die at; a negative `step` never kills. `umask` is for the process. */
type Deadly =
  & { readonly facts: MachineFacts; readonly step: number; readonly umask?: number }
  & (
    | { readonly kind: "version install"; readonly base: string; readonly keys: ReleaseKeys; readonly target: string }
    | { readonly kind: "version use" | "version uninstall"; readonly target: string }
    | { readonly kind: "self install"; readonly install: SelfInstall }
    | { readonly kind: "self uninstall" }
  );

/** Runs this program: whether it died at its step, else how many steps there are; anything else is an Error. */
export function dieAtStep(deadly: Deadly): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const program = fileURLToPath(import.meta.url);
    const args = ["run", "-A", "--no-check", "--quiet", program, JSON.stringify(deadly)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    child.stdout.on("data", (chunk) => out += String(chunk));
    child.stderr.on("data", (chunk) => out += String(chunk));
    child.on("error", reject);
    child.on("close", (status, signal) => {
      if (signal === "SIGKILL") resolve(undefined);
      else if (status === 0) resolve(Number(out));
      else reject(new Error(out));
    });
  });
}

async function main(deadly: Deadly): Promise<void> {
  const paths = machinePaths(deadly.facts);
  if (deadly.umask !== undefined) process.umask(deadly.umask);
  let count = 0;
  const step = (): void => {
    if (count++ === deadly.step) process.kill(process.pid, "SIGKILL");
  };
  const nowhere = { base: "http://127.0.0.1:1", keys: { threshold: 1, keys: [] } };
  switch (deadly.kind) {
    case "version install":
      await installVersion(contextFor(paths, deadly, { step }), deadly.target);
      break;
    case "version use":
      await useVersion(contextFor(paths, nowhere, { step }), deadly.target);
      break;
    case "version uninstall":
      await uninstallVersion(contextFor(paths, nowhere, { step }), deadly.target, true);
      break;
    case "self install": {
      const path = await planPath(deadly.install.bin, deadly.facts.env, deadly.facts.home);
      await installSelf(contextFor(paths, nowhere, { step }), deadly.facts, { ...deadly.install, path });
      break;
    }
    case "self uninstall":
      await uninstallSelf(paths, await planUninstall(paths, false), step);
      break;
  }
  console.log(count);
}

if (import.meta.main) await main(JSON.parse(process.argv[2]) as Deadly);
