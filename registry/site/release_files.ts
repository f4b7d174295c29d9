/**
 * waft's own releases: `/releases/…`, `/install.sh` and `/install.ps1`, from a folder that `deno task release` wrote.
 *
 * In: the folder, a request. Out: the file as a stream, whole or in part, so that a bundle of a hundred megabytes takes
 * little memory and an interrupted download can resume. Only names of the layout are looked up (`index.json`, its
 * signature, `<version>/<file>`) and only plain files are sent, no links: no address leads out of the folder.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { CACHE, isUnchanged, rangeOf } from "../answer.ts";
import { Problem } from "../problem.ts";
import { type Call, knownQuery } from "../services.ts";

/** A name of the layout: no slash, and nothing that begins with a dot. */
const NAME = /^[0-9A-Za-z][0-9A-Za-z.+_-]{0,199}$/;
const CHUNK = 256 << 10;

const TYPES: readonly (readonly [end: string, type: string])[] = [
  [".gz", "application/gzip"],
  [".tgz", "application/gzip"],
  [".json", "application/json"],
  ["index.json.sig", "application/json"],
  [".sh", "text/x-shellscript; charset=utf-8"],
  [".md", "text/markdown; charset=utf-8"],
  [".rb", "text/plain; charset=utf-8"],
  [".yml", "text/plain; charset=utf-8"],
  [".ps1", "text/plain; charset=utf-8"], // the type that Invoke-RestMethod returns as text
  ["SHA256SUMS", "text/plain; charset=utf-8"],
  ["SHA256SUMS.sig", "text/plain; charset=utf-8"], // A line for each key.
];

/** `GET /releases/index.json` and its signature: they change with each release. */
export function getReleaseIndex(call: Call): Promise<Response> {
  return send(call, ["releases", call.url.pathname.endsWith(".sig") ? "index.json.sig" : "index.json"], "short");
}

/** `GET /releases/{version}/{file}`: immutable. */
export function getReleaseFile(call: Call): Promise<Response> {
  const { version = "", file = "" } = call.params;
  if (!NAME.test(version) || !NAME.test(file)) throw new Problem("route.unknown", "there is no such release file");
  return send(call, ["releases", version, file], "immutable");
}

/** An installer of the folder, which knows the digests of its release; undefined when there is none. */
export async function releasedInstaller(call: Call, name: string): Promise<Response | undefined> {
  const { releases } = call.services.settings;
  const file = releases === undefined ? undefined : await openPlain(join(releases, name));
  return file && await answer(call, file, name, "short");
}

async function send(call: Call, path: readonly string[], cache: keyof typeof CACHE): Promise<Response> {
  knownQuery(call, []);
  const { releases } = call.services.settings;
  if (releases === undefined) throw new Problem("route.unknown", "this registry serves no releases of waft");
  const file = await openPlain(join(releases, ...path));
  if (file === undefined) throw new Problem("route.unknown", "there is no such release file");
  return await answer(call, file, path.at(-1)!, cache);
}

/** Opens a plain file; undefined for anything else. */
async function openPlain(path: string): Promise<FileHandle | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "ENXIO"].includes(errorCode(error) ?? "")) return;
    throw error;
  }
  if ((await file.stat()).isFile()) return file;
  await file.close();
}

async function answer(call: Call, file: FileHandle, name: string, cache: keyof typeof CACHE): Promise<Response> {
  try {
    const { size, mtimeNs, ino } = await file.stat({ bigint: true });
    const etag = `"${[ino, mtimeNs, size].map((n) => n.toString(36)).join("-")}"`;
    const type = TYPES.find(([end]) => name.endsWith(end))?.[1] ?? "application/octet-stream";
    const headers: { [name: string]: string } = {
      "content-type": type,
      "cache-control": CACHE[cache],
      "accept-ranges": "bytes",
      etag,
    };
    if (isUnchanged(call.request, etag)) {
      await file.close();
      return new Response(null, { status: 304, headers });
    }
    const range = rangeOf(call.request, etag, Number(size));
    const [start, end] = range ?? [0, Number(size)];
    headers["content-length"] = String(end - start);
    if (range !== undefined) headers["content-range"] = `bytes ${start}-${end - 1}/${size}`;
    const status = range === undefined ? 200 : 206;
    if (call.request.method === "HEAD") {
      await file.close();
      return new Response(null, { status, headers });
    }
    return new Response(streamOf(file, start, end), { status, headers });
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Part of a file as a stream; the file is closed at its end and when the stream is cancelled. */
function streamOf(file: FileHandle, start: number, end: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = start;
  return new ReadableStream({
    async pull(controller) {
      const room = new Uint8Array(Math.min(CHUNK, end - at));
      const { bytesRead } = room.length === 0 ? { bytesRead: 0 } : await file.read(room, 0, room.length, at);
      at += bytesRead;
      if (bytesRead > 0) controller.enqueue(room.subarray(0, bytesRead));
      if (at < end && bytesRead > 0) return;
      await file.close();
      // The file has been truncated: the answer ends early, which its length reveals.
      if (at < end) controller.error(new Error("The file is shorter than it was"));
      else controller.close();
    },
    async cancel() {
      await file.close();
    },
  }, { highWaterMark: 0 });
}
