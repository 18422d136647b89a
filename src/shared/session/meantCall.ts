/**
 * The tool that a call means. Models call every tool `choir.propose.<kind>` by one name, with the kind and the proposal as its input; skills,
 * constraints and the log know the tools by their own names, and a call by such a name is taken as it is.
 */
import { Option, Schema } from "effect"
import { ProposalKind } from "#schema/ProposedChange.ts"
import { PROPOSE } from "#schema/Tool.ts"
import { callDigest } from "./calls.ts"

/** The input of choir.propose. Without a proposal it asks for the form. */
export const ProposeInput = Schema.Struct({
  kind: ProposalKind.annotate({ description: "What to change" }),
  proposal: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Json).annotate({ description: "As the form of the kind says" })
  )
})

/** Other keys would not be in the proposal, and choird compares it with the whole call. */
const decode = Schema.decodeUnknownOption(ProposeInput, { onExcessProperty: "error" })

const PROPOSE_WIRE = PROPOSE.replaceAll(".", "-")
const isPropose = (name: string): boolean => name.replaceAll(".", "-") === PROPOSE_WIRE

interface MeantCall {
  readonly name: string
  readonly input: Schema.Json
}

/** The same call where it means what it says, or says what no tool is meant by. */
export const meantCall = (call: MeantCall): MeantCall => {
  const said = isPropose(call.name) ? decode(call.input) : Option.none()
  return Option.match(said, {
    onNone: () => call,
    onSome: ({ kind, proposal = {} }) => ({ name: `${PROPOSE_WIRE}-${kind}`, input: proposal })
  })
}

/** Whether a call of the log proposes this, by either name. */
export const isProposal = (
  { digest, name }: { readonly digest: string; readonly name: string },
  kind: ProposalKind,
  payload: Schema.Json
): boolean =>
  isPropose(name)
    ? digest === callDigest(name, { kind, proposal: payload })
    : name.replaceAll(".", "-") === `${PROPOSE_WIRE}-${kind}` && digest === callDigest(name, payload)
