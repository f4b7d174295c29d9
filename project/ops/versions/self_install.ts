/**
 * Installs waft itself on a machine, and uninstalls it.
 *
 * In: the directory of an unpacked bundle whose archive install.sh has checked. Out: the version in place and
 * active, the launcher in the chosen directory, and a receipt of every change outside of waft's own directories, from
 * which `self uninstall` undoes exactly those. Invariant: the receipt is written before the changes it records, so a
 * killed installation can be undone.
 */
import { mkdir, readFile, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { WRITE_LOCK_FILE } from "../../base/atomic_write.ts";
import { fail } from "../../base/diagnostic.ts";
import { DISK } from "../../base/files.ts";
import {
  type MachineFacts,
  type MachinePaths,
  machinePaths,
  OWN_DIRECTORY_MODE,
  platformName,
} from "../../base/paths.ts";
import { bundleLayout } from "../../versions/bundle_layout.ts";
import { replaceFile } from "../../versions/release_download.ts";
import {
  diskError,
  isStagingName,
  namesIn,
  placeVersion,
  readActive,
  readReceipt,
  type Receipt,
  type Step,
  withVersionLock,
  writeActive,
} from "../../versions/version_store.ts";
import { applyEdits, type PathEdit, type PathPlan, undoEdits } from "./path_edit.ts";
import { bundleFiles, tryVersion, type VersionContext } from "./version.ts";

/** The changes of an installation outside of waft's directories. */
export interface InstallReceipt {
  readonly schemaVersion: 1;
  /** The release site; absent for the default. */
  readonly base?: string;
  /** The launcher's directory. */
  readonly bin: string;
  /** Directories that did not exist before; removed when nothing else is in them. */
  readonly created: readonly string[];
  readonly path: readonly PathEdit[];
}

/** The layout of this machine's versions. */
const LAYOUT = bundleLayout(platformName());

function receiptFile(paths: MachinePaths): string {
  return join(paths.state, "install-receipt.json");
}

/** The receipt; undefined when waft was not installed by its installer. */
export async function readInstallReceipt(paths: MachinePaths): Promise<InstallReceipt | undefined> {
  const bytes = await DISK.read(receiptFile(paths), 1 << 20);
  if (bytes === undefined) return undefined;
  try {
    const receipt = JSON.parse(new TextDecoder().decode(bytes)) as InstallReceipt;
    if (receipt?.schemaVersion === 1 && typeof receipt.bin === "string" && Array.isArray(receipt.created)) {
      return receipt;
    }
  } catch {
    // Said below.
  }
  throw fail("install.state", "the receipt of the installation is damaged", { file: receiptFile(paths) });
}

/** The installation to perform. */
export interface SelfInstall {
  /** The unpacked bundle. */
  readonly from: string;
  readonly receipt: Receipt;
  readonly bin: string;
  readonly base?: string;
  /** The PATH edits to apply; none when absent. */
  readonly path?: PathPlan;
}

/** Installs the bundle in a directory and activates it. */
export async function installSelf(
  context: VersionContext,
  facts: MachineFacts,
  install: SelfInstall,
): Promise<{ readonly version: string; readonly bin: string }> {
  const paths = machinePaths(facts);
  const { step } = context;
  const { version } = install.receipt;
  const launcher = join(install.bin, LAYOUT.command);
  const existing = await readFile(launcher, "utf8").catch(() => undefined);
  if (
    existing !== undefined && !existing.includes(LAYOUT.mark) || (await DISK.status(launcher))?.kind === "directory"
  ) {
    throw fail("install.exists", "another program with this name exists", {
      file: launcher,
      help: "remove it, or choose another directory with --dir",
    });
  }
  const folder = `waft-${version}/`;
  const bundle = bundleFiles(await readTree(install.from, folder), version, context.platform);
  const created = await missingParents([
    paths.state,
    paths.versions,
    paths.config,
    paths.cache,
    install.bin,
    ...(install.path?.edits ?? []).map((e) => dirname(e.file)),
  ]);
  try {
    await withVersionLock(paths, async () => {
      const before = await readInstallReceipt(paths);
      step?.("install receipt");
      const receipt: InstallReceipt = {
        schemaVersion: 1,
        ...(install.base === undefined ? {} : { base: install.base }),
        bin: install.bin,
        created: [...new Set([...(before?.created ?? []), ...created])],
        path: [...(before?.path ?? []), ...(install.path?.edits ?? [])],
      };
      await replaceFile(receiptFile(paths), `${JSON.stringify(receipt, null, 2)}\n`);
      const same = await readReceipt(paths, version);
      // A build from source may share its version with an earlier build of different contents.
      if (same === undefined || install.receipt.kind === "source" || same.sha256 !== install.receipt.sha256) {
        await placeVersion(paths, install.receipt, bundle, (dir) => tryVersion(context, dir, version), step);
      }
      const active = await readActive(paths).catch(() => ({}) as { current?: string });
      if (active.current !== version) {
        await writeActive(
          paths,
          { current: version, ...(active.current === undefined ? {} : { previous: active.current }) },
          step,
        );
      }
      step?.("launcher");
      const text = new TextDecoder().decode(bundle.files.get(LAYOUT.launcher)!)
        .replace(/^waft_layout=.*$/m, `waft_layout=${facts.os === "linux" ? "xdg" : "home"}`);
      await mkdir(install.bin, { recursive: true, mode: OWN_DIRECTORY_MODE });
      await replaceFile(launcher, text, 0o755);
      await applyEdits(install.path?.edits ?? [], step);
      step?.("done");
      if (before !== undefined && before.bin !== install.bin) await removeLauncher(before.bin);
    });
  } catch (error) {
    throw diskError(error, paths.versions);
  }
  return { version, bin: install.bin };
}

async function removeLauncher(bin: string): Promise<void> {
  const launcher = join(bin, LAYOUT.command);
  if (await isLauncher(launcher)) await rm(launcher, { force: true });
}

/** The files below a directory, by path. */
async function readTree(root: string, prefix: string): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  const walk = async (directory: string, name: string): Promise<void> => {
    for (const entry of await DISK.list(directory)) {
      const path = join(directory, entry);
      const status = await DISK.status(path);
      if (status?.kind === "directory") await walk(path, `${name}${entry}/`);
      else if (status?.kind === "file") files.set(`${name}${entry}`, (await DISK.read(path))!);
      else throw fail("archive.contents", "a bundle consists of plain files", { file: path });
    }
  };
  await walk(root, prefix);
  return files;
}

