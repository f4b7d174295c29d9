/**
 * Names that mean something else to Windows than an entry of a directory: devices, streams, drives, separators, and
 * endings that its functions drop. In: a name, on any system. Out: whether it is plain.
 *
 * Source: "Naming Files, Paths, and Namespaces" of Microsoft's documentation.
 */

/** Characters that no name on Windows contains; the separators and the colon lead to other objects. */
// deno-lint-ignore no-control-regex
const IMPOSSIBLE = /[\x00-\x1f"*/:<>?\\|]/;
/** Names of devices, with any extension. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?: *\.| *$)/i;

/** Whether Windows opens a device by this name, regardless of the directory. */
export function isWindowsDevice(name: string): boolean {
  return DEVICE.test(name);
}

/**
 * Whether an entry of a directory can have this name, and all programs of Windows resolve the name to the same entry.
 */
export function isWindowsName(name: string): boolean {
  return name !== "" && name !== ".." && !IMPOSSIBLE.test(name) && !/[. ]$/.test(name) && !isWindowsDevice(name);
}
