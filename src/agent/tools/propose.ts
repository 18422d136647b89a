/**
 * choir.propose.*: hands choird what the agent would like changed of itself. Nothing happens here or there before a person
 * approved it: the call ends once it is known to wait, and the decision comes later, as words of the control plane.
 */
import { Effect, Schema } from "effect"
import type { AskedApproval } from "#schema/Approval.ts"
import type { Repo } from "#schema/Config.ts"
import type { CallId, SessionId } from "#schema/Ids.ts"
import {
  type ProposalKind,
  ProposedConfigChange,
  ProposedRepoChange,
  ProposedSkill,
  ProposedTool
} from "#schema/ProposedChange.ts"
import { PROPOSE, withShownNames } from "#schema/Tool.ts"
import { ProposeInput } from "#src/shared/session/meantCall.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import type { Denied } from "#src/agent/control/verbAnswer.ts"
import { makeRequestApproval } from "./requestApproval.ts"
import { decodeInput, type InvalidInput, invalidInput, refusal, type Tool, type ToolOutcome } from "./Tool.ts"
import { inputProblem } from "./inputProblem.ts"
import { llmView, viewOf } from "#src/agent/model/llmView.ts"

/** How long a proposal may take to reach choird, which looks into the agent's repository before it answers. */
const PROPOSAL_TIMEOUT_MS = 120_000

/** Submits the input of a call as it stands in the log. */
type Submit = (kind: ProposalKind, call_id: CallId, payload: Schema.Json) => Effect.Effect<AskedApproval, Denied>

const WORDS: Readonly<Record<AskedApproval["status"], string>> = {
  pending: "a person decides, and you get a notice of the decision. Nothing has changed yet; do not wait for it",
  approved: "a person has approved it and it is being carried out",
  rejected: "a person has rejected it; nothing was changed",
  expired: "nobody decided in time; nothing was changed"
}

/** The digest of the payload is for people alone: a model that knew it could word a card that looks like choird's. */
const outcomeOf = ({ approval_id, status }: AskedApproval): ToolOutcome => ({
  status: "success",
  summary: `proposal ${approval_id} was submitted: ${WORDS[status]}`,
  output: { approval_id, status }
})

interface Kind {
  readonly kind: ProposalKind
  readonly description: string
  /** The form of the input, told with every input that does not fit; an empty one asks for it. */
  readonly form: string
  readonly input: Schema.Decoder<unknown>
}

const KINDS: ReadonlyArray<Kind> = [
  {
    kind: "tool",
    description: "Propose a new or changed tool; a person decides.",
    form: 'manifest is {"llm":{"name","description","input_schema"},"runtime":{"exec_path","effect":"none", "workspace" or "external"}}; files is [{"path":"tools/<exec_path>","content"}], a program that reads and prints JSON; without files a person writes the program; reason is text for the person who decides',
    input: ProposedTool
  },
  {
    kind: "skill",
    description: "Propose a new or changed skill; a person decides.",
    form: 'spec is {"name","description","initial_state","max_steps","states":{"a":{"objective","allowed_tools","transitions":[{"on","to"}]},"z":{"terminal":true}}}. "contract" binds it: {"execution_class":"probabilistic","does","does_not","state":{"<field>":{"schema":{}}},"state_read","state_write":["<field>"],"assertions":[{"statement","path":"<field>","op":"exists"}],"capabilities":["fs:read"]}. A skill that needs no model has execution_class deterministic, leaves initial_state, max_steps and states out, and has "registry":{"version":"1.0.0","tier":"task","workflow":[{"step","tool","params":{"path":"${<field>}"},"writes":{"<field>":"<key of the output>"}}]}. reason is text for the person who decides',
    input: ProposedSkill
  },
  {
    kind: "config_change",
    description: "Propose a change of the configuration; a person decides.",
    form: 'change is [{"op":"set" or "remove","path":"/budgets/turn_max_steps","value":30}], or llm, core_llm, voice_profile of /agents/<your id>/defaults; reason is text for the person who decides',
    input: ProposedConfigChange
  },
  {
    kind: "repo_change",
    description: "Propose to merge a pushed branch of your repository; a person decides.",
    form: "branch is proposal/<session id>/<description>, up to date with the configured ref; commit is the full id of its newest commit; reason is text for the person who decides",
    input: ProposedRepoChange
  }
]

/** No model is offered these by themselves, so the form alone describes their inputs. */
const AnyInput = Schema.Struct({ reason: Schema.String.annotate({ description: "Why" }) })

const proposeTool = ({ description, form, input, kind }: Kind, submit: Submit): Tool => {
  const decode = decodeInput(input)
  const withForm = ({ problem }: InvalidInput) => invalidInput(`${problem}. The form: ${form}`)
  return {
    llm: llmView(`choir.propose.${kind}`, description, AnyInput),
    effect: "none",
    lanes: "both",
    unlisted: true,
    prepare: Effect.fn("propose.prepare")(function* (raw) {
      yield* Effect.mapError(decode(raw), withForm)
      const payload = raw as Schema.Json
      return {
        locks: [],
        timeout_ms: PROPOSAL_TIMEOUT_MS,
        run: ({ call_id }) =>
          Effect.match(submit(kind, call_id, payload), {
            onSuccess: (asked) => outcomeOf(asked),
            onFailure: ({ reason }) => refusal({ message: `the proposal was not accepted: ${withShownNames(reason)}` })
          })
      }
    })
  }
}

/** Where a branch goes, which an agent knows from nowhere else. */
const whereTo = (session_id: SessionId, repo: Repo | undefined): string => {
  if (repo === undefined) return ""
  const { ref, url } = repo
  // A folder of the host is in no sandbox.
  return url.startsWith("/")
    ? ` Your repository is a folder of choird's host, ${url}, which you cannot push to: propose with the other kinds.`
    : ` Your repository is ${url}, its configured ref ${ref}. Clone it with git, commit on a branch proposal/${session_id}/<description>, and push that branch.`
}

const decodeName = Schema.decodeUnknownEffect(ProposeInput, { errors: "all", onExcessProperty: "error" })

/** choir.propose: the name by which models propose. A call that names a kind is one of that kind's tool, so that only others come here. */
const propose: Tool = {
  llm: viewOf(
    PROPOSE,
    "Propose a change of yourself; a person decides. Without a proposal it returns the form.",
    ProposeInput
  ),
  effect: "none",
  lanes: "both",
  prepare: (raw) =>
    Effect.matchEffect(decodeName(raw), {
      onSuccess: ({ kind }) => Effect.die(new Error(`a proposal of kind ${kind} did not reach its tool`)),
      onFailure: ({ message }) => Effect.fail(invalidInput(inputProblem(ProposeInput, raw, message)))
    })
}

/** One tool for each kind of proposal, and the one by which models call them. */
export const proposeTools = Effect.gen(function* () {
  const requestApproval = yield* makeRequestApproval
  // Another repository or ref is of the agent's next start.
  const { config, session_id } = (yield* AgentSettings).current()
  const submit: Submit = (request_type, call_id, payload) => requestApproval({ request_type, call_id, payload })
  const tools: ReadonlyArray<Tool> = [
    propose,
    ...KINDS.map((kind) => {
      const isBranch = kind.kind === "repo_change"
      return proposeTool(
        isBranch ? { ...kind, form: `${kind.form}.${whereTo(session_id, config.repo)}` } : kind,
        submit
      )
    })
  ]
  return tools
})