/** Directories, and those above them, that do not exist. */
async function missingParents(directories: readonly string[]): Promise<string[]> {
  const missing = new Set<string>();
  for (let directory of directories) {
    while (await DISK.status(directory) === undefined && dirname(directory) !== directory) {
      missing.add(directory);
      directory = dirname(directory);
    }
  }
  return [...missing];
}

/**
 * Names that waft gives to the entries of its directories; all other entries belong to others. install.ps1 has them,
 * too.
 */
export const OWN_NAMES: { readonly [directory in "cache" | "state" | "config"]: RegExp } = {
  // `deno` is the cache of the Deno that an installed version brings (installer/start.sh).
  cache: /^(?:blobs|compiled|deno|downloads|indexes|records)$/,
  state:
    /^(?:trust|active\.json|install-receipt\.json|release-seen\.json|waft-lock\.json\.lock(?:\.[0-9a-f]{12})?|[a-z-]+\.json\.[0-9a-f]{12}\.tmp)$/,
  config: /^(?:config|policy|registry-keys|credentials)\.json(?:\.[0-9a-f]{12}\.tmp)?$/,
};

/** Entries of waft's directories that waft made. */
async function ownEntries(paths: MachinePaths, directory: keyof typeof OWN_NAMES): Promise<string[]> {
  const names = await namesIn(paths[directory]);
  return names.filter((name) => OWN_NAMES[directory].test(name)).map((name) => join(paths[directory], name));
}

