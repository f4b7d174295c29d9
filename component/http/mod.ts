/**
 * wasi:http of WASI 0.2 and 0.3. In: the WASI of a guest, whose streams and clocks its messages use. Out: imports for
 * `Component.instantiate`, by the names of the interfaces without versions. Invariant: requests go only to hosts that
 * the grants of the WASI name.
 */
import type { ComponentImports } from "../link/host_names.ts";
import { ComponentError } from "../abi/traps.ts";
import type { ComponentWasi } from "../wasi/mod.ts";
import { withShapes } from "../wasi/shapes.ts";
import { SocketQuota } from "../wasi/socket_address.ts";
import { FutureTrailers, type HttpError, HttpIoError, IncomingBody, OutgoingBody } from "./body.ts";
import { FutureIncomingResponse } from "./client.ts";
import { Fields } from "./fields.ts";
import {
  IncomingRequest,
  IncomingResponse,
  OutgoingRequest,
  OutgoingResponse,
  RequestOptions,
  ResponseOutparam,
} from "./messages.ts";
import type { TraceContext } from "./trace.ts";
import { asyncHttpInterfaces } from "./v0_3/mod.ts";

/** The maximum number of requests in progress, of a guest or of all instances of a server. */
const MAX_REQUESTS = 1024;

/** The interfaces of wasi:http for a guest. `traces`: the trace context of the server that calls it. */
export function httpInterfaces(wasi: ComponentWasi, traces?: TraceContext): ComponentImports {
  const { preview1, grants } = wasi;
  const network = { grants, quota: new SocketQuota(MAX_REQUESTS), ...(traces === undefined ? {} : { traces }) };
  const httpErrorCode = (error: unknown): HttpError | undefined =>
    error instanceof HttpIoError ? error.httpError : undefined;
  const handle = (request: OutgoingRequest, options: RequestOptions | undefined) => {
    if (grants.isEmpty) throw new ComponentError({ tag: "HTTP-request-denied" });
    return new FutureIncomingResponse(preview1, network, request, options);
  };
  return withShapes({
    "wasi:http/types": {
      httpErrorCode,
      Fields,
      FutureIncomingResponse,
      FutureTrailers,
      IncomingBody,
      IncomingRequest,
      IncomingResponse,
      OutgoingBody,
      OutgoingRequest: class extends OutgoingRequest {
        constructor(headers: Fields) {
          super(preview1, headers);
        }
      },
      OutgoingResponse: class extends OutgoingResponse {
        constructor(headers: Fields) {
          super(preview1, headers);
        }
      },
      RequestOptions,
      ResponseOutparam,
    },
    "wasi:http/outgoing-handler": { handle },
    ...asyncHttpInterfaces(preview1, network),
  });
}
