/**
 * Programs from Debian's package archive, without installing them. In: package names, and the archive's lines of
 * sources. Out: a folder with the packages' files. Nothing else on the machine changes, and no root access is needed.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Runs a program and returns its stdout; throws an Error with its output if it fails. */
export function run(program: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: "utf8" });
  if (error !== undefined) throw new Error(`Cannot run ${program}, which is needed to unpack it: ${error.message}`);
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed:\n${stderr}${stdout}`);
  return stdout;
}

/** An archive in this machine's lists of packages. */
interface Archive {
  readonly uri: string;
  readonly release: string;
  readonly component: string;
  readonly origin: string;
}

/** The archives that this machine's package lists come from. */
export function packageArchives(): Archive[] {
  const format = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)";
  const rows = run("apt-get", ["indextargets", "--format", format, "Created-By: Packages"], "/").trim().split("\n");
  return rows.map((row) => {
    const [uri, release, component, origin] = row.split(" ");
    return { uri, release, component, origin };
  });
}

/** The choices of {@linkcode unpackPackages}. */
interface Unpacking {
  /** The folder below which work is done. */
  readonly cache: string;
  /** The folder to make; an existing one is replaced. */
  readonly folder: string;
  /** Lines in the format of sources.list. */
  readonly sources: readonly string[];
  /** Names the packages, by one call of `fetch` or more. */
  readonly choose: (fetch: (...names: string[]) => void) => void;
  /** Changes the unpacked files before they get their place. */
  readonly complete: (system: string) => void;
}

/** Unpacks packages. Throws an Error with the output of the program that failed. */
export function unpackPackages({ cache, folder, sources, choose, complete }: Unpacking): void {
  const work = mkdtempSync(join(cache, "packages-"));
  const system = join(work, "system");
  try {
    for (const name of ["lists/partial", "archives/partial", "system"]) {
      mkdirSync(join(work, name), { recursive: true });
    }
    writeFileSync(join(work, "sources"), sources.map((line) => `${line}\n`).join(""));
    writeFileSync(join(work, "status"), "");
    const options = [
      `Dir::Etc::sourcelist=${join(work, "sources")}`,
      "Dir::Etc::sourceparts=/dev/null",
      `Dir::State::lists=${join(work, "lists")}`,
      `Dir::State::status=${join(work, "status")}`,
      `Dir::Cache=${work}`,
      "APT::Sandbox::User=",
      "Acquire::Languages=none",
      "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false",
    ].flatMap((option) => ["-o", option]);
    // Fails where one of the sources is missing, such as backports; then the download names the missing package.
    spawnSync("apt-get", [...options, "-qq", "update"], { cwd: work });
    choose((...names) => void run("apt-get", [...options, "-qq", "download", ...names], work));
    for (const name of readdirSync(work)) {
      if (name.endsWith(".deb")) run("dpkg-deb", ["-x", join(work, name), system], work);
    }
    complete(system);
    rmSync(folder, { recursive: true, force: true });
    renameSync(system, folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
