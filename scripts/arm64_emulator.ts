/**
 * What runs programs of 64-bit Arm on another processor: the arm64 Deno of npm, qemu's user mode, and the C libraries that Deno needs. In:
 * nothing; what is on the machine is used. Out: the command to run and its environment.
 *
 * What is missing is unpacked from the system's own packages into the user's cache folder: no root is needed, and nothing on the machine changes.
 * As a program it only sees to that: `deno run -A scripts/arm64_emulator.ts`.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { pinnedDeno } from "./pinned_deno.ts";

/**
 * Older versions keep a record of each page that was ever mapped: 50 MB for each memory with guard pages. Since
 * version 8 reserved addresses cost nothing.
 */
const OLDEST_EMULATOR = 8;
const EMULATOR = "qemu-aarch64";
const EMULATOR_PACKAGE = "qemu-user";
const LIBRARY_PACKAGES = ["libc6-arm64-cross", "libgcc-s1-arm64-cross", "libstdc++6-arm64-cross"];
const LIBRARIES = "aarch64-linux-gnu";
const { package: NPM_NAME, version: NPM_VERSION } = pinnedDeno("linux/arm64");

/** How programs of arm64 are run here. */
export interface Arm64 {
  /** Deno for arm64, after the emulator if there is one. */
  command: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** What it is, for people. */
  description: string;
}

/** Arm64 as it is on this machine, emulated where it is something else. `emulatorFlags` are the emulator's. Throws an Error with what to do. */
export function arm64(emulatorFlags: readonly string[] = []): Arm64 {
  if (Deno.build.arch === "aarch64") {
    return { command: [Deno.execPath()], environment: {}, description: `Deno ${Deno.version.deno}` };
  }
  if (Deno.build.os !== "linux") throw new Error("Emulating arm64 needs Linux");
  const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "waft-arm64");
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  const { emulator, libraries, version } = findEmulator(cache);
  // Compiled caches of two Denos do not mix, and that of the emulated one saves a third of its start.
  const denoFolder = join(cache, "deno");
  return {
    command: [emulator, ...emulatorFlags, arm64Deno(denoFolder)],
    environment: {
      QEMU_LD_PREFIX: libraries,
      DENO_DIR: denoFolder,
      WAFT_EMULATOR: emulator,
    },
    description: `Deno ${NPM_VERSION} on qemu ${version}`,
  };
}

interface Emulator {
  emulator: string;
  libraries: string;
  version: string;
}

/** The emulator at a path with the libraries in a folder, if both are there and it is new enough. */
function emulatorAt(emulator: string, libraries: string): Emulator | undefined {
  if (!existsSync(emulator) || !existsSync(join(libraries, "lib"))) return undefined;
  const { stdout } = spawnSync(emulator, ["--version"], { encoding: "utf8" });
  const version = /version (\d+)\.[\d.]+/.exec(stdout ?? "");
  return version !== null && Number(version[1]) >= OLDEST_EMULATOR
    ? { emulator, libraries, version: version[0].slice(8) }
    : undefined;
}

function findEmulator(cache: string): Emulator {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    const found = emulatorAt(join(folder, EMULATOR), join("/usr", LIBRARIES));
    if (found !== undefined) return found;
  }
  const unpacked = join(cache, "system");
  const find = () => emulatorAt(join(unpacked, "usr/bin", EMULATOR), join(unpacked, "usr", LIBRARIES));
  const known = find();
  if (known !== undefined) return known;
  unpackPackages(cache, unpacked);
  const found = find();
  if (found === undefined) {
    throw new Error(
      `There is no ${EMULATOR} of version ${OLDEST_EMULATOR} or newer for this system: install it, and the packages ${
        LIBRARY_PACKAGES.join(", ")
      } (or what your system calls them)`,
    );
  }
  return found;
}

/** Runs a program; throws an Error with its words when it fails. */
function run(program: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: "utf8" });
  if (error !== undefined) {
    throw new Error(`Cannot run ${program}, which unpacking an emulator needs: ${error.message}`);
  }
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed:\n${stderr}${stdout}`);
  return stdout;
}

/**
 * Unpacks the emulator and the libraries into `folder`, from where the system has its packages. A Debian that is too old for a new emulator has one
 * among its backports.
 */
function unpackPackages(cache: string, folder: string): void {
  const work = mkdtempSync(join(cache, "packages-"));
  try {
    for (const name of ["lists/partial", "archives/partial", "system"]) {
      mkdirSync(join(work, name), { recursive: true });
    }
    // The system's own main archive, and its backports.
    const rows = run(
      "apt-get",
      ["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
      work,
    ).trim().split("\n").map((line) => line.split(" "));
    const main = rows.find(([, release, component]) => component === "main" && !release!.includes("-"));
    if (main === undefined) throw new Error("The system's package lists name no main archive");
    const [uri, release] = main;
    const backports = `${release}-backports`;
    writeFileSync(join(work, "sources"), `deb ${uri} ${release} main\ndeb ${uri} ${backports} main\n`);
    const options = [
      `Dir::Etc::sourcelist=${join(work, "sources")}`,
      "Dir::Etc::sourceparts=/dev/null",
      `Dir::State::lists=${join(work, "lists")}`,
      `Dir::Cache=${work}`,
      "APT::Sandbox::User=",
      "Acquire::Languages=none",
      "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false",
    ].flatMap((option) => ["-o", option]);
    spawnSync("apt-get", [...options, "-qq", "update"], { cwd: work }); // not everyone has backports: the next step tells
    const download = (...names: string[]) => run("apt-get", [...options, "-qq", "download", ...names], work);
    download(...LIBRARY_PACKAGES);
    try {
      download(`${EMULATOR_PACKAGE}/${backports}`);
    } catch {
      download(EMULATOR_PACKAGE);
    }
    for (const name of readdirSync(work)) {
      if (name.endsWith(".deb")) run("dpkg-deb", ["-x", join(work, name), join(work, "system")], work);
    }
    const programs = join(work, "system/usr/bin"); // of every processor there is
    for (const name of readdirSync(programs)) if (name !== EMULATOR) rmSync(join(programs, name));
    rmSync(folder, { recursive: true, force: true });
    renameSync(join(work, "system"), folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Path of the arm64 Deno in the npm cache below `denoFolder`, which it is put into when it is not there. */
function arm64Deno(denoFolder: string): string {
  const npm = join(denoFolder, "npm");
  const find = () =>
    !existsSync(npm) ? undefined : readdirSync(npm)
      .map((registry) => join(npm, registry, NPM_NAME, NPM_VERSION, "deno"))
      .find((path) => existsSync(path));
  const known = find();
  if (known !== undefined) return known;
  mkdirSync(denoFolder, { recursive: true });
  // Outside the project, whose lockfile has no business with it.
  const args = ["cache", "--quiet", "--no-config", "--no-lock", `npm:${NPM_NAME}@${NPM_VERSION}`];
  const { status, stderr } = spawnSync(Deno.execPath(), args, {
    cwd: denoFolder,
    env: { ...process.env, DENO_DIR: denoFolder },
    encoding: "utf8",
  });
  const found = status === 0 ? find() : undefined;
  if (found === undefined) throw new Error(`Cannot fetch ${NPM_NAME} ${NPM_VERSION} from npm: ${stderr}`);
  return found;
}

if (import.meta.main) {
  try {
    console.log(arm64().description);
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    process.exit(1);
  }
}
