/** The text of a proposal that a person reads before a decision: facts that choird found, then every change in full (D24). Pure. */
import type { CallsApart } from "#schema/AgentApi.ts"
import { effectOf } from "#schema/Tool.ts"
import { visibleLine } from "#src/choird/approvals/approvalText.ts"
import { toolNetworkFact } from "#src/choird/runtime/capabilities.ts"
import type { RuntimeStatus } from "#src/choird/runtime/ContainerRuntime.ts"
import type { Difference } from "./Difference.ts"
import { type Proposal, proposalTitle, reasonOf } from "#src/choird/approvals/Proposal.ts"

export interface RepoTold {
  readonly url: string
  readonly ref: string
  readonly base: string
  readonly difference: Difference
}

const listed = (names: ReadonlyArray<string>) => (names.length === 0 ? "none" : names.join(", "))

const title = (proposal: Proposal) => `proposal: ${proposalTitle(proposal)}`

/** The effect of an approval, before all details. */
const inWords = (proposal: Exclude<Proposal, { kind: "config_change" }>): string => {
  switch (proposal.kind) {
    case "skill":
      return `If you approve, the agent gets the skill ${proposal.name} and restarts with it.`
    case "tool":
      return `If you approve, the agent gets the tool ${visibleLine(proposal.tool.manifest.llm.name)}.`
    case "repo_change":
      return "If you approve, the files of this branch become the agent's, and it restarts with them."
  }
}

/** A message may show only the beginning, so the agent's own words come after what choird found. */
const words = (proposal: Proposal) => `the agent's stated reason: ${visibleLine(reasonOf(proposal))}`

/** Whether other commands of the agent could read them. */
const secretsFact = (level: CallsApart | undefined): string => {
  if (level === undefined) return "whether other commands could read them is known once the agent has run"
  return level === "none"
    ? "they are handed out only while no other command of the agent runs, because this kernel does not keep commands apart"
    : "no other command of the agent can read them: this kernel keeps commands apart"
}

/** The limits on the calls of an approved tool: choird's own facts first, then the claims of the manifest. */
export const toolFacts = (
  { tool }: Extract<Proposal, { kind: "tool" }>,
  isDraft: boolean,
  here: {
    readonly runtime: RuntimeStatus["type"]
    readonly network: string
    readonly calls_apart?: CallsApart | undefined
  }
): ReadonlyArray<string> => {
  const { runtime } = tool.manifest
  const locks = runtime.locks.map(({ mode, resource }) => `${visibleLine(resource)}:${mode}`)
  const effect = effectOf(tool.manifest)
  return [
    toolNetworkFact(here.runtime, runtime.network, here.network),
    `time: ${runtime.timeout_ms} ms for each call`,
    `secrets that its calls would get: ${listed(runtime.secret_resources)}`,
    ...(runtime.secret_resources.length === 0 ? [] : [secretsFact(here.calls_apart)]),
    `locks: ${listed(locks)}`,
    effect === "external"
      ? "its calls are confirmed as approvals.confirm_external says"
      : "its calls are never confirmed by a person, since the manifest says that they act on nothing outside the workspace",
    `claimed by the manifest and not checked: effect ${effect}, idempotent ${runtime.idempotent ? "yes" : "no"}`,
    ...(isDraft
      ? ["It has no program: the manifest is kept as a draft, nothing is built, and a person writes the program."]
      : [])
  ]
}

const flags = ({ paths, unseen }: Difference): ReadonlyArray<string> => [
  ...(paths.includes("Dockerfile") ? ["It changes the Dockerfile, from which the agent's image is built."] : []),
  ...(paths.some((path) => path.startsWith("identity/")) ? ["It changes who the agent is (identity/)."] : []),
  ...(unseen === 0 ? [] : [`Invisible or control characters, shown as \\u escapes: ${unseen}`])
]

/** @param worded lines that choird found and the agent wrote, such as the subjects of commits. */
export const repoText = (
  proposal: Exclude<Proposal, { kind: "config_change" }>,
  { base, difference, ref, url }: RepoTold,
  facts: ReadonlyArray<string>,
  worded: ReadonlyArray<string> = []
): string =>
  [
    title(proposal),
    inWords(proposal),
    ...flags(difference),
    ...facts,
    `repository: ${visibleLine(url)}, ref ${ref}, from commit ${base}`,
    words(proposal),
    ...worded,
    "",
    difference.text
  ].join("\n")

export const configText = (
  proposal: Extract<Proposal, { kind: "config_change" }>,
  edits: ReadonlyArray<string>
): string =>
  [
    title(proposal),
    "It is written to config.json, loaded and applied.",
    ...(proposal.edits.some(({ path }) => path.startsWith("/budgets/"))
      ? ["Budgets count for each session of every agent."]
      : []),
    "",
    ...edits,
    "",
    words(proposal)
  ].join("\n")
