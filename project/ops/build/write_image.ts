/**
 * Writes the container image of an application. In: a single executable of waft for Linux, a compiled program with its
 * inputs, and a system with the C library that the executable needs. Out: the image's tar file, written completely or
 * not at all.
 */
import { readFileSync, rmSync } from "node:fs";
import { randomHex } from "../../base/integrity.ts";
import { replaceFile } from "../../base/replace_file.ts";
import type { Application } from "./application.ts";
import { librariesOf } from "./elf_libraries.ts";
import { ociImage } from "./oci_image.ts";
import { writeApplication } from "./write_application.ts";

/** The path of the program in the image. */
const ENTRY = "/app";

/** The image that is wanted. */
interface ImageRequest {
  /** Name and tag. */
  readonly name: string;
  /** The platform of the executable, such as `linux/amd64`. */
  readonly platform: string;
  /** The root directory of the system with the C library. */
  readonly sysroot: string;
}

/** Writes the image to `path`. Throws an Error if the system lacks a library. */
export function writeImage(
  path: string,
  runtime: string,
  application: Application,
  { name, platform, sysroot }: ImageRequest,
): void {
  const executable = `${path}.${randomHex(12)}.app`;
  try {
    writeApplication(executable, runtime, application);
    const bytes = new Uint8Array(readFileSync(executable));
    const files = [{ path: ENTRY, bytes }, ...librariesOf(bytes, sysroot)];
    replaceFile(path, ociImage({ files, entry: ENTRY, name, platform }));
  } finally {
    rmSync(executable, { force: true });
  }
}
