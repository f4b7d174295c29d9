/** Streams of events: the end of a source, before and after its last bytes are taken. */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { ByteSource } from "./event_streams.ts";
import { IoError } from "./streams.ts";

Deno.test("a source whose end arrives before its last bytes are taken ends with them", async () => {
  const readable = new Readable({ read() {} });
  const source = new ByteSource(readable, () => new IoError("cut off"));
  readable.push(Uint8Array.of(1, 2, 3));
  readable.push(null);
  const ended = new Promise<void>((resolve) => {
    source.readiness.watch(() => {
      if (source.ended) resolve();
      else if (source.readiness.isReady) assert.deepEqual([...source.take(4096)], [1, 2, 3]);
    });
  });
  await ended;
  assert.equal(source.error, undefined);
});
