/** The types of requests for a decision; each has its own strict payload and its own text. */
import { Result, Schema } from "effect"
import { ConfirmTool } from "#schema/Approval.ts"
import { ProposalKind } from "#schema/ProposedChange.ts"
import { type Proposal, proposalTitle, understandProposal } from "./Proposal.ts"
import { canonicalJson, EVENT_DEPTH_MAX, isDeeperThan, storableJson } from "#src/shared/text/canonicalJson.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { API_PROBLEM_CHARS_MAX } from "#src/shared/limits.ts"
import type { ApprovalRow } from "./approvalRows.ts"
import { rehearsalText } from "./rehearsalText.ts"
import { APPROVAL_SUMMARY_CHARS_MAX, visibleLine } from "./approvalText.ts"
import type { GrantWords } from "#schema/Grant.ts"
import { grantOf } from "./grantWords.ts"
import { type Brief, confirmBrief, confirmSummary, confirmText } from "./confirmText.ts"
import { shortened } from "#src/shared/text/placeToCut.ts"

/** Canonical bytes of what a person is asked to approve; a call's arguments are MODEL_TOOL_ARGUMENT_BYTES_MAX at most. */
export const APPROVAL_PAYLOAD_BYTES_MAX = 128 * 1024

interface Read {
  readonly canonical: string
  /** SHA-256 of the canonical text, in hex. */
  readonly hash: string
  readonly summary: string
}

/** A decoded payload. */
export type Understood =
  | (Read & {
      readonly type: "confirm_tool"
      readonly call: ConfirmTool
    })
  /** The text for a person depends on what the proposal would change, which is previewed on request. */
  | (Read & { readonly type: "proposal"; readonly proposal: Proposal; readonly payload: Schema.Json })

/** The reason why a request is refused; `kind` is also the API's error type. */
export interface NotUnderstood {
  readonly kind: "BAD_REQUEST" | "TOO_LARGE"
  readonly reason: string
}

const decodeConfirmTool = Schema.decodeUnknownResult(ConfirmTool, { errors: "all", onExcessProperty: "error" })

type Reader = (payload: Schema.Json, canonical: string) => Result.Result<Understood, NotUnderstood>

const confirmTool: Reader = (payload, canonical) =>
  Result.mapBoth(decodeConfirmTool(payload), {
    onSuccess: (call) => ({
      type: "confirm_tool" as const,
      canonical,
      hash: sha256(canonical),
      summary: confirmSummary(call),
      call
    }),
    onFailure: ({ message }) => ({
      kind: "BAD_REQUEST" as const,
      reason: `the payload is not a valid confirm_tool: ${message}`.slice(0, API_PROBLEM_CHARS_MAX)
    })
  })

const proposalOf =
  (kind: ProposalKind): Reader =>
  (payload, canonical) =>
    Result.mapBoth(understandProposal(kind, payload), {
      onSuccess: (proposal) => ({
        type: "proposal" as const,
        proposal,
        canonical,
        hash: sha256(canonical),
        summary: shortened(proposalTitle(proposal), APPROVAL_SUMMARY_CHARS_MAX),
        payload
      }),
      onFailure: (reason) => ({ kind: "BAD_REQUEST" as const, reason })
    })

const REQUEST_TYPES: ReadonlyMap<string, Reader> = new Map([
  ["confirm_tool", confirmTool],
  ...ProposalKind.literals.map((kind) => [kind, proposalOf(kind)] as const)
])

const refuse = (kind: NotUnderstood["kind"], reason: string) => Result.fail({ kind, reason })

/** Decodes a request as strictly as its consequences demand. */
export const understand = (request_type: string, payload: Schema.Json): Result.Result<Understood, NotUnderstood> => {
  const read = REQUEST_TYPES.get(request_type)
  if (read === undefined)
    return refuse("BAD_REQUEST", `request_type must be one of: ${[...REQUEST_TYPES.keys()].join(", ")}`)
  if (isDeeperThan(payload, EVENT_DEPTH_MAX))
    return refuse("TOO_LARGE", `a payload may nest at most ${EVENT_DEPTH_MAX} levels`)
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

/** A stored payload, which a stricter later Choir may not decode. */
export const readStored = (request_type: string, canonical: string): Result.Result<Understood, NotUnderstood> =>
  Result.flatMap(
    Result.try({
      try: () => JSON.parse(canonical) as Schema.Json,
      catch: (): NotUnderstood => ({ kind: "BAD_REQUEST", reason: "the stored payload is not JSON" })
    }),
    (payload) => understand(request_type, payload)
  )

/** The words of a grant for more calls like a stored one; `undefined` where there can be none. */
export const grantOfRow = (
  { canonical, request_type }: Pick<ApprovalRow, "canonical" | "request_type">,
  freeOf: (tool: string) => ReadonlyArray<string>
): GrantWords | undefined => {
  const read = readStored(request_type, canonical)
  return Result.isSuccess(read) && read.success.type === "confirm_tool"
    ? grantOf(read.success.call, freeOf(read.success.call.tool))
    : undefined
}

/** The complete text of a stored request for a person, also of one that cannot be executed any longer. */
export const shownText = ({
  canonical,
  rehearsal,
  request_type,
  shown
}: Pick<ApprovalRow, "canonical" | "rehearsal" | "request_type" | "shown">): string =>
  Result.match(readStored(request_type, canonical), {
    onSuccess: (asked) =>
      asked.type === "proposal"
        ? [shown ?? "", ...(rehearsal === null ? [] : [rehearsalText(rehearsal)])].join("\n\n")
        : confirmText(asked.call, undefined, shown),
    onFailure: ({ reason }) =>
      [
        `This version of Choir cannot read or carry out this request: ${visibleLine(reason)}`,
        "Reject it; the agent may ask again.",
        `stored payload: ${visibleLine(canonical)}`
      ].join("\n")
  })

/** The facts of a stored call in at most `chars_max` characters; `undefined` for any other request. */
export const briefText = (
  { canonical, request_type, shown }: Pick<ApprovalRow, "canonical" | "request_type" | "shown">,
  chars_max: number,
  freeOf: (tool: string) => ReadonlyArray<string>
): Brief | undefined => {
  const read = readStored(request_type, canonical)
  return Result.isSuccess(read) && read.success.type === "confirm_tool"
    ? confirmBrief(read.success.call, chars_max, freeOf(read.success.call.tool), shown)
    : undefined
}
