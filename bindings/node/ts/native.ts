/** The native part, which is the engine. JSON goes in and out as text. */

export interface NativeContract {
  describe(): string;
  readonly invariantCode: string;
  fault(report: string, stamp?: string, unfit?: string[]): NativeFault;
  decode(envelope: string, surface?: string, profile?: string): string;
  classify(line: Uint8Array, limit: number, call: string | undefined, why: boolean): string;
  redact(source: string, keep: string[]): string;
  retry(envelope: string, surface: string | undefined, context: string, stamp?: string): string;
}

export interface NativeFault {
  render(surface?: string, profile?: string, hasOutputSchema?: boolean, modern?: boolean): string;
  report(): string;
  readonly status: number;
}

export interface NativeAuditLog {
  append(fault: NativeFault, call: string): Promise<number | null>;
  event(name: string, facts: string): Promise<number | null>;
  entry(fault: NativeFault, call: string): string;
  readonly id: string;
  close(): void;
}

export interface NativeStanding {
  /** How many sessions were begun. */
  readonly turn: number;
}

export interface NativeBoundary {
  learn(list: string): void;
  knows(tool: string): boolean;
  passes(result: string): boolean;
  refusal(call: string, standing: NativeStanding, form: string): Promise<string> | null;
  returned(
    call: string,
    standing: NativeStanding,
    result: string,
    form: string,
  ): Promise<string> | string | null;
  failed(
    call: string,
    standing: NativeStanding,
    how: string,
    what: string,
    form: string,
  ): Promise<string>;
  record(call: string, how: string, what: string): void;
  event(name: string, facts: string): void;
  readonly hasSessions: boolean;
  readonly undeclared: number;
  readonly mismatched: number;
}

export interface NativeAlerts {
  observe(event: string): string | null;
  readonly forgotten: number;
}

export interface NativeReader {
  verdict(reply: string, context: string, stamp?: string): string | null;
}

export interface Native {
  NativeContract: {
    builtin(name: string): NativeContract;
    load(file: string, source: string): NativeContract;
  };
  NativeAuditLog: { open(directory: string, options: string): NativeAuditLog };
  NativeStanding: new () => NativeStanding;
  NativeBoundary: new (
    contract: NativeContract,
    log: NativeAuditLog | null,
    settings: string,
  ) => NativeBoundary;
  NativeAlerts: new (contract: NativeContract, capacity?: number) => NativeAlerts;
  NativeReader: { new (contracts: NativeContract[]): NativeReader; builtin(): NativeReader };
  redact(source: string, keep: string[]): string;
  builtins(): string[];
}

/** The platforms that packages exist for, and the package of each. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "linux-x64": ["@faultwire/linux-x64-gnu", "@faultwire/linux-x64-musl"],
  "linux-arm64": ["@faultwire/linux-arm64-gnu", "@faultwire/linux-arm64-musl"],
  "darwin-x64": ["@faultwire/darwin-x64"],
  "darwin-arm64": ["@faultwire/darwin-arm64"],
  "win32-x64": ["@faultwire/win32-x64-msvc"],
};

function load(): Native {
  const platform = `${process.platform}-${process.arch}`;
  const reasons: string[] = [];
  for (const name of PACKAGES[platform] ?? []) {
    try {
      return require(name) as Native;
    } catch (error) {
      reasons.push(`${name}: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`);
    }
  }
  throw new Error(unsupported(platform, reasons));
}

function unsupported(platform: string, reasons: string[]): string {
  if (reasons.length === 0) {
    const known = Object.keys(PACKAGES).join(", ");
    return `faultwire does not support ${platform}; it supports ${known}`;
  }
  const help =
    "Install without --omit=optional and --no-optional, on the platform that runs the program";
  return `faultwire found no native package for ${platform}. ${help}.\n${reasons.join("\n")}`;
}

export const native: Native = load();
