/**
 * `status`: the state of the project, the runtime and their surroundings, valid or broken.
 *
 * In: a directory. Out: data about runtime, project, manifest, lockfile, plugins, registry and policy. Never
 * fails on a broken project, uses no network, changes nothing.
 */
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { leftoversIn } from "../../base/atomic_write.ts";
import { type Diagnostic, ProjectError } from "../../base/diagnostic.ts";
import type { Files } from "../../base/files.ts";
import { authorityHolders, authorityState } from "../../lockfile/held_authority.ts";
import { namesOf } from "../../machine_wasi.ts";
import { type MachineConfig, readMachine } from "../../packages/machine.ts";
import type { Lockfile } from "../../lockfile/lock_schema.ts";
import { makeContext } from "../../packages/context.ts";
import { keptYanks } from "../../packages/kept_yanks.ts";
import { TrustStore } from "../../packages/trust_store.ts";
import { type MachinePaths, platformName } from "../../base/paths.ts";
import { type MachineSupport, machineSupport } from "@waft/engine/internal/host/machine";
import { missingAuthorities } from "../../plugins/plugin_grants.ts";
import { missingLock, type ProjectState, readProject, requirementsOf } from "../../project.ts";
import { findProject } from "../../project_root.ts";
import { LOCK_FILE } from "../../base/constants.ts";
import { VERSION } from "../../base/version_string.ts";
import { type Channel, runningChannel } from "../versions/version_channel.ts";

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
  /** Waft's support for this machine. */
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

/** The machine's files and paths. */
export interface StatusOptions {
  readonly files: Files;
  readonly paths: MachinePaths;
  readonly env: { readonly [name: string]: string | undefined };
  readonly registry?: string;
  readonly root?: string;
}

/** The part of the machine's configuration that `status` reports. */
interface MachineFacts {
  readonly registry: string | null;
  readonly policy: StatusResult["policy"];
  readonly deny: readonly string[];
  readonly projects: MachineConfig["projects"];
  readonly diagnostics: readonly Diagnostic[];
}

const NO_PLUGINS: StatusResult["plugins"] = { total: 0, direct: 0, needsReview: 0 };

/** Determines the state. */
export async function projectStatus(start: string, options: StatusOptions): Promise<StatusResult> {
  const facts = await machineFacts(options);
  const base = {
    runtime: { version: VERSION, channel: await runningChannel(options.paths), path: process.execPath },
    machine: { platform: platformName(), ...machineSupport() },
    registry: facts.registry,
    policy: facts.policy,
  };
  const root = options.root ?? await findProject(start);
  if (root === undefined) {
    const nothing = { project: null, manifest: null, lockfile: null, wasi: null, plugins: NO_PLUGINS };
    return { ...base, ...nothing, diagnostics: facts.diagnostics };
  }
  const entry = facts.projects[realpathSync(root)];
  const state = await readProject(root, options.files);
  const requirements = Object.keys(state.manifest === undefined ? {} : requirementsOf(state.manifest.manifest)).length;
  const { lockfile, plugins, diagnostics } = await lockStatus(state, requirements, facts.deny, options);
  return {
    ...base,
    project: { root },
    manifest: { state: state.manifest === undefined ? "broken" : "ok", requirements },
    lockfile,
    plugins,
    wasi: entry === undefined ? null : namesOf(entry),
    diagnostics: [
      ...facts.diagnostics,
      ...await leftovers(root, options.files),
      ...state.manifestDiagnostics,
      ...diagnostics,
    ],
  };
}

/** Reads the machine's configuration; a broken one is a finding. */
async function machineFacts({ paths, env, files, registry }: StatusOptions): Promise<MachineFacts> {
  try {
    const machine = await readMachine(paths, { env, files, ...(registry === undefined ? {} : { registry }) });
    const { policyFile, projects, policy: { deny } } = machine;
    const policy = policyFile === undefined ? null : { file: policyFile, deny };
    return { registry: machine.registry, policy, deny, projects, diagnostics: [] };
  } catch (error) {
    return { registry: null, policy: null, deny: [], projects: {}, diagnostics: findingsOf(error) };
  }
}

type LockStatus = Pick<StatusResult, "lockfile" | "plugins" | "diagnostics">;

/** The state of the lockfile and its plugins. `requirements` is their number in the manifest. */
async function lockStatus(
  { root, lock }: ProjectState,
  requirements: number,
  deny: readonly string[],
  options: StatusOptions,
): Promise<LockStatus> {
  if (lock === undefined) {
    return requirements > 0
      ? { lockfile: { state: "missing" }, plugins: NO_PLUGINS, diagnostics: [missingLock()] }
      : { lockfile: { state: "none" }, plugins: NO_PLUGINS, diagnostics: [] };
  }
  const { lockfile, diagnostics } = lock;
  if (lockfile === undefined) return brokenLock(diagnostics);
  const store = new TrustStore(options);
  const uncovered = await store.uncovered(root, authorityHolders(authorityState(lockfile)));
  const groups = await store.uncoveredGroups(root, lockfile.guest.wasi);
  const guests = groups.length === 0 ? [] : [`the guests (${groups.join(" ")} of WASI)`];
  const direct = Object.keys(lockfile.plugins).filter((id) => id in lockfile.requirements).length;
  return {
    lockfile: { state: "up to date" },
    plugins: { total: Object.keys(lockfile.plugins).length, direct, needsReview: uncovered.length },
    diagnostics: [
      ...diagnostics,
      ...deniedAuthorities(lockfile, deny),
      ...untrusted(root, [...uncovered.map(({ id }) => id), ...guests]),
      ...await knownYanks(options, root, lockfile),
    ],
  };
}

/** The state of a lockfile that could not be read; the first finding decides it. */
function brokenLock(diagnostics: readonly Diagnostic[]): LockStatus {
  const { code } = diagnostics[0];
  const reviews = diagnostics.filter((d) => d.code === "lock.review").map((d) => d.pointer?.split("/")[2]);
  return {
    lockfile: { state: LOCK_STATES[code] ?? "broken", code },
    plugins: { ...NO_PLUGINS, needsReview: new Set(reviews).size },
    diagnostics,
  };
}

/** A warning for each plugin that requires a denied authority. */
function deniedAuthorities(lockfile: Lockfile, deny: readonly string[]): Diagnostic[] {
  return Object.entries(lockfile.plugins).flatMap(([id, plugin]) => {
    const missing = missingAuthorities(plugin, deny);
    if (missing.length === 0) return [];
    const verb = missing.length === 1 ? "is" : "are";
    const message = `${id} cannot be used: ${missing.join(", ")} ${verb} required and denied`;
    return [{ code: "authority.denied", severity: "warning", message, help: `run \`waft plugin grant ${id}\`` }];
  });
}

/** A warning that names the plugins whose grants are not accepted on this machine. */
function untrusted(root: string, ids: readonly string[]): Diagnostic[] {
  if (ids.length === 0) return [];
  return [{
    code: "trust.needed",
    severity: "warning",
    message: `you have not accepted the grants of ${ids.join(", ")} on this machine`,
    file: join(root, LOCK_FILE),
    help: "run `waft trust` to review and accept them",
  }];
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
