/**
 * The state of the Git repository that contains a package: commit, version tags, changed files.
 *
 * In: a directory, possibly hostile. Out: facts, or undefined outside of a repository. Invariant: no program in
 * the repository, or named by its configuration (monitors, hooks, filters, transports), runs, and Git sees none of
 * waft's variables. A hostile repository can therefore neither act nor learn the publishing token.
 */
import { execFile } from "node:child_process";
import { dirname, resolve } from "node:path";
import process from "node:process";

/** The state of a repository, as far as publishing needs it. */
export interface GitState {
  readonly head: string;
  /** Tags that are reachable from HEAD, with their commits. */
  readonly tags: readonly { readonly name: string; readonly commit: string }[];
  /** Changed and untracked files, relative to the package. */
  readonly dirty: readonly string[];
}

/** A configuration value that comes before all of the repository's own. */
type Setting = readonly [key: string, value: string];

/** Switches off the settings that would run programs in the commands below. */
const HARMLESS: readonly Setting[] = [
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  ["core.sshCommand", "false"],
  ["core.gitProxy", ""],
  ["protocol.allow", "never"],
  ["status.submoduleSummary", "false"],
];

/** The repository's state, or undefined when the directory is in none, or its configuration cannot be read whole. */
export async function gitState(root: string): Promise<GitState | undefined> {
  const filters = await filtersOff(root);
  if (filters === undefined) return undefined;
  const settings = [...HARMLESS, ...filters];
  const git = (...args: string[]): Promise<string | undefined> => runGit(root, args, settings);
  const head = await git("rev-parse", "HEAD");
  if (head === undefined) return undefined;
  const format = "--format=%(refname:strip=2)%09%(*objectname)%09%(objectname)";
  const tags = await git("for-each-ref", "--merged", "HEAD", format, "refs/tags") ?? "";
  const options = ["--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"];
  const dirty = await git("status", ...options, "--", ".") ?? "";
  const prefix = (await git("rev-parse", "--show-prefix") ?? "").trim();
  return {
    head: head.trim(),
    tags: tags.split("\n").filter((line) => line !== "").map((line) => {
      const [name, peeled, direct] = line.split("\t");
      return { name, commit: peeled || direct };
    }),
    dirty: dirty.split("\0").filter((line) => line !== "").map((line) => line.slice(3)).map((path) =>
      path.startsWith(prefix) ? path.slice(prefix.length) : path
    ),
  };
}

/**
 * Settings that switch off every filter of the configuration; listing the configuration runs nothing. Undefined when
 * there is no list, such as one that is too long: a filter that is not known cannot be switched off.
 */
async function filtersOff(root: string): Promise<Setting[] | undefined> {
  const names = await runGit(root, ["config", "--list", "--name-only", "-z"], HARMLESS);
  return names?.split("\0").filter((name) => /^filter\./i.test(name)).map((name) =>
    [name, /\.required$/i.test(name) ? "false" : ""] as const
  );
}

function runGit(root: string, args: readonly string[], settings: readonly Setting[]): Promise<string | undefined> {
  const env: { [name: string]: string | undefined } = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:WAFT_|GIT_)/.test(name))),
    LC_ALL: "C",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_LAZY_FETCH: "1",
    GIT_ALLOW_PROTOCOL: "none",
    GIT_CONFIG_COUNT: String(settings.length),
  };
  settings.forEach(([key, value], i) => {
    env[`GIT_CONFIG_KEY_${i}`] = key;
    env[`GIT_CONFIG_VALUE_${i}`] = value;
  });
  return new Promise((done) => {
    // Outside of the repository: Windows and empty entries of PATH find programs in the new process's directory.
    const cwd = dirname(process.execPath);
    execFile("git", ["-C", resolve(root), ...args], { cwd, maxBuffer: 16 << 20, env }, (error, stdout) => {
      done(error === null ? stdout : undefined);
    });
  });
}
