/** One error contract for every MCP tool failure. */

export { Alerts, type AlertEvent, type Page } from "./alerts.js";
export {
  AuditLog,
  type AuditOptions,
  type AuditSetting,
  type CallFacts,
} from "./audit.js";
export { Boundary } from "./boundary.js";
export {
  type AnyClient,
  type CallOptions,
  type ToolCall,
  ToolCallError,
  callTool,
} from "./client.js";
export {
  Contract,
  type Description,
  type Keep,
  type RetryAnswer,
  type RetryContext,
  type Row,
  type Stamp,
  redact,
} from "./contract.js";
export {
  AuditError,
  ContractError,
  EnvelopeError,
  FaultError,
  FaultwireError,
  InputError,
  InternalError,
  UnknownCodeError,
  UnknownContractError,
} from "./error.js";
export { Failure, isFailure } from "./failure.js";
export { Fault, type RenderOptions } from "./fault.js";
export {
  type Context,
  fromUnknown,
  invariantViolation,
  startupFailure,
  toolFailure,
} from "./four-ways.js";
export { type Problem, type ProblemOptions, Problems, type Requested } from "./http.js";
export type { Json } from "./json.js";
export { type Manifest, assertManifest, manifest } from "./manifest.js";
export { type AnyServer, boundaryOf, withContract } from "./mcp.js";
export { type BoundaryOptions, type Check, type ToolFacts } from "./options.js";
export { Reader, type Verdict, verdict } from "./reader.js";
export type {
  AnyFacts,
  Data,
  Delay,
  Facts,
  Hints,
  MetaFacts,
  Origin,
  Outcome,
  Report,
  RetryKind,
  SessionFacts,
} from "./report.js";
export { type Cases, type Coded, type SomeCases, isCoded, matchCode } from "./typed.js";
