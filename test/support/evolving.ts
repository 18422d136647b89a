/** An agent of a whole installation that proposes changes to itself, and a person with choirctl who decides. */
import { Effect, Schedule, type Schema } from "effect"
import type { ApprovalDetail, ApprovalSummary } from "#schema/ApprovalsApi.ts"
import type { SessionId } from "#schema/Ids.ts"
import { choirctl, document } from "./choirctl.ts"
import { AGENT, type InstallationOptions } from "./installation.ts"
import { makeTestInstallation } from "./testInstallation.ts"
import { makeProvider, offlineModel, type ProviderRequest } from "./testing/Provider.ts"

/** A tool with its program. */
export const TOOL = {
  manifest: {
    llm: { name: "notes.count", description: "Counts the notes", input_schema: { type: "object" } },
    runtime: { exec_path: "notes.count", effect: "none" }
  },
  files: [
    {
      path: "tools/notes.count",
      content: '#!/bin/sh\necho \'{"status":"success","summary":"there are 3 notes"}\'\n',
      executable: true
    }
  ],
  reason: "the user counts notes every day"
}
/** The tools that a request of the model offers, sorted. */
export const offered = ({ body }: ProviderRequest): ReadonlyArray<string> =>
  ((body as { readonly tools?: ReadonlyArray<{ readonly function: { readonly name: string } }> }).tools ?? [])
    .map(({ function: { name } }) => name)
    .sort()

/** A compaction may come between any two turns, so that no script can tell its place. */
export const isCompaction = (request: ProviderRequest): boolean =>
  JSON.stringify(request.body).includes("<choir-note>\\nCompaction:")

export const patiently = <A, E>(look: Effect.Effect<A, E>) =>
  Effect.retry(look, Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(1200)]))

export interface EvolvingOptions extends Omit<InstallationOptions, "config" | "endpoint"> {
  /** The agent's repository, where it is not a folder of the home. */
  readonly url?: string
  /** More of its git identity `robot`, whose secret is `git-token`. */
  readonly identity?: Readonly<Record<string, Schema.Json>>
}

/** The agent runs as `robot`; what the model says is the offline model's, where nothing is scripted. */
export const makeEvolving = Effect.fnUntraced(function* ({ identity, url, ...options }: EvolvingOptions = {}) {
  const provider = yield* makeProvider
  yield* provider.aside((request) => (isCompaction(request) ? offlineModel(request, 0) : undefined))
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const robot = { name: "Robot Demo", email: "robot@example.org", secret: "git-token", ...identity }
  const defaults = { workspace: "main", llm: "test", dm: "me", git_identity: "robot" }
  const choir = yield* makeTestInstallation({
    runtime: "process",
    ...options,
    endpoint: provider.endpoint,
    secrets: { "git-token": "agent:canary-of-git", ...options.secrets },
    config: {
      git_identities: { robot },
      heartbeat_interval_ms: 200,
      ...(url === undefined ? {} : { agents: { [AGENT]: { repo: { url }, defaults } } })
    }
  })
  const choird = yield* choir.start
  yield* choir.build
  const payload = { git_identity: "robot" as never }
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload })
  const ctl = (...args: ReadonlyArray<string>) => choirctl(choir.home, ["approval", ...args, "--json"])
  const waiting = patiently(
    Effect.flatMap(ctl("list"), (ran) => {
      const [found] = ran.code === 0 ? (document(ran) as ReadonlyArray<ApprovalSummary>) : []
      return found === undefined ? Effect.fail("nothing waits yet") : Effect.succeed(found)
    })
  )
  const show = (id: string) => Effect.map(ctl("show", id), (ran) => document(ran) as ApprovalDetail)
  const ended = (id: string) =>
    patiently(
      Effect.filterOrFail(
        show(id),
        ({ status }) => status === "done" || status === "failed",
        ({ status, step }) => `${status} ${step}`
      )
    )
  const talk = (id: string, text: string) =>
    Effect.flatMap(choir.send(id, text), ({ inbox_id }) => choir.settled(inbox_id))
  /** The results of all tool calls so far. */
  const results = Effect.map(choir.events(session_id as SessionId), (history) =>
    history.flatMap(({ event }) => (event.event_type === "ToolResultCommitted" ? [event.payload] : []))
  )
  return { ...choir, choird, ctl, ended, provider, results, session_id: session_id as SessionId, show, talk, waiting }
})
