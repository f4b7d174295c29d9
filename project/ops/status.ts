/**
 * `status`: the state of the project, the runtime and their surroundings, valid or broken.
 *
 * Input: a directory. Output: data about runtime, project, manifest, lockfile, plugins, registry and policy. Never
 * fails on a broken project, uses no network, changes nothing.
 */
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { leftoversIn } from "../base/atomic_write.ts";
import { type Diagnostic, ProjectError } from "../base/diagnostic.ts";
import type { Files } from "../base/files.ts";
import { authorityHolders, authorityState } from "../lockfile/held_authority.ts";
import { namesOf } from "../machine_wasi.ts";
import { type MachineConfig, readMachine } from "../packages/machine.ts";
import type { Lockfile } from "../lockfile/lock_schema.ts";
import { makeContext } from "../packages/context.ts";
import { keptYanks } from "../packages/kept_yanks.ts";
import { TrustStore } from "../packages/trust_store.ts";
import { type MachinePaths, platformName } from "../base/paths.ts";
import { type MachineSupport, machineSupport } from "@waft/engine/internal/host/machine";
import { missingAuthorities } from "../plugins/plugin_grants.ts";
import { missingLock, readProject, requirementsOf } from "../project.ts";
import { findProject } from "../project_root.ts";
import { LOCK_FILE } from "../base/constants.ts";
import { VERSION } from "../base/version_string.ts";
import { type Channel, runningChannel } from "./version_channel.ts";

/** The state of a lockfile. */
export type LockState =
  | "up to date"
  | "missing"
  | "none"
  | "stale"
  | "conflict"
  | "needs review"
  | "broken"
  | "unknown";

/** The data that `status` reports. */
export interface StatusResult {
  readonly runtime: { readonly version: string; readonly channel: Channel; readonly path: string };
  /** How well waft supports this machine. */
  readonly machine: MachineSupport & { readonly platform: string };
  readonly project: { readonly root: string } | null;
  readonly manifest: { readonly state: "ok" | "broken"; readonly requirements: number } | null;
  readonly lockfile: { readonly state: LockState; readonly code?: string } | null;
  readonly plugins: { readonly total: number; readonly direct: number; readonly needsReview: number };
  readonly registry: string | null;
  readonly policy: { readonly file: string; readonly deny: readonly string[] } | null;
  /**
   * Directories (`HOST::GUEST`) and names of variables that the machine's configuration gives to this project's guests.
   */
  readonly wasi: { readonly dirs: readonly string[]; readonly env: readonly string[] } | null;
  readonly diagnostics: readonly Diagnostic[];
}

/** Where to look. */
export interface StatusOptions {
  readonly files: Files;
  readonly paths: MachinePaths;
  readonly env: { readonly [name: string]: string | undefined };
  readonly registry?: string;
  readonly root?: string;
}

