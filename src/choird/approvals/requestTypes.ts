/** What may be asked of a person, by `request_type`; each kind has its own strict payload and its own words. */
import { Result, Schema } from "effect"
import { ConfirmTool } from "#schema/Approval.ts"
import { canonicalJson, isDeeperThan, storableJson } from "#src/shared/canonicalJson.ts"
import { sha256 } from "#src/shared/hashChain.ts"
import { API_PROBLEM_CHARS_MAX, APPROVAL_PAYLOAD_BYTES_MAX, EVENT_DEPTH_MAX } from "#src/shared/limits.ts"
import { confirmSummary, confirmText } from "./approvalText.ts"

/** A payload that was understood. */
export interface Understood {
  readonly canonical: string
  /** SHA-256 of the canonical text, in hex. */
  readonly hash: string
  readonly summary: string
  /** All facts, for a person. */
  readonly text: string
  readonly call: ConfirmTool
}

/** Why a request is not understood; `kind` is also the API's error type. */
export interface NotUnderstood {
  readonly kind: "NOT_AVAILABLE" | "BAD_REQUEST" | "TOO_LARGE"
  readonly reason: string
}

const decodeConfirmTool = Schema.decodeUnknownResult(ConfirmTool, { errors: "all", onExcessProperty: "error" })

const confirmTool = (payload: Schema.Json, canonical: string): Result.Result<Understood, NotUnderstood> =>
  Result.mapBoth(decodeConfirmTool(payload), {
    onSuccess: (call) => ({
      canonical,
      hash: sha256(canonical),
      summary: confirmSummary(call),
      text: confirmText(call),
      call
    }),
    onFailure: ({ message }) => ({
      kind: "BAD_REQUEST" as const,
      reason: `the payload is no confirm_tool: ${message}`.slice(0, API_PROBLEM_CHARS_MAX)
    })
  })

/** `undefined` is a kind of spec 8.10 that nobody can approve yet. */
const REQUEST_TYPES: ReadonlyMap<string, typeof confirmTool | undefined> = new Map([
  ["confirm_tool", confirmTool],
  ["tool", undefined],
  ["skill", undefined],
  ["config_change", undefined],
  ["repo_change", undefined]
])

const refuse = (kind: NotUnderstood["kind"], reason: string) => Result.fail({ kind, reason })

/** Reads a request as strictly as what follows from it demands. */
export const understand = (request_type: string, payload: Schema.Json): Result.Result<Understood, NotUnderstood> => {
  const read = REQUEST_TYPES.get(request_type)
  if (read === undefined)
    return REQUEST_TYPES.has(request_type)
      ? refuse("NOT_AVAILABLE", `a ${request_type} cannot be approved in this version, so it must not go on`)
      : refuse("BAD_REQUEST", `request_type is one of: ${[...REQUEST_TYPES.keys()].join(", ")}`)
  if (isDeeperThan(payload, EVENT_DEPTH_MAX))
    return refuse("TOO_LARGE", `a payload nests ${EVENT_DEPTH_MAX} levels at most`)
  const storable = storableJson(payload)
  const canonical = canonicalJson(storable)
  const bytes = Buffer.byteLength(canonical)
  return bytes > APPROVAL_PAYLOAD_BYTES_MAX
    ? refuse(
        "TOO_LARGE",
        `the payload has ${bytes} canonical bytes, and at most ${APPROVAL_PAYLOAD_BYTES_MAX} are shown`
      )
    : read(storable, canonical)
}

/** The facts of a stored payload. It was understood when it was stored. */
export const stored = (request_type: string, canonical: string): Understood =>
  Result.getOrThrowWith(
    understand(request_type, JSON.parse(canonical) as Schema.Json),
    ({ reason }) => new Error(`a stored approval cannot be read: ${reason}`)
  )
