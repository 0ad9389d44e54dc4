// Plans: what may be written, and whether it is approved; what no plan allows; and patches.

import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

import { refuse, sha256, textOf, under } from "./place.mjs";
import { SYSTEM_ERROR_CODES as CODES } from "./system-error.mjs";

/** Fails unless the plan of this hash allows to write there. */
export async function allows(root, wanted, place) {
  if (wanted === undefined) throw refuse(CODES.MISSING_REQUIRED_FIELD, "No plan_hash");
  const directory = join(root, "docs/plans");
  const names = await readdir(directory).catch(() => []);
  const texts = await Promise.all(names.map((name) => readFile(join(directory, name)).catch(() => "")));
  const text = texts.find((one) => sha256(one) === wanted);
  if (text === undefined) throw refuse(CODES.PLAN_NOT_FOUND);
  const { status, scope } = await under(CODES.PLAN_ENFORCEMENT_FAILED, parsed(text));
  if (status !== "APPROVED") throw refuse(CODES.PLAN_NOT_APPROVED);
  if (!scope.some((one) => place.lies(one))) {
    throw refuse(CODES.PLAN_SCOPE_VIOLATION, `The plan is about ${scope.join(", ")} only`);
  }
}

async function parsed(text) {
  const plan = JSON.parse(String(text));
  if (typeof plan.status === "string" && Array.isArray(plan.scope)) return plan;
  throw new Error("a plan has a status and a scope");
}

/** Fails unless any plan may allow this text at this place. */
export async function policyAllows(place, content) {
  const extension = place.relative.split(".").at(-1);
  if (content.includes("PRIVATE KEY-----")) {
    throw refuse(CODES.POLICY_VIOLATION, "Keys are not written to files");
  }
  if (extension === "rs" && content.split(/\s+/).includes("unsafe")) {
    throw refuse(CODES.RUST_POLICY_VIOLATION, "No unsafe code here");
  }
  const checked = async () => JSON.parse(content);
  if (extension === "json") await under(CODES.PREFLIGHT_FAILED, checked());
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@/;

/** The text with a unified diff applied. Every line that the diff names must be where it says. */
export function patched(bytes, patch) {
  const lines = textOf(bytes, CODES.PATCH_APPLY_FAILED).split("\n");
  const steps = patch.split("\n").filter((line) => !/^(?:---|\+\+\+|diff |\\)/.test(line));
  const isValid = HUNK.test(steps[0] ?? "") && steps.every((line) => line === "" || /^[ +@-]/.test(line));
  if (!isValid) throw refuse(CODES.PATCH_INVALID);
  const out = [];
  let next = 0;
  for (const step of steps.filter((line) => line !== "")) {
    const hunk = HUNK.exec(step);
    if (hunk) {
      const start = Math.max(0, Number(hunk[1]) - 1);
      out.push(...lines.slice(next, start));
      next = start;
      continue;
    }
    const [kind, line] = [step[0], step.slice(1)];
    if (kind !== "+" && lines[next++] !== line) throw refuse(CODES.PATCH_APPLY_FAILED);
    if (kind !== "-") out.push(line);
  }
  return [...out, ...lines.slice(next)].join("\n");
}
