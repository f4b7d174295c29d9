/**
 * Runs programs for 64-bit Arm on other processors: the arm64 Deno from npm, QEMU's user-mode emulation, and the C
 * libraries that Deno needs. In: nothing; an emulator installed on the machine is used. Out: the command and its
 * environment.
 *
 * Missing parts are unpacked from the distribution's packages into the user's cache folder: no root access is needed,
 * and the machine stays unchanged. Run as a program, it only prepares the emulator:
 * `deno run -A scripts/hosts/arm64_emulator.ts`.
 */
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { pinnedDeno } from "../package/pinned_deno.ts";
import { readTaskLine } from "../task_options.ts";
import { packageArchives, unpackPackages } from "./debian_packages.ts";

/**
 * Older versions keep a record for each page that was ever mapped: 50 MB per memory with guard pages. Since version 8,
 * reserved addresses cost nothing.
 */
const OLDEST_EMULATOR = 8;
const EMULATOR = "qemu-aarch64";
const EMULATOR_PACKAGE = "qemu-user";
const LIBRARY_PACKAGES = ["libc6-arm64-cross", "libgcc-s1-arm64-cross", "libstdc++6-arm64-cross"];
const LIBRARIES = "aarch64-linux-gnu";
const { package: NPM_NAME, version: NPM_VERSION } = pinnedDeno("linux/arm64");

/** The way to run arm64 programs on this machine. */
export interface Arm64 {
  /** Deno for arm64, after the emulator if there is one. */
  command: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** Human-readable description of the environment. */
  description: string;
}

/**
 * Finds or prepares an arm64 environment: the host itself, or an emulator with `emulatorFlags`. Throws an Error that
 * says how to get the missing parts.
 */
export function arm64(emulatorFlags: readonly string[] = []): Arm64 {
  if (Deno.build.arch === "aarch64") {
    return { command: [Deno.execPath()], environment: {}, description: `Deno ${Deno.version.deno}` };
  }
  if (Deno.build.os !== "linux") throw new Error("Emulating arm64 needs Linux");
  const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "waft-arm64");
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  const { emulator, libraries, version } = findEmulator(cache);
  // The compile caches of two Denos do not mix; the emulated Deno's own cache saves a third of its start-up.
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

/** The emulator at a path with the libraries in a folder; undefined if one is missing or the emulator is too old. */
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
  unpackEmulator(cache, unpacked);
  const found = find();
  if (found === undefined) {
    throw new Error(
      `No ${EMULATOR} of version ${OLDEST_EMULATOR} or newer is available: install it together with the packages ${
        LIBRARY_PACKAGES.join(", ")
      } (or your distribution's equivalents)`,
    );
  }
  return found;
}

/**
 * Unpacks the emulator and the libraries into `folder`, from the distribution's package archive. Debian releases whose
 * emulator is too old have a newer one in their backports.
 */
function unpackEmulator(cache: string, folder: string): void {
  const main = packageArchives().find(({ component, release }) => component === "main" && !release.includes("-"));
  if (main === undefined) throw new Error("The package lists of this machine name no main archive");
  const { uri, release } = main;
  const backports = `${release}-backports`;
  unpackPackages({
    cache,
    folder,
    sources: [`deb ${uri} ${release} main`, `deb ${uri} ${backports} main`],
    choose: (fetch) => {
      fetch(...LIBRARY_PACKAGES);
      try {
        fetch(`${EMULATOR_PACKAGE}/${backports}`);
      } catch {
        fetch(EMULATOR_PACKAGE);
      }
    },
    complete: (system) => {
      const programs = join(system, "usr/bin"); // emulators for all processors
      for (const name of readdirSync(programs)) if (name !== EMULATOR) rmSync(join(programs, name));
    },
  });
}

/** Returns the path of the arm64 Deno in the npm cache below `denoFolder`, fetching it if it is not there. */
function arm64Deno(denoFolder: string): string {
  const npm = join(denoFolder, "npm");
  const find = () =>
    !existsSync(npm) ? undefined : readdirSync(npm)
      .map((registry) => join(npm, registry, NPM_NAME, NPM_VERSION, "deno"))
      .find((path) => existsSync(path));
  const known = find();
  if (known !== undefined) return known;
  mkdirSync(denoFolder, { recursive: true });
  // Runs outside the project, to leave its lockfile alone.
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
  readTaskLine({
    name: "run -A scripts/hosts/arm64_emulator.ts",
    about: "Prepares the arm64 emulator and its Deno, and prints their versions.",
    options: {},
  });
  try {
    console.log(arm64().description);
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    process.exit(1);
  }
}
