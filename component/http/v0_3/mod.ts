/**
 * wasi:http of WASI 0.3. In: the streams and the network of a guest. Out: imports for `Component.instantiate`, with
 * their version. Invariant: requests go only to hosts that the grants of the network name.
 */
import { ComponentError } from "../../abi/traps.ts";
import { cancellable } from "../../async/host_calls.ts";
import { Outcome } from "../../async/host_streams.ts";
import type { Preview1 } from "../../wasi/preview1.ts";
import type { HttpError } from "../body.ts";
import { FutureIncomingResponse, type RequestNetwork } from "../client.ts";
import type { IncomingResponse } from "../messages.ts";
import { AsyncFields, AsyncRequest, AsyncRequestOptions, AsyncResponse } from "./messages.ts";

/** The interfaces of wasi:http 0.3 for a guest. */
export function asyncHttpInterfaces(preview1: Preview1, network: RequestNetwork): Record<string, object> {
  const answer = (request: AsyncRequest) => send(preview1, network, request);
  return {
    "wasi:http/types@0.3.0": {
      Fields: AsyncFields,
      Request: AsyncRequest,
      RequestOptions: AsyncRequestOptions,
      Response: AsyncResponse,
    },
    "wasi:http/client@0.3.0": { send: answer },
    // Middleware that is not composed with a service passes its requests on to their authorities.
    "wasi:http/handler@0.3.0": { handle: answer },
  };
}

/** Sends a request. Resolves with the response as soon as its head is there; rejects with an error-code. */
function send(preview1: Preview1, network: RequestNetwork, request: AsyncRequest): Promise<AsyncResponse> {
  let future: FutureIncomingResponse | undefined;
  const transmission = new Outcome<HttpError | undefined>();
  const answer = async (): Promise<AsyncResponse> => {
    try {
      if (network.grants.isEmpty) throw new ComponentError({ tag: "HTTP-request-denied" });
      const { outgoing, sent } = checked(() => request.send(preview1, transmission.settled()));
      // The outcome of the body reaches the guest through the future of the request.
      sent.catch(() => {});
      future = new FutureIncomingResponse(preview1, network, outgoing, request.options);
      future.whenTransmitted((error) => transmission.settle(error));
    } catch (error) {
      if (error instanceof ComponentError) {
        request.refuse(error.payload as HttpError);
        transmission.settle(error.payload as HttpError);
      }
      throw error;
    }
    await future.subscribe().block();
    const { val: result } = future.get() as {
      val: { tag: "ok"; val: IncomingResponse } | { tag: "err"; val: HttpError };
    };
    if (result.tag === "err") throw new ComponentError(result.val);
    return AsyncResponse.arrived(result.val);
  };
  return cancellable(answer(), () => future?.[Symbol.dispose]());
}

/** Runs `action`; a message that 0.2 refuses without a reason is an invalid request. */
function checked<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof ComponentError)) throw error;
    throw new ComponentError({ tag: "HTTP-request-URI-invalid" });
  }
}
