/**
 * The kinds of files that this system lacks, for tests that need them and are ignored without them.
 *
 * On Windows, tests cannot make sockets or FIFOs as descriptors of the process, every signal ends a process at once,
 * there is no shell, guests make no symbolic links, names cannot end in a space, and times have units of 100 ns. Links
 * made by the host need a privilege there, and Wine makes none although it reports success.
 */
import { lstatSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemName } from "../../engine/host/process.ts";

/** No FIFOs, sockets, signals or shell; no symbolic links made by guests, none of the directories of a POSIX system. */
export const LACKS_POSIX_FILES: boolean = systemName() === "win32";

function makesLinks(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "waft-links-"));
  try {
    const path = join(folder, "link");
    symlinkSync("target", path);
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The host makes no symbolic links. */
export const LACKS_LINKS: boolean = LACKS_POSIX_FILES && !makesLinks();