/** Directories of installed versions, and the leftovers of interrupted installations beside them. */
async function ownVersions(paths: MachinePaths): Promise<string[]> {
  const own: string[] = [];
  for (const name of await namesIn(paths.versions)) {
    const isOwn = isStagingName(name) || await readReceipt(paths, name).catch(() => undefined) !== undefined;
    if (isOwn) own.push(join(paths.versions, name));
  }
  return own;
}

/** waft's own directories. */
function ownDirectories({ versions, cache, state, config }: MachinePaths): string[] {
  return [versions, cache, state, config];
}

/** The entries that an uninstallation removes, and those that it keeps. */
export interface UninstallPlan {
  /** Whether waft was installed here by its installer. */
  readonly isInstalled: boolean;
  readonly remove: readonly string[];
  readonly edits: readonly PathEdit[];
  readonly keep: readonly string[];
}

/** Determines the entries to remove: those that waft made, by name, and never a directory with files of others. */
export async function planUninstall(paths: MachinePaths, purge: boolean): Promise<UninstallPlan> {
  const receipt = await readInstallReceipt(paths);
  const launcher = join(receipt?.bin ?? paths.bin, LAYOUT.command);
  const isInstalled = receipt !== undefined || await isLauncher(launcher);
  const config = await ownEntries(paths, "config");
  const keepConfig = !purge && config.length > 0;
  return {
    isInstalled,
    remove: [
      ...(isInstalled ? [launcher] : []),
      ...await ownVersions(paths),
      ...await ownEntries(paths, "cache"),
      ...await ownEntries(paths, "state"),
      ...(keepConfig ? [] : config),
    ],
    edits: receipt?.path ?? [],
    keep: keepConfig ? [paths.config] : [],
  };
}

async function isLauncher(path: string): Promise<boolean> {
  return (await readFile(path, "utf8").catch(() => "")).includes(LAYOUT.mark);
}

/**
 * Removes waft; returns the edits that could not be undone. Projects are not touched. An uninstallation killed at any
 * point can be repeated, if necessary by a reinstalled waft. Therefore the versions are removed late, then the
 * launcher, which reports missing versions, and the receipt last, when only it and the directories above it are left.
 */
export async function uninstallSelf(
  paths: MachinePaths,
  plan: UninstallPlan,
  step: Step = () => {},
): Promise<string[]> {
  const receipt = await readInstallReceipt(paths);
  const longestFirst = [...(receipt?.created ?? [])].sort((a, b) => b.length - a.length);
  const removeEmpty = async (): Promise<void> => {
    // A directory that is not empty is in use by others.
    for (const directory of [...ownDirectories(paths), ...longestFirst]) await rmdir(directory).catch(() => {});
  };
  const work = async (): Promise<string[]> => {
    const left = await undoEdits(plan.edits, step);
    const isLate = (path: string): boolean => [paths.versions, paths.state].includes(dirname(path));
    const launcher = join(receipt?.bin ?? paths.bin, LAYOUT.command);
    const early = plan.remove.filter((path) => path !== launcher && !isLate(path));
    for (const path of [...early, ...await ownVersions(paths)]) {
      step(`remove ${path}`);
      await rm(path, { recursive: true, force: true });
    }
    step("launcher");
    await removeLauncher(receipt?.bin ?? paths.bin);
    step("state");
    for (const path of await ownEntries(paths, "state")) {
      if (path !== receiptFile(paths) && path !== join(paths.state, WRITE_LOCK_FILE)) {
        await rm(path, { recursive: true, force: true });
      }
    }
    step("directories");
    await removeEmpty();
    return left;
  };
  const installed = await DISK.status(paths.state) !== undefined;
  const left = installed ? await withVersionLock(paths, work) : await work();
  step("receipt");
  for (const path of await ownEntries(paths, "state")) await rm(path, { recursive: true, force: true });
  step("the last directories");
  await removeEmpty();
  return left;
}
