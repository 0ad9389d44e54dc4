/** What the generated modules need besides failures. */

import type { Contract } from "./contract.js";
import { type Failure, isFailure } from "./failure.js";
import type { Verdict } from "./reader.js";

/** A failure, or what a client read of one, with this code. */
export type Coded<C extends string = string> = Failure<C> | (Verdict<C> & { readonly code: C });

/** Whether a value is a failure of the contract, thrown or read, with one of these codes if any is named. */
export function isCoded<C extends string>(
  value: unknown,
  contract: Contract,
  only: readonly C[],
): value is Coded<C> {
  if (isFailure(value)) return isFailure(value, contract, ...only);
  if (typeof value !== "object" || value === null) return false;
  const { code, contract: name, fault } = value as Partial<Verdict>;
  if (name !== contract.name || typeof code !== "string" || fault === undefined) return false;
  return only.length === 0 ? contract.row(code) !== undefined : only.includes(code as C);
}

/** One case for each code. */
export type Cases<C extends string, T> = { readonly [K in C]: (failure: Coded<K>) => T };
/** Some cases, and `_` for the rest. */
export type SomeCases<C extends string, T> = {
  readonly [K in C]?: ((failure: Coded<K>) => T) | undefined;
} & { readonly _: (failure: Coded<C>) => T };

/** Calls the case of the failure's code. */
export function matchCode<C extends string, T>(
  failure: Coded<C>,
  cases: Cases<C, T> | SomeCases<C, T>,
): T {
  const table = cases as Readonly<Record<string, ((failure: Coded<C>) => T) | undefined>>;
  const own = Object.hasOwn(table, failure.code) ? table[failure.code] : table["_"];
  if (own === undefined) throw new TypeError(`no case for the code ${failure.code}`);
  return own(failure);
}
