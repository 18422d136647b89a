/**
 * The proofs that providers put on reasoning, so that nobody but their own model continues it. A double's are digests of what they sign: a rule
 * can tell without any memory whether a client sent it back byte for byte and to the same model.
 */
import { hash } from "node:crypto"
import { isObject, type Keys } from "./jsonKeys.ts"

/** The signature of a text of this model. */
export const signatureOf = (model: unknown, text: string): string =>
  hash("sha256", `${String(model)}\n${text}`, "base64")

/** Texts that Google's documentation offers in place of the signature of a call that another model made. */
export const NO_SIGNATURE: ReadonlySet<unknown> = new Set([
  "skip_thought_signature_validator",
  "context_engineering_is_the_way_to_go"
])

/** The text of a call that its signature signs. */
export const signedCall = (call: Keys): string => {
  const target = call["function"]
  return isObject(target) ? `${String(target["name"])}(${String(target["arguments"])})` : ""
}