/** Finds out the state. */
export async function projectStatus(start: string, options: StatusOptions): Promise<StatusResult> {
  const diagnostics: Diagnostic[] = [];
  const machine = { platform: platformName(), ...machineSupport() };
  const runtime = { version: VERSION, channel: await runningChannel(options.paths), path: process.execPath };
  let registry: string | null = null;
  let policy: StatusResult["policy"] = null;
  let deny: readonly string[] = [];
  let projects: MachineConfig["projects"] = {};
  try {
    const machine = await readMachine(options.paths, {
      env: options.env,
      files: options.files,
      ...(options.registry === undefined ? {} : { registry: options.registry }),
    });
    registry = machine.registry;
    deny = machine.policy.deny;
    projects = machine.projects;
    if (machine.policyFile !== undefined) policy = { file: machine.policyFile, deny };
  } catch (error) {
    diagnostics.push(...findingsOf(error));
  }
  const none = { total: 0, direct: 0, needsReview: 0 };
  const root = options.root ?? await findProject(start);
  if (root === undefined) {
    const nothing = { project: null, manifest: null, lockfile: null, wasi: null };
    return { runtime, machine, ...nothing, plugins: none, registry, policy, diagnostics };
  }
  const entry = projects[realpathSync(root)];
  const wasi = entry === undefined ? null : namesOf(entry);
  diagnostics.push(...await leftovers(root, options.files));
  const state = await readProject(root, options.files);
  const requirements = Object.keys(state.manifest === undefined ? {} : requirementsOf(state.manifest.manifest)).length;
  diagnostics.push(...state.manifestDiagnostics);
  const manifest = { state: state.manifest === undefined ? "broken" as const : "ok" as const, requirements };
  const base = { runtime, machine, project: { root }, manifest, registry, policy, wasi };
  if (state.lock === undefined) {
    if (requirements > 0) diagnostics.push(missingLock());
    return { ...base, lockfile: { state: requirements > 0 ? "missing" : "none" }, plugins: none, diagnostics };
  }
  const { lockfile, diagnostics: wrong } = state.lock;
  diagnostics.push(...wrong);
  if (lockfile === undefined) {
    const { code } = wrong[0]!;
    const needsReview = new Set(
      wrong.filter((d) => d.code === "lock.review").map((d) => d.pointer?.split("/")[2]),
    ).size;
    return {
      ...base,
      lockfile: { state: LOCK_STATES[code] ?? "broken", code },
      plugins: { ...none, needsReview },
      diagnostics,
    };
  }
  const plugins = Object.entries(lockfile.plugins);
  for (const [id, plugin] of plugins) {
    const missing = missingAuthorities(plugin, deny);
    if (missing.length > 0) {
      diagnostics.push({
        code: "authority.denied",
        severity: "warning",
        message: `${id} cannot be used: ${missing.join(", ")} ${
          missing.length === 1 ? "is" : "are"
        } required and denied`,
        help: `run \`waft plugin grant ${id}\``,
      });
    }
  }
  const uncovered = await new TrustStore(options).uncovered(root, authorityHolders(authorityState(lockfile)));
  if (uncovered.length > 0) {
    diagnostics.push({
      code: "trust.needed",
      severity: "warning",
      message: `you have not accepted the grants of ${uncovered.map(({ id }) => id).join(", ")} on this machine`,
      file: join(root, LOCK_FILE),
      help: "run `waft trust` to review and accept them",
    });
  }
  diagnostics.push(...await knownYanks(options, root, lockfile));
  const direct = plugins.filter(([id]) => id in lockfile.requirements).length;
  return {
    ...base,
    lockfile: { state: "up to date" },
    plugins: { total: plugins.length, direct, needsReview: uncovered.length },
    diagnostics,
  };
}

/** Yanks that the cache knows of; none where the machine's own configuration is broken, which is reported already. */
async function knownYanks(
  { files, paths, env, registry }: StatusOptions,
  root: string,
  lockfile: Lockfile,
): Promise<Diagnostic[]> {
  try {
    const choices = { files, paths, env, offline: true, ...(registry === undefined ? {} : { registry }) };
    return await keptYanks(await makeContext(choices), root, lockfile);
  } catch (error) {
    if (error instanceof ProjectError) return [];
    throw error;
  }
}

/** Problems with the machine's files as findings. A system error (a file of another user, say) is a finding, too. */
function findingsOf(error: unknown): readonly Diagnostic[] {
  if (error instanceof ProjectError) return error.diagnostics;
  const { code, path, message } = error as {
    readonly code?: unknown;
    readonly path?: unknown;
    readonly message: string;
  };
  if (typeof code !== "string") throw error;
  const file = typeof path === "string" ? { file: path } : {};
  return [{ code: "system.failed", severity: "error", message, ...file }];
}

const LOCK_STATES: { readonly [code: string]: LockState | undefined } = {
  "lock.stale": "stale",
  "lock.conflict-markers": "conflict",
  "lock.review": "needs review",
};

/** Leftovers of an interrupted write. */
async function leftovers(root: string, files: Files): Promise<Diagnostic[]> {
  const found: Diagnostic[] = [];
  for (const name of await leftoversIn(root, files)) {
    found.push({
      code: "project.leftover",
      severity: "note",
      message: `${name} is from an interrupted write, or a write is in progress`,
      file: join(root, name),
      help: "the next `waft add` clears it",
    });
  }
  return found;
}
