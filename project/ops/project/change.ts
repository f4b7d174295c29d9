/**
 * One change of a project, from intent to written files: the operation behind `add`, `rm`, `plugin update` and `plugin
 * grant`.
 *
 * In: a project and the edits to its requirements, bindings, configuration or decisions. Out: the changes with
 * their reasons, and the names of the written files. Invariant: either both files are written or neither; a cancelled
 * review writes nothing. A broken or conflicted lockfile is salvaged entry by entry, and entries that cannot be trusted
 * are reviewed again.
 */
import { join } from "node:path";
import { leftoversIn, type PendingWrite, sameBytes, writeTogether } from "../../base/atomic_write.ts";
import { type Diagnostic, fail, ProjectError } from "../../base/diagnostic.ts";
import type { Files } from "../../base/files.ts";
import { guestOffers } from "../../definitions/contracts.ts";
import { authorityHolders, authorityState } from "../../lockfile/held_authority.ts";
import { fromLockfile, NO_PREVIOUS, type Previous, salvage, withoutDecisions } from "../../lockfile/lock_merge.ts";
import { type LockDraft, sealLockfile, writeLockfile } from "../../lockfile/lock_write.ts";
import type { JsonObject } from "../../base/json_read.ts";
import { checkLockfile } from "../../lockfile/lockfile.ts";
import { editRequirements } from "../../manifest/manifest_edit.ts";
import { type ProjectState, readProject, requireManifest, requirementsOf } from "../../project.ts";
import { checkManifest } from "../../manifest/manifest.ts";
import { LOCK_FILE, MANIFEST_FILE } from "../../base/constants.ts";
import { type Change, changesBetween, withDecisions } from "./changes.ts";
import type { OpsContext } from "../../packages/context.ts";
import type { OciRequest } from "../../packages/source_oci.ts";
import { TrustStore } from "../../packages/trust_store.ts";
import { decideAll, type Decider } from "./decide.ts";
import { prepare, type Prepared } from "./prepare.ts";

/** A requested change. */
export interface ChangeRequest {
  readonly root: string;
  /**
   * New ranges by id; undefined removes the requirement. A range may depend on the resolved version: see `constraint`.
   */
  readonly requirements?: ReadonlyMap<string, string | undefined>;
  /** The range to write for an id once its version is known; absent: as given. */
  readonly constraint?: (id: string, version: string) => string | undefined;
  readonly paths?: readonly string[];
  readonly oci?: readonly OciRequest[];
  readonly update?: ReadonlySet<string> | "all";
  readonly asked?: ReadonlySet<string>;
  readonly bind?: ReadonlyMap<string, readonly string[]>;
  readonly config?: ReadonlyMap<string, JsonObject>;
  readonly allowYanked?: boolean;
  /** Groups of WASI that guests may use; absent: as before. */
  readonly wasi?: readonly string[] | "all";
  readonly decider: Decider;
  /** Runs when everything is decided and before anything is written; may throw. */
  readonly beforeWrite?: () => void;
  /** Write nothing. */
  readonly dryRun?: boolean;
  /** No file may change: a change is an error. */
  readonly locked?: boolean;
}

/** The result of a change. */
export interface ChangeResult {
  readonly root: string;
  readonly changes: readonly Change[];
  readonly loadOrder: readonly string[];
  readonly warnings: readonly Diagnostic[];
  /** Names of the files that were written. */
  readonly written: readonly string[];
  readonly cancelled: boolean;
  readonly linksChecked: boolean;
}

/** Changes a project. */
export async function changeProject(context: OpsContext, request: ChangeRequest): Promise<ChangeResult> {
  const state = await readProject(request.root, context.files);
  const { manifest } = requireManifest(state);
  const { previous, warnings } = await acceptedPrevious(context, state, request.locked === true);
  const edits = new Map(request.requirements ?? []);
  const prepared = await prepare(
    context,
    prepareRequest(request, previous, applyEdits(requirementsOf(manifest), edits)),
  );
  writeConstraints(edits, prepared, request);
  const final = applyEdits(requirementsOf(manifest), edits);
  const changes = changesBetween(previous, prepared, final);
  const base = {
    root: request.root,
    changes,
    loadOrder: prepared.order,
    warnings: [...warnings, ...prepared.warnings],
    linksChecked: prepared.linksChecked,
  };
  const decided = await decideAll(prepared, previous, final, request.decider, request.asked);
  if (!decided) return { ...base, written: [], cancelled: true };
  const decidedChanges = withDecisions(changes, prepared);
  request.beforeWrite?.();
  const manifestBytes = editedManifest(state, edits);
  const lockBytes = lockFor(prepared, final, previous, request);
  // A project without plugins needs no lockfile.
  const needsLock = state.lockBytes !== undefined || Object.keys(final).length > 0 ||
    wasiGroups(previous, request) !== undefined;
  const writes = pendingWrites(state, manifestBytes, needsLock ? lockBytes : undefined);
  const written = await applyWrites(context, request, state, writes);
  await recordAccepted(context, request, previous, lockBytes);
  return { ...base, changes: decidedChanges, cancelled: false, written };
}

