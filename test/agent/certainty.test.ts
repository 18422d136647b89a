/** How sure each tool that acts outside is that it did: in its event, and in what the model is told. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { Acted } from "#schema/Source.ts"
import { MAIL_DOMAIN, noMail, MailServerOfTests } from "../support/mailServer.ts"
import { outsideWorld, reaches, SITE } from "../support/outsideWorld.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, says, type Script } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent } from "../support/testing/TestAgent.ts"
import { LAYER_MS_MAX } from "../support/size.ts"

const HOME = "a".repeat(32)
const GONE = "f".repeat(32)

const TOLD: Readonly<Record<Acted, string>> = {
  verified: "[verified: it took effect]",
  accepted: "[accepted by the other side; nobody has checked the effect]",
  unknown: "[whether it took effect is not known: check before you repeat it]"
}

interface Row {
  readonly what: string
  readonly call: readonly [tool: string, input: Schema.Json]
  readonly status: string
  /** `undefined`: it is sure that nothing happened. */
  readonly acted: Acted | undefined
  /** Whether the event alone says so, since the rest of the result tells the model as much. */
  readonly silent?: boolean
  readonly confirm_external?: AgentConfig["approvals"]["confirm_external"]
}

const mail = (to: string): Schema.Json => ({ to: [`${to}@${MAIL_DOMAIN}`], subject: "s", text: "t" })

const rows = (port: number): ReadonlyArray<Row> => [
  {
    what: "a mail that the server took",
    call: ["choir.email.send", mail("bob")],
    status: "success",
    acted: "accepted"
  },
  {
    what: "a mail that the server refused",
    call: ["choir.email.send", mail("nobody")],
    status: "error",
    acted: undefined
  },
  {
    what: "a page that Notion named",
    call: ["choir.notion.query", { action: "create", parent: HOME, title: "t", markdown: "m" }],
    status: "success",
    acted: "verified"
  },
  {
    what: "text that Notion appended",
    call: ["choir.notion.query", { action: "append", id: HOME, markdown: "m" }],
    status: "success",
    acted: "verified"
  },
  {
    what: "a page that Notion refused",
    call: ["choir.notion.query", { action: "create", parent: GONE, title: "t", markdown: "m" }],
    status: "error",
    acted: undefined
  },
  {
    what: "a command with a network that ended well",
    call: ["choir.exec", { command: reaches(port), network: true }],
    status: "success",
    acted: "accepted",
    silent: true
  },
  {
    what: "a command with a network that failed",
    call: ["choir.exec", { command: `${reaches(port)}; exit 3`, network: true }],
    status: "error",
    acted: "unknown"
  },
  {
    what: "a command with a network that was killed",
    call: ["choir.exec", { command: `${reaches(port)}; sleep 60`, network: true, timeout_ms: 300 }],
    status: "timeout",
    acted: "unknown"
  },
  { what: "a tool of the image that ended well", call: ["out.post", {}], status: "success", acted: "accepted" },
  { what: "a tool of the image that failed", call: ["out.fail", {}], status: "error", acted: "unknown" },
  {
    what: "an address of its own that a site answered",
    call: ["choir.web.fetch", { url: `${SITE}/page?d=x` }],
    status: "success",
    acted: "accepted",
    confirm_external: "always"
  },
  {
    what: "an address of its own that a site refused",
    call: ["choir.web.fetch", { url: `${SITE}/none?d=x` }],
    status: "error",
    acted: "unknown",
    confirm_external: "always"
  },
  {
    what: "an address that was shown",
    call: ["choir.web.fetch", { url: `${SITE}/page?d=x` }],
    status: "success",
    acted: undefined
  }
]

describe.skipIf(noMail !== undefined)("a tool that acts outside", () => {
  it.layer(MailServerOfTests.layer, { timeout: LAYER_MS_MAX, excludeTestServices: true })((it) => {
    it.effect("says how sure it is that it did, in its event and to the model", () =>
      Effect.gen(function* () {
        const there = yield* outsideWorld(yield* MailServerOfTests, {
          pages: new Map([["/page?d=x", "hello"]]),
          notion: [{ id: HOME, title: "Home", children: [] }],
          results: []
        })
        const tried = Effect.fnUntraced(function* (
          { acted, call, confirm_external = "never", silent = false, status, what }: Row,
          n: number
        ) {
          // Each call has an id of its own, by which its mail would be known.
          const epoch = n + 1
          const plane = yield* makeMemoryControlPlane
          const { tools } = yield* there.agent("")
          let told = ""
          const script: Script = (messages) =>
            Effect.sync(() => {
              const last = messages.at(-1)
              if (last?.role !== "tool") return calls(call)
              told = last.content
              return says("done")
            })
          const base = there.config()
          const config = { ...base, approvals: { ...base.approvals, confirm_external } }
          yield* Effect.forkScoped(runAgent({ plane, script, tools, config, epoch }))
          yield* plane.say("do it")
          if (confirm_external === "always") {
            yield* plane.until((events) => ofType(events, "ToolCallRequested").length === 1)
            while (plane.approvals[0] === undefined) yield* Effect.sleep(5)
            yield* plane.decide(plane.approvals[0].approval_id, "approved")
          }
          yield* plane.until((events, state) => quiet(state) && ofType(events, "AgentMessage").length > 0)
          const [result] = ofType(plane.events, "ToolResultCommitted")
          assert.strictEqual(result?.payload.status, status, `${what}: ${result?.payload.summary}`)
          assert.strictEqual(result?.payload.acted, acted, what)
          for (const [kind, words] of Object.entries(TOLD)) {
            if (kind === acted && !silent) assert.include(told, words, what)
            else assert.notInclude(told, words, what)
          }
        }, Effect.scoped)
        yield* Effect.forEach(rows(there.port), tried, { discard: true })
      }).pipe(Effect.scoped)
    )
  })
})
