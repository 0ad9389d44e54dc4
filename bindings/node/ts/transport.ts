/** The last line: errors that the SDK sends without asking any handler. */

import { type Boundary, RpcReply, isSettled } from "./boundary.js";
import { OpenCall, current } from "./call.js";
import type { Request } from "./handlers.js";
import { textOf } from "./json.js";
import type { LowLevelServer, Message, Transport } from "./sdk.js";
import type { ToolList } from "./tool-list.js";

/** Clients read the data of these to find a version, or what they have to declare. */
const NEGOTIATION: ReadonlySet<number> = new Set([-32020, -32021, -32022]);

/** Transports that are guarded already. */
const guarded = new WeakSet<Transport>();

/** Guards every transport that the server is connected to. */
export function guardTransport(low: LowLevelServer, boundary: Boundary, tools: ToolList): void {
  let asked: Request | undefined;
  const onRequest = low._onrequest;
  low._onrequest = function (this: LowLevelServer, request, extra) {
    // An error that no handler made is sent while this runs.
    asked = request;
    try {
      onRequest.call(this, request, extra);
    } finally {
      asked = undefined;
    }
  };
  const rescued = async (message: Message): Promise<Message> => {
    const method = asked?.id === message.id ? asked?.method : undefined;
    const call = new OpenCall(boundary, method ?? "unknown", () => ({ request: message.id }));
    try {
      await boundary.fail(call, { how: "refused", what: textOf(message.error) }, "error");
    } catch (error) {
      if (!(error instanceof RpcReply)) throw error;
      const { code, message: words, data } = error;
      const kept = NEGOTIATION.has(code) ? (message.error?.data as object | undefined) : undefined;
      return { ...message, error: { code, message: words, data: { ...kept, ...data } } };
    }
    return message;
  };
  if (low.transport !== undefined) guardSend(low.transport, rescued, tools);
  const connect = low.connect;
  low.connect = async function (this: LowLevelServer, transport) {
    guardSend(transport, rescued, tools);
    await connect.call(this, transport);
  };
}

function guardSend(
  transport: Transport,
  rescued: (message: Message) => Promise<Message>,
  tools: ToolList,
): void {
  if (guarded.has(transport)) return;
  guarded.add(transport);
  const send = transport.send;
  transport.send = async function (this: Transport, message, options) {
    const { error, method } = message;
    if (method === "notifications/progress") current.getStore()?.touch();
    if (method === "notifications/tools/list_changed") tools.forget();
    const whole = error === undefined || isSettled(error) ? message : await rescued(message);
    await send.call(this, whole, options);
  };
}