function prepareRequest(
  { root, paths, oci, update, bind, config, allowYanked }: ChangeRequest,
  previous: Previous,
  requirements: { readonly [id: string]: string },
): Parameters<typeof prepare>[1] {
  return {
    root,
    requirements,
    previous,
    ...(paths === undefined ? {} : { paths }),
    ...(oci === undefined ? {} : { oci }),
    ...(update === undefined ? {} : { update }),
    ...(bind === undefined ? {} : { bind }),
    ...(config === undefined ? {} : { config }),
    ...(allowYanked === undefined ? {} : { allowYanked }),
  };
}

/** Replaces the ranges of `edits` by those to write for the chosen versions. */
function writeConstraints(edits: Map<string, string | undefined>, prepared: Prepared, request: ChangeRequest): void {
  for (const [id, range] of edits) {
    const version = prepared.resolution.chosen.get(id)?.version;
    if (range === undefined || version === undefined) continue;
    const written = request.constraint?.(id, version);
    if (written !== undefined) edits.set(id, written);
  }
}

/** The files whose contents change. */
function pendingWrites(
  state: ProjectState,
  manifestBytes: Uint8Array,
  lockBytes: Uint8Array | undefined,
): PendingWrite[] {
  const writes: PendingWrite[] = [];
  if (!sameBytes(manifestBytes, state.manifestBytes)) {
    writes.push({ name: MANIFEST_FILE, bytes: manifestBytes, before: { bytes: state.manifestBytes } });
  }
  if (lockBytes !== undefined && !sameBytes(lockBytes, state.lockBytes)) {
    writes.push({ name: LOCK_FILE, bytes: lockBytes, before: { bytes: state.lockBytes } });
  }
  return writes;
}

/** Writes the files as the request allows; returns their names. */
async function applyWrites(
  { files }: OpsContext,
  { root, locked, dryRun }: ChangeRequest,
  state: ProjectState,
  writes: readonly PendingWrite[],
): Promise<string[]> {
  const names = writes.map((w) => w.name);
  if (locked === true && writes.length > 0) {
    throw fail("lock.stale", `--locked forbids it, but ${names.join(" and ")} would change`, {
      help: "run the command without --locked and commit the result",
    });
  }
  if (dryRun === true) return [];
  if (writes.length === 0) {
    // Clear the leftovers of an interrupted write even when there is nothing else to do.
    if (locked !== true && (await leftoversIn(root, files)).length > 0) await writeTogether(root, [], { files });
    return [];
  }
  await checkManifestFor(writes, root, state, files);
  await writeTogether(root, writes, { files });
  return names;
}

/** Throws if the new manifest is invalid, or if the one that the lockfile was made for is no longer there. */
async function checkManifestFor(
  writes: readonly PendingWrite[],
  root: string,
  state: ProjectState,
  files: Files,
): Promise<void> {
  const manifest = writes.find((w) => w.name === MANIFEST_FILE);
  if (manifest !== undefined) {
    const checked = await checkManifest(manifest.bytes);
    if (checked.read === undefined) throw new ProjectError(checked.diagnostics);
    return;
  }
  if (sameBytes(await files.read(join(root, MANIFEST_FILE)), state.manifestBytes)) return;
  throw fail("project.changed", `${MANIFEST_FILE} changed while this command ran; nothing was written`, {
    file: MANIFEST_FILE,
    help: "run the command again",
  });
}

/**
 * The usable content of the lockfile. Decisions count only if they were made or accepted on this machine. With `locked`
 * nothing is written and nothing runs, so decisions are not checked.
 */
export async function acceptedPrevious(
  context: OpsContext,
  state: ProjectState,
  locked = false,
): Promise<ReturnType<typeof previousOf>> {
  const { previous, warnings } = previousOf(state);
  if (locked) return { previous, warnings };
  const uncovered = await new TrustStore(context).uncovered(state.root, authorityHolders(previous));
  return { previous: withoutDecisions(previous, uncovered.map(({ id }) => id)), warnings };
}

/**
 * Records that the user accepted the grants of this lockfile. Groups of WASI are accepted if the request names them, or
 * if there was no project before that allows some.
 */
