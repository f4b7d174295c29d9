/**
 * Edits the login shell's start-up files so that waft's directory is on the PATH.
 *
 * In: the shell, the home directory, waft's directory. Out: a block for each file, applied and undone exactly. A
 * file that is a symbolic link or not writable is left alone, and the user is shown the line to add. The block is
 * guarded: reading it twice adds nothing. All other bytes of a file stay as they are, whatever its encoding.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { Buffer } from "node:buffer";
import { access, constants, lstat, mkdir, readdir, readFile, realpath, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { systemName } from "@waft/engine/internal/host/process";
import { replaceFile } from "../../versions/release_download.ts";

/** A block added to a file. */
export interface PathEdit {
  readonly file: string;
  /** True when the file did not exist. */
  readonly created: boolean;
  /** The exact text added. */
  readonly block: string;
}

/** The possible changes to the PATH. */
export interface PathPlan {
  /** True when the directory is on the PATH already. */
  readonly onPath: boolean;
  readonly edits: readonly PathEdit[];
  /** The line to add by hand where no file may be written. */
  readonly line: string;
  /** Files that would have been edited, with the reason why not. */
  readonly refused: readonly string[];
}

const BEGIN = "# >>> waft >>>";
const END = "# <<< waft <<<";

function quoted(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`;
}

/** The same for fish, where backslashes escape in single quotes, too. */
function quotedForFish(path: string): string {
  return `'${path.replaceAll(/[\\']/g, "\\$&")}'`;
}

/** Determines the blocks and the files to write them to. */
export async function planPath(
  bin: string,
  env: { readonly [name: string]: string | undefined },
  home: string,
): Promise<PathPlan> {
  // install.ps1 changes the PATH of Windows, which is in the registry.
  if (systemName() === "win32") {
    const line = `[Environment]::SetEnvironmentVariable('Path', "$env:Path;${bin}", 'User')`;
    return { onPath: (env.Path ?? env.PATH ?? "").split(";").includes(bin), edits: [], line, refused: [] };
  }
  const onPath = (env.PATH ?? "").split(":").includes(bin);
  const shell = basename(env.SHELL ?? "sh");
  const posix = `case ":$PATH:" in *:${quoted(bin)}:*) ;; *) PATH=${quoted(bin)}:"$PATH"; export PATH ;; esac`;
  const fish = `contains -- ${quotedForFish(bin)} $PATH; or set -gx PATH ${quotedForFish(bin)} $PATH`;
  const line = shell === "fish" ? fish : posix;
  if (onPath) return { onPath, edits: [], line, refused: [] };
  const edits: PathEdit[] = [];
  const refused: string[] = [];
  for (const file of await filesOf(shell, env, home)) {
    const before = await readBytes(file).catch(() => null);
    const link = await isSymbolicLink(file);
    const writable = before === undefined || await access(file, constants.W_OK).then(() => true, () => false);
    if (link || before === null || !writable) {
      refused.push(`${file} ${link ? "is a symbolic link" : "cannot be written"}`);
      continue;
    }
    if (before?.includes(BEGIN) === true) continue;
    const gap = before === undefined || before === "" || before.endsWith("\n") ? "" : "\n";
    edits.push({ file, created: before === undefined, block: `${gap}${BEGIN}\n${line}\n${END}\n` });
  }
  return { onPath, edits, line, refused };
}

/** The start-up files of a shell that are to set the PATH. */
async function filesOf(
  shell: string,
  env: { readonly [name: string]: string | undefined },
  home: string,
): Promise<string[]> {
  if (shell === "zsh") return [join(env.ZDOTDIR || home, ".zshenv")];
  if (shell === "fish") return [join(env.XDG_CONFIG_HOME || join(home, ".config"), "fish", "conf.d", "waft.fish")];
  if (shell === "bash") {
    for (const name of [".bash_profile", ".bash_login"]) {
      if (await lstat(join(home, name)).then(() => true, () => false)) return [join(home, ".bashrc"), join(home, name)];
    }
    return [join(home, ".bashrc"), join(home, ".profile")];
  }
  return ["sh", "dash", "ash", "ksh", "busybox"].includes(shell) ? [join(home, ".profile")] : [];
}

/** Removes the temporary files that a killed process left beside the files it was about to replace. */
async function sweepBeside(edits: readonly PathEdit[]): Promise<void> {
  for (const { file } of edits) {
    for (const name of await readdir(dirname(file)).catch(() => [] as string[])) {
      const rest = name.startsWith(basename(file)) ? name.slice(basename(file).length) : "";
      if (/^\.[0-9a-f]{12}\.tmp$/.test(rest)) await rm(join(dirname(file), name), { force: true });
    }
  }
}

/** The bytes of a file as characters, whatever its encoding; undefined if there is none. */
function readBytes(file: string): Promise<string | undefined> {
  return readFile(file, "latin1").catch((error: { code?: string }) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

function isSymbolicLink(file: string): Promise<boolean> {
  return lstat(file).then((status) => status.isSymbolicLink(), () => false);
}

/** The bytes of a block as characters. */
function bytesOf(block: string): string {
  return Buffer.from(block).toString("latin1");
}

/** Adds the blocks. */
export async function applyEdits(edits: readonly PathEdit[], step?: (name: string) => void): Promise<void> {
  await sweepBeside(edits);
  for (const { file, block } of edits) {
    step?.(`edit ${file}`);
    await mkdir(dirname(file), { recursive: true });
    const before = await readBytes(file) ?? "";
    const { mode } = await lstat(file).catch(() => ({ mode: 0o644 }));
    await replaceFile(file, Buffer.from(before + bytesOf(block), "latin1"), mode & 0o777);
  }
}

/**
 * Removes the blocks, through symbolic links, and keeps later edits by others. Returns the edits that could not be
 * undone.
 */
export async function undoEdits(edits: readonly PathEdit[], step?: (name: string) => void): Promise<string[]> {
  await sweepBeside(edits);
  const left: string[] = [];
  for (const { file, created, block } of edits) {
    step?.(`undo ${file}`);
    // The user may have replaced the file by a symbolic link since.
    const isLink = await isSymbolicLink(file);
    const target = isLink ? await realpath(file).catch(() => file) : file;
    const text = await readBytes(target).catch(() => undefined);
    if (text === undefined || !text.includes(BEGIN)) continue;
    const bytes = bytesOf(block);
    const at = text.indexOf(bytes);
    if (at < 0) {
      left.push(`${file}: the lines between "${BEGIN}" and "${END}" were changed; remove them by hand`);
      continue;
    }
    const rest = text.slice(0, at) + text.slice(at + bytes.length);
    if (created && rest === "" && !isLink) {
      await rm(file, { force: true });
      continue;
    }
    try {
      await replaceFile(target, Buffer.from(rest, "latin1"), (await lstat(target)).mode & 0o777);
    } catch (error) {
      if (!["EACCES", "EPERM", "EROFS"].includes(errorCode(error) ?? "")) throw error;
      left.push(`${file}: cannot be written; remove the lines between "${BEGIN}" and "${END}" by hand`);
    }
  }
  return left;
}
