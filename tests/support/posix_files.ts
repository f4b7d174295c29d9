/**
 * Does this system lack files that only POSIX systems have? On Windows, tests cannot make pipes, sockets or FIFOs as
 * descriptors of the process, symbolic links need a privilege, names cannot end in a space, and times have units of
 * 100 ns. Tests that need one of these are ignored there.
 */
import { systemName } from "../../engine/host/process.ts";

export const LACKS_POSIX_FILES: boolean = systemName() === "win32";
