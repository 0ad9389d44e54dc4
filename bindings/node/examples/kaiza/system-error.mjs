// `SystemError` of the KAIZA document, with its four factories, and `wrapHandler`.

import { Contract, fromUnknown, invariantViolation, startupFailure, toolFailure } from "faultwire";

export const contract = Contract.builtin("kaiza");

/** Every registered code, by its name. */
export const SYSTEM_ERROR_CODES = Object.freeze(
  Object.fromEntries(Object.keys(contract.codes).map((code) => [code, code])),
);

/** The document's names for what is known around a failure. */
const facts = ({ error_code, human_message, tool_name, cause, ...session }) => ({
  ...(error_code === undefined ? {} : { code: error_code }),
  message: human_message,
  tool: tool_name,
  cause,
  session: {
    id: session.session_id,
    role: session.role,
    workspaceRoot: session.workspace_root,
    phase: session.phase_id,
    planHash: session.plan_hash,
  },
});

/** Makes failures. A code that is not registered is refused. */
export const SystemError = Object.freeze({
  fromUnknown: (error, context = {}) => fromUnknown(contract, error, facts(context)),
  invariantViolation: (id, context = {}) => invariantViolation(contract, id, facts(context)),
  toolFailure: (code, context = {}) => toolFailure(contract, code, facts(context)),
  startupFailure: (code, context = {}) => startupFailure(contract, code, facts(context)),
  /** The envelope, for a failure that reaches no client. */
  toEnvelope: (failure) => failure.fault.render(),
});

/** Whatever a handler throws is a `SystemError` that names its tool. */
export const wrapHandler = (tool_name, handler) => async (input) => {
  try {
    return { content: [{ type: "text", text: await handler(input) }] };
  } catch (error) {
    throw SystemError.fromUnknown(error, { tool_name });
  }
};
