/** What is known of the server's tools, from its own `tools/list`. */

import type { Boundary } from "./boundary.js";
import { engine } from "./error.js";
import type { Handler, Request } from "./handlers.js";
import { textOf } from "./json.js";

/** A page of the list. */
interface Page {
  tools?: { name?: unknown; outputSchema?: unknown }[];
  nextCursor?: unknown;
}

/** A list that goes on for longer is not read to its end. */
const MOST_PAGES = 64;
/** How long the first call waits for the list. */
const PATIENCE_MS = 5000;

export class ToolList {
  /** The handler of `tools/list`, without the boundary. */
  handler: () => Handler | undefined = () => undefined;
  readonly #boundary: Boundary;
  readonly #withOutput = new Set<string>();
  #learned: Promise<void> | undefined;
  #isLearned = false;

  constructor(boundary: Boundary) {
    this.#boundary = boundary;
  }

  hasOutputSchema(tool: string | undefined): boolean {
    return tool !== undefined && this.#withOutput.has(tool);
  }

  get isKnown(): boolean {
    return this.#isLearned;
  }

  /** The tools have changed. */
  forget(): void {
    this.#isLearned = false;
    this.#learned = undefined;
  }

  /** Waits until the tools are known; without a list, none is. */
  async known(context: unknown): Promise<void> {
    if (this.#isLearned) return;
    this.#learned ??= this.#ask(context);
    await this.#learned;
  }

  /** The client has asked for the list, which is current then. */
  listed(request: Request, page: unknown): void {
    const isAll = this.#learn(page) === undefined && request.params?.cursor === undefined;
    this.#isLearned ||= isAll;
  }

  async #ask(context: unknown): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, PATIENCE_MS);
    });
    try {
      await Promise.race([this.#pages(context), patience]);
    } catch {
      // A list that fails only costs advice; its own request will tell what is wrong with it.
    } finally {
      clearTimeout(timer);
      this.#isLearned = true;
    }
  }

  async #pages(context: unknown): Promise<void> {
    let cursor: string | undefined;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const params = cursor === undefined ? {} : { cursor };
      const request = { jsonrpc: "2.0", id: 0, method: "tools/list", params };
      cursor = this.#learn(await this.handler()?.(request, context));
      if (cursor === undefined) return;
    }
  }

  /** Learns a page; the cursor of the next one. */
  #learn(listed: unknown): string | undefined {
    const { tools, nextCursor } = (listed ?? {}) as Page;
    if (!Array.isArray(tools)) return undefined;
    engine(() => this.#boundary.native.learn(textOf({ tools })));
    for (const { name, outputSchema } of tools) {
      if (typeof name === "string" && outputSchema != null) this.#withOutput.add(name);
    }
    return typeof nextCursor === "string" ? nextCursor : undefined;
  }
}
