/**
 * A temporary project with its own machine directories. Test data only.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ContextChoices, makeContext, type OpsContext } from "../../project/packages/context.ts";
import { machinePaths } from "../../project/base/paths.ts";
import type { Decider } from "../../project/ops/project/decide.ts";
import { deciderFromFlags } from "../../project/ops/project/decide.ts";
import type { FakeRegistry } from "./fake_registry.ts";

/** The registry address that tests use. */
export const REGISTRY = "https://plugins.example";

/** A project in a temporary directory. */
export class TempProject {
  readonly home = mkdtempSync(join(tmpdir(), "waft-test-"));
  readonly root: string;

  constructor(manifest: string | undefined = '{\n  "plugins": {}\n}\n') {
    this.root = mkdtempSync(join(this.home, "project-"));
    if (manifest !== undefined && manifest !== "") this.write("waft.json", manifest);
  }
  write(name: string, text: string | Uint8Array): void {
    writeFileSync(join(this.root, name), text);
  }
  read(name: string): string | undefined {
    try {
      return readFileSync(join(this.root, name), "utf8");
    } catch {
      return undefined;
    }
  }
  context(registry: FakeRegistry | undefined, choices: ContextChoices = {}): Promise<OpsContext> {
    return makeContext({
      registry: REGISTRY,
      env: {},
      paths: machinePaths({ env: { WAFT_HOME: join(this.home, "waft") }, os: "linux", home: this.home }),
      ...(registry === undefined ? {} : { fetch: registry.fetch }),
      engines: { waft: "0.3.0" },
      ...choices,
    });
  }
  remove(): void {
    removeFolder(this.home);
  }
}

/** The number of attempts to remove a folder, and the milliseconds between two. */
const REMOVALS = 20;
const REMOVAL_PAUSE_MS = 50;

/**
 * Removes a folder. Windows keeps the files of a process that has just ended for a moment, and work that an error has
 * left behind may still write; Deno does not repeat an attempt by itself.
 */
function removeFolder(path: string): void {
  for (let attempt = 1;; attempt++) {
    try {
      return rmSync(path, { recursive: true, force: true });
    } catch (error) {
      if (attempt === REMOVALS) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REMOVAL_PAUSE_MS);
    }
  }
}

/** Allows all that is asked for. */
export const ALLOW_ALL: Decider =
  deciderFromFlags({ allow: [], deny: [], allowRequested: true, command: "waft add" }).decide;

/** A decider without a user. */
export const NO_TERMINAL: Decider =
  deciderFromFlags({ allow: [], deny: [], allowRequested: false, command: "waft add" }).decide;
