/**
 * WASI's functions on sockets, with sockets that the guest is given as its standard streams.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ERRNO, FILETYPE } from "../../engine/wasi/abi.ts";
import { BUFFER } from "./raw_guest.ts";
import { ROOT, withSandbox } from "./sandbox.ts";
import {
  closeDescriptor,
  connectTo,
  makeListener,
  makePipe,
  makeSocketPair,
  readText,
  writeText,
} from "./system_call.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";

Deno.test({ name: "sock_recv, sock_send and sock_shutdown", ignore: LACKS_POSIX_FILES }, () => {
  const [mine, theirs] = makeSocketPair();
  const [pipeRead, pipeWrite] = makePipe();
  try {
    withSandbox(({ guest }) => {
      assert.equal(guest.call("fd_fdstat_get", 0, 0), 0);
      assert.equal(guest.bytes(0, 1)[0], FILETYPE.socket_stream);
      writeText(mine, "hello");
      const vector = guest.vector(BUFFER, 100);
      assert.equal(guest.call("sock_recv", 0, vector, 1, 1, 0, 4), 0); // peek
      assert.equal(guest.text(BUFFER, guest.u32(0)), "hello");
      assert.equal(guest.call("sock_recv", 0, vector, 1, 0, 0, 4), 0);
      assert.equal(guest.text(BUFFER, guest.u32(0)), "hello");
      assert.equal(guest.call("sock_send", 0, guest.vector(...guest.string("answer")), 1, 0, 0), 0);
      assert.equal(guest.u32(0), 6);
      assert.equal(readText(mine), "answer");
      assert.equal(guest.call("sock_shutdown", 0, 0), ERRNO.inval);
      assert.equal(guest.call("sock_shutdown", 0, 2), 0);
      assert.equal(readText(mine), "");
      assert.equal(guest.call("sock_send", 0, guest.vector(...guest.string("late")), 1, 0, 0), ERRNO.pipe);
      assert.equal(guest.call("sock_recv", 0, guest.vector(-1, 100), 1, 0, 0, 4), ERRNO.fault);
      assert.equal(guest.call("sock_send", 1, guest.vector(BUFFER, 1), 1, 0, 0), ERRNO.notsock);
      assert.equal(guest.call("sock_shutdown", 1, 1), ERRNO.notsock);
      const file = guest.open(ROOT, "a.txt").fd;
      assert.equal(guest.call("sock_recv", file, guest.vector(BUFFER, 1), 1, 0, 0, 4), ERRNO.notsock);
    }, { stdio: [theirs, pipeWrite, pipeWrite] });
  } finally {
    for (const fd of [mine, theirs, pipeRead, pipeWrite]) closeDescriptor(fd);
  }
});

Deno.test({
  name: "sock_accept takes a connection, and only if it can give it to the guest",
  ignore: LACKS_POSIX_FILES,
}, () => {
  withSandbox(({ outside }) => {
    const path = join(outside, "socket");
    const listener = makeListener(path);
    const client = connectTo(path);
    try {
      withSandbox(({ guest }) => {
        assert.equal(guest.call("sock_accept", 0, 0, -4), ERRNO.fault);
        const { fd } = guest.open(ROOT, "a.txt");
        let last = fd;
        for (let errno = 0; errno === 0; last++) errno = guest.open(ROOT, "a.txt").errno;
        assert.equal(guest.call("sock_accept", 0, 0, 0), ERRNO.mfile);
        for (let k = fd; k < last - 1; k++) assert.equal(guest.call("fd_close", k), 0);
        // The failed calls have not taken the connection.
        assert.equal(guest.call("sock_accept", 0, 0, 0), 0);
        const accepted = guest.u32(0);
        writeText(client, "through");
        assert.deepEqual(guest.read(accepted), { errno: 0, text: "through" });
        assert.equal(guest.write(accepted, "back"), 0);
        assert.equal(readText(client), "back");
        assert.equal(guest.call("fd_close", accepted), 0);
        assert.equal(guest.call("sock_accept", ROOT, 0, 0), ERRNO.notcapable);
      }, { stdio: [listener, 1, 2] });
    } finally {
      closeDescriptor(listener);
      closeDescriptor(client);
    }
  });
});
