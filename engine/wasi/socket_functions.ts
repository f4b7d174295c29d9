/**
 * WASI functions on sockets: sock_*. A guest has listening and connected sockets only as its standard streams. In: a
 * descriptor of the guest. Out: bytes moved by recvfrom and sendto, which never raise SIGPIPE.
 */
import { ERRNO, FDFLAG, FILETYPE, rightsFor, STREAM_RIGHTS } from "./abi.ts";
import { isNonblocking } from "./descriptors.ts";
import type { WasiState } from "./functions.ts";
import { POLL, requireReady } from "./waits.ts";
import { checked, WasiError } from "./wasi_error.ts";

const MSG_PEEK = 2;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
/** Flags of sock_recv. */
const RECV = { PEEK: 1, WAITALL: 2 } as const;

/** The functions sock_*. */
export class SocketFunctions {
  readonly #state: WasiState;

  constructor(state: WasiState) {
    this.#state = state;
  }

  sock_accept(index: number, flags: number, at: number): number {
    const { sys, waits, open, descriptors, memory } = this.#state;
    const listener = descriptors.get(index, rightsFor("sock_accept"));
    memory.setU32(at >>> 0, 0); // a bad pointer must fail before a connection is taken
    descriptors.requireRoom();
    if (isNonblocking(listener)) requireReady(waits, listener.fd, POLL.IN);
    else if (waits.isLimited) waits.untilReady(listener.fd, POLL.IN);
    const nonblock = (flags & FDFLAG.nonblock) !== 0 ? open.NONBLOCK : 0;
    const fd = checked(sys("accept4", listener.fd, 0, 0, nonblock | open.CLOEXEC));
    memory.setU32(at >>> 0, this.#add(fd, flags));
    return 0;
  }

  /** Adds an accepted socket, or closes it when the guest may not have another descriptor. */
  #add(fd: number, flags: number): number {
    try {
      return this.#state.descriptors.add({
        fd,
        filetype: FILETYPE.socket_stream,
        flags: flags & FDFLAG.nonblock,
        rights: STREAM_RIGHTS,
        inheriting: 0,
        borrowed: false,
      });
    } catch (error) {
      this.#state.sys("close", fd);
      throw error;
    }
  }

  sock_recv(index: number, at: number, count: number, flags: number, lengthAt: number, flagsAt: number): number {
    const { sys, waits, descriptors, memory } = this.#state;
    const descriptor = descriptors.get(index, rightsFor("sock_recv"));
    const [address, length] = this.#vector(at, count);
    memory.setU16(flagsAt >>> 0, 0);
    const peeks = (flags & RECV.PEEK) !== 0;
    const options = peeks ? MSG_PEEK : 0;
    const got = checked(
      isNonblocking(descriptor)
        ? sys("recvfrom", descriptor.fd, address, length, options | MSG_DONTWAIT)
        : waits.receive(descriptor.fd, address, length, options, !peeks && (flags & RECV.WAITALL) !== 0),
    );
    waits.charge(got);
    memory.setU32(lengthAt >>> 0, got);
    return 0;
  }

  sock_send(index: number, at: number, count: number, flags: number, lengthAt: number): number {
    const { sys, waits, descriptors, memory } = this.#state;
    const descriptor = descriptors.get(index, rightsFor("sock_send"));
    if (flags !== 0) throw new WasiError(ERRNO.notsup);
    const [address, length] = this.#vector(at, count);
    const put = (options: number) => (at: number, bytes: number) => sys("sendto", descriptor.fd, at, bytes, options);
    const nowait = put(MSG_NOSIGNAL | MSG_DONTWAIT);
    const atOnce = () => {
      const sent = nowait(address, length);
      waits.charge(Math.max(sent, 0));
      return sent;
    };
    const sent = checked(
      isNonblocking(descriptor)
        ? atOnce()
        : waits.write(descriptor.fd, address, length, waits.isLimited ? nowait : put(MSG_NOSIGNAL)),
    );
    memory.setU32(lengthAt >>> 0, sent);
    return 0;
  }

  sock_shutdown(index: number, how: number): number {
    const { fd } = this.#state.descriptors.get(index, rightsFor("sock_shutdown"));
    if (how < 1 || how > 3) throw new WasiError(ERRNO.inval);
    checked(this.#state.sys("shutdown", fd, how - 1));
    return 0;
  }

  /** The only vector of these functions: address and length. */
  #vector(at: number, count: number): [address: number, length: number] {
    if (count !== 1) throw new WasiError(ERRNO.notsup);
    const { memory } = this.#state;
    const length = memory.u32((at >>> 0) + 4);
    return [memory.address(memory.u32(at >>> 0), length), length];
  }
}