async function recordAccepted(
  context: OpsContext,
  request: ChangeRequest,
  { wasi }: Previous,
  lockBytes: Uint8Array,
): Promise<void> {
  if (request.dryRun === true || request.locked === true) return;
  const { lockfile } = checkLockfile(lockBytes);
  if (lockfile === undefined) return;
  const store = new TrustStore(context);
  const groups = request.wasi === undefined ? "kept" : lockfile.guest.wasi;
  await store.accept(request.root, authorityHolders(authorityState(lockfile)), groups);
  if (request.wasi === undefined) await store.noteGroups(request.root, wasi);
}

/** The usable content of the lockfile, with a warning when some of it is lost. */
export function previousOf(state: ProjectState): { previous: Previous; warnings: Diagnostic[] } {
  const { lock, lockBytes } = state;
  if (lock === undefined || lockBytes === undefined) return { previous: NO_PREVIOUS, warnings: [] };
  if (lock.lockfile !== undefined) return { previous: fromLockfile(lock.lockfile), warnings: [] };
  const code = lock.diagnostics[0].code;
  if (code === "lock.version") throw new ProjectError(lock.diagnostics);
  const previous = salvage(lockBytes);
  if (code === "lock.stale") return { previous, warnings: [] };
  const kept = Object.keys(previous.plugins).length;
  const message = code === "lock.conflict-markers"
    ? `merging both sides of ${LOCK_FILE}: ${kept} plugins agree, the others are resolved again`
    : `${LOCK_FILE} is not valid (${code}): ${kept} plugins of it can be kept, the others are resolved and reviewed again`;
  return { previous, warnings: [{ code, severity: "warning", message, file: LOCK_FILE }] };
}

function applyEdits(
  requirements: { readonly [id: string]: string },
  edits: ReadonlyMap<string, string | undefined>,
): { [id: string]: string } {
  const result = Object.assign(Object.create(null) as { [id: string]: string }, requirements);
  for (const [id, range] of edits) {
    if (range === undefined) delete result[id];
    else result[id] = range;
  }
  return result;
}

function editedManifest(state: ProjectState, edits: ReadonlyMap<string, string | undefined>): Uint8Array {
  const text = requireManifest(state).document.text;
  const current = requirementsOf(requireManifest(state).manifest);
  const changed = new Map(
    [...edits].filter(([id, range]) =>
      (Object.hasOwn(current, id) || id in current ? current[id] : undefined) !== range
    ),
  );
  return changed.size === 0 ? state.manifestBytes : new TextEncoder().encode(editRequirements(text, changed));
}

/** The bytes of the lockfile for decided plugins; they are read back strictly before they are used. */
function lockFor(
  prepared: Prepared,
  requirements: { readonly [id: string]: string },
  previous: Previous,
  request: ChangeRequest,
): Uint8Array {
  const plugins: LockDraft["plugins"] = Object.create(null);
  for (const [id, p] of Object.entries(prepared.plugins)) {
    plugins[id] = {
      package: p.package,
      definition: p.definition,
      entry: p.entry,
      grants: p.grants,
      denied: p.denied,
      bindings: { ...p.bindings },
      config: p.config,
    };
  }
  const wasi = wasiGroups(previous, request);
  const draft: LockDraft = {
    requirements: { ...requirements },
    packages: { ...prepared.packages },
    plugins,
    guest: {
      bindings: guestBindings(prepared, requirements, previous, request),
      ...(wasi === undefined ? {} : { wasi }),
    },
  };
  const bytes = writeLockfile(sealLockfile(draft));
  const check = checkLockfile(bytes, { requirements });
  if (check.lockfile === undefined) throw new ProjectError(check.diagnostics);
  return bytes;
}

/** The groups of WASI that guests keep; undefined for all. */
function wasiGroups(previous: Previous, request: ChangeRequest): string[] | undefined {
  const groups = request.wasi === undefined ? previous.wasi : request.wasi === "all" ? undefined : request.wasi;
  return groups === undefined ? undefined : [...groups];
}

function guestBindings(
  prepared: Prepared,
  requirements: { readonly [id: string]: string },
  previous: Previous,
  request: ChangeRequest,
): { [namespace: string]: string } {
  const bindings: { [namespace: string]: string } = Object.create(null);
  const questions: Diagnostic[] = [];
  for (const [namespace, ids] of guestOffers(prepared.plugins, new Set(Object.keys(requirements)))) {
    const chosen = request.bind?.get(`guest ${namespace}`)?.[0] ?? request.bind?.get(namespace)?.[0] ??
      previous.guest[namespace];
    if (chosen !== undefined && ids.includes(chosen)) bindings[namespace] = chosen;
    else if (ids.length === 1) bindings[namespace] = ids[0];
    else {
      questions.push({
        code: "binding.choice",
        severity: "error",
        message: `${ids.join(" and ")} both offer ${namespace} to guests`,
        help: `choose with --bind '${namespace}=${ids[0]}'`,
      });
    }
  }
  if (questions.length > 0) throw new ProjectError(questions);
  return bindings;
}
