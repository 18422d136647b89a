import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import type { EventDraft } from "#schema/Event.ts"
import { ApprovalId, CallId, EDGE, ResourceName } from "#schema/Ids.ts"
import type { Acted } from "#schema/Source.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { ControlPlane, type HostReply } from "#src/agent/control/ControlPlane.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { SITE_ADDRESSES_MAX, SITE_REQUESTS_MAX, siteOfHost } from "#src/agent/tools/toldAddresses.ts"
import { makeEffectOfAddress, webFetch } from "#src/agent/tools/webFetch.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { FETCH_TOOL, UNASKED } from "#src/shared/web/hostQueries.ts"
import { placed } from "../../support/history.ts"
import { modelOutput, userMsg } from "../../support/stores.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { agentConfig } from "../../support/testing/TestAgent.ts"

const withCall = (call_id: CallId, name: string): EventDraft => {
  const draft = modelOutput(`m-${call_id}`)
  assert.strictEqual(draft.event_type, "ModelOutput")
  return draft.event_type === "ModelOutput"
    ? { ...draft, payload: { ...draft.payload, tool_calls: [{ call_id, name, input: {} }] } }
    : draft
}

/** A model's output with a call for each of these addresses. */
const asking = (name: string, more: object, id: string, urls: ReadonlyArray<string>): EventDraft => {
  const draft: any = withCall(CallId.make(id), name)
  const tool_calls = urls.map((url, at) => ({ call_id: CallId.make(`${id}-${at}`), name, input: { ...more, url } }))
  return { ...draft, payload: { ...draft.payload, tool_calls } }
}
const fetching = (id: string, ...urls: ReadonlyArray<string>) => asking("choir-web-fetch", {}, id, urls)

/** A call that ran after a person approved it. */
const approvedFetch = (id: string, url: string): ReadonlyArray<EventDraft> => {
  const call_id = CallId.make(`${id}-0`)
  const call = { call_id, tool: FETCH_TOOL, input: { url }, effect: "external" as const, locks: [] }
  return [
    fetching(id, url),
    { event_type: "ToolCallRequested", lane: EDGE, payload: { ...call, confirm: "tainted" } },
    { event_type: "ToolCallCommitted", lane: EDGE, payload: { call_id, locks: [], approval_id: ApprovalId.make("5") } }
  ]
}

const said = (text: string, inbox_id = "1"): EventDraft => {
  const draft = userMsg(inbox_id)
  return draft.event_type === "UserMsg" ? { ...draft, payload: { ...draft.payload, text } } : draft
}

/** A call of a tool by edge, and its result, after the user's message. */
const called = (rev: number, name: string, output: string): ReadonlyArray<EventDraft> => {
  const call_id = CallId.make(`c-${rev}-0`)
  const result = { call_id, status: "success", summary: "", output, duration_ms: 1, untrusted: true } as const
  return [withCall(call_id, name), { event_type: "ToolResultCommitted", lane: EDGE, payload: result }]
}

/** The effect of a fetch by edge of a session with these events; it is tainted or not. */
const effects = Effect.fnUntraced(function* (
  drafts: ReadonlyArray<EventDraft>,
  {
    confirm = "tainted",
    reply = { status: "success", output: { url: "https://Site.Example/found", text: "hello", chars_total: 5 } },
    tainted = true
  }: {
    readonly confirm?: "never" | "tainted" | "always"
    readonly reply?: HostReply
    readonly tainted?: boolean
  } = {}
) {
  const state = Result.getOrThrow(foldAll(initialState, []))
  const config = agentConfig()
  const settings = AgentSettings.layer({
    session_id: SESSION,
    epoch: 1,
    resource_bindings: {
      workspace: ResourceName.make("w"),
      llm: config.llm,
      core_llm: config.core_llm,
      dm: ResourceName.make("me")
    },
    config_version: 1,
    config: { ...config, approvals: { ...config.approvals, confirm_external: confirm } }
  })
  const arbiter = Layer.mock(Arbiter, { state: () => ({ ...state, edge: { ...state.edge, tainted } }) })
  const asked: Array<unknown> = []
  const choird = Layer.mock(ControlPlane, {
    execute: ({ input }) =>
      Effect.sync(() => {
        asked.push(input)
        return reply
      })
  })
  const replication = Layer.mock(Replication, { acked: () => state.rev })
  const context = yield* Layer.build(Layer.mergeAll(arbiter, settings, choird, replication, EventLog.layer(SESSION)))
  const log = yield* Effect.provide(EventLog, context)
  for (const event of placed(initialState, drafts)) log.append([event])
  const tool = yield* Effect.provide(webFetch, context)
  const effectOf = (url: string, offset = 0) => Effect.map(tool.prepare({ url, offset }, EDGE), ({ effect }) => effect)
  const opened = yield* Effect.provide(makeEffectOfAddress, context)
  return {
    asked,
    log,
    effectOf,
    effectOfOpening: (address: string) => opened({ address, any_fragment: false }, EDGE),
    tool
  }
})

describe("choir.web.fetch of an agent", () => {
  it.effect("is free for addresses that the user or the web has shown, and external for one of the model's own", () =>
    Effect.gen(function* () {
      const { effectOf } = yield* effects([
        said("read https://user.example/page?q=1, please (and <http://b.example/>)."),
        ...called(2, "choir-web-fetch", "see [it](https://shown.example/a?b=c#part) and `https://code.example/x`"),
        ...called(4, "choir-exec", "https://printed.example/?stolen=secret"),
        ...called(6, "choir-fs-read", "https://file.example/?stolen=secret")
      ])
      for (const url of [
        "https://user.example/page?q=1",
        "http://b.example",
        "https://shown.example/a?b=c",
        "https://shown.example/a?b=c#other",
        "https://code.example/x"
      ])
        assert.strictEqual(yield* effectOf(url), "none", url)
      for (const url of [
        "https://user.example/page?q=2",
        "https://user.example/",
        "https://user.example/page",
        "https://shown.example/",
        "https://printed.example/?stolen=secret",
        "https://file.example/?stolen=secret",
        "https://evil.example/?stolen=secret",
        "not an address"
      ])
        assert.strictEqual(yield* effectOf(url), "external", url)
    })
  )

  it.effect(
    "lets a browser open a shown address with no fragment but its own, which scripts of the page can read",
    () =>
      Effect.gen(function* () {
        const { effectOfOpening } = yield* effects([
          said("look around"),
          ...called(2, "choir-web-fetch", "[it](https://shown.example/a#part), https://shown.example/b")
        ])
        for (const url of ["https://shown.example/a#part", "https://shown.example/a", "https://shown.example/b"])
          assert.strictEqual(effectOfOpening(url), "none", url)
        for (const url of ["https://shown.example/a#secret", "https://shown.example/b#secret"])
          assert.strictEqual(effectOfOpening(url), "external", url)
      })
  )

  it.effect(
    "asks from the sixth address on that a labelled lane chooses of one site, until a person names or approves it",
    () =>
      Effect.gen(function* () {
        const places = [0, 1, 2, 3, 4, 5, 6]
        const SECRET = "PIN4711"
        const letters = [...new Set(SECRET)]
        const alphabet = places.flatMap((at) => letters.map((letter) => `https://evil.example/k/${at}/${letter}`))
        const spelt = Array.from(SECRET, (letter, at) => `https://evil.example/k/${at}/${letter}`)
        const shown = [said("look"), ...called(2, "choir-web-fetch", alphabet.join(" "))]
        const chosen = (urls: ReadonlyArray<string>) => urls.map((url, at) => fetching(`x-${at}`, url))
        // One after the other: each is chosen, and only then looked at.
        for (const [at, url] of spelt.entries()) {
          const { effectOf } = yield* effects([...shown, ...chosen(spelt.slice(0, at + 1))])
          assert.strictEqual(yield* effectOf(url), at < SITE_ADDRESSES_MAX ? "none" : "external", url)
        }
        // All in one output.
        const { effectOf } = yield* effects([...shown, fetching("y", ...spelt)])
        const at_once = yield* Effect.forEach(spelt, (url) => effectOf(url))
        assert.deepStrictEqual(
          at_once.map((effect) => effect === "none"),
          spelt.map((_, at) => at < SITE_ADDRESSES_MAX)
        )
        // Those of the first five are free again and again; another fragment is no other address, and another site has its own five.
        assert.strictEqual(yield* effectOf(`${spelt[0]}#again`), "none")
        const other = yield* effects([
          ...shown,
          ...called(4, "choir-web-fetch", "https://other.example/a"),
          fetching("z", ...spelt)
        ])
        assert.strictEqual(yield* other.effectOf("https://other.example/a"), "none")
        // A further message brings no more of them, unless it names the site.
        const next = (...more: ReadonlyArray<EventDraft>) =>
          effects([...shown, fetching("n", ...spelt), ...more, fetching("m", spelt[6] ?? "")])
        const after = (text: string) =>
          Effect.flatMap(next(said(text, "2")), ({ effectOf }) => effectOf(spelt[6] ?? ""))
        assert.strictEqual(yield* after("go on"), "external")
        assert.strictEqual(yield* after("go on with notevil.example"), "external")
        assert.strictEqual(yield* after("Go on with Evil.example."), "none")
        assert.strictEqual(yield* after("see https://www.evil.example/start"), "none")
        // One address for each of many messages spells no more.
        const rows = spelt.flatMap((url, at) => [said("go on", String(at + 2)), fetching(`row-${at}`, url)])
        for (const [at, url] of spelt.entries()) {
          const { effectOf } = yield* effects([...shown, ...rows.slice(0, 2 * at + 2)])
          assert.strictEqual(yield* effectOf(url), at < SITE_ADDRESSES_MAX ? "none" : "external", url)
        }
        // An approved one stands for the messages after it, and for no other site.
        const approved = (url: string) => approvedFetch("ok", url)
        const seventh = [said("go on", "3")]
        const of = (more: ReadonlyArray<EventDraft>) =>
          Effect.flatMap(next(...more), ({ effectOf }) => effectOf(spelt[6] ?? ""))
        assert.strictEqual(yield* of([...approved(spelt[5] ?? ""), ...seventh]), "none")
        assert.strictEqual(yield* of(approved(spelt[5] ?? "")), "external")
        assert.strictEqual(yield* of([...approved("https://other.example/a"), ...seventh]), "external")
        // A lane that has read nothing from outside is never asked.
        const clean = yield* effects([...shown, fetching("c", ...spelt)], { tainted: false })
        assert.strictEqual(yield* clean.effectOf(spelt[6] ?? ""), "none")
      })
  )

  it.effect("asks after ten requests to one site: two addresses in turn spell a text as well", () =>
    Effect.gen(function* () {
      const bits = ["https://evil.example/0", "https://evil.example/1"]
      const spelt = Array.from("0110010101100101", (bit) => bits[Number(bit)] ?? "")
      const shown = [said("look"), ...called(2, "choir-web-fetch", bits.join(" "))]
      for (const at of spelt.keys()) {
        const chosen = spelt.slice(0, at + 1)
        const { effectOf } = yield* effects([...shown, ...chosen.map((url, index) => fetching(`b-${index}`, url))])
        assert.strictEqual(yield* effectOf(spelt[at] ?? ""), at < SITE_REQUESTS_MAX ? "none" : "external", `${at}`)
      }
    })
  )

  it.effect("asks nobody about further parts of a page, which choird has", () =>
    Effect.gen(function* () {
      const url = "https://long.example/a"
      const parts = Array.from({ length: SITE_REQUESTS_MAX + 1 }, (_, at) =>
        asking("choir-web-fetch", { offset: at + 1 }, `part-${at}`, [url])
      )
      const shown = [said("look"), ...called(2, "choir-web-fetch", url)]
      const { effectOf } = yield* effects([...shown, fetching("first", url), ...parts])
      assert.strictEqual(yield* effectOf(url), "none")
      assert.strictEqual(yield* effectOf("https://unseen.example/", 100), "none")
    })
  )

  it.effect("counts the hosts of one owner as one site, and not what the user named", () =>
    Effect.gen(function* () {
      const hosts = ["a", "b", "c", "d", "e", "f"].map((letter) => `https://${letter}.evil.example/`)
      const shown = called(2, "choir-web-fetch", hosts.join(" "))
      const told = yield* effects([said("look"), ...shown, fetching("h", ...hosts)])
      assert.strictEqual(yield* told.effectOf(hosts[4] ?? ""), "none")
      assert.strictEqual(yield* told.effectOf(hosts[5] ?? ""), "external")
      const named = yield* effects([said(`read ${hosts.join(" and ")}.`), fetching("n", ...hosts)])
      for (const url of hosts) assert.strictEqual(yield* named.effectOf(url), "none", url)
      const forwarded = said(`read ${hosts.join(" and ")}.`)
      const passed = { ...forwarded, payload: { ...forwarded.payload, forwarded: true } } as EventDraft
      assert.strictEqual(
        yield* (yield* effects([passed, fetching("p", ...hosts)])).effectOf(hosts[5] ?? ""),
        "external"
      )
      const quoted = said(`[A reply to your message:]\n> read ${hosts.join(" and ")}.\nno`)
      const replied = yield* effects([quoted, fetching("q", ...hosts)])
      assert.strictEqual(yield* replied.effectOf(hosts[5] ?? ""), "external")
      for (const [host, site] of [
        ["a.b.evil.example", "evil.example"],
        ["evil.co.uk", "evil.co.uk"],
        ["x.evil.co.uk", "evil.co.uk"],
        ["x.ab.de", "ab.de"],
        ["192.0.2.7", "[numbers]"],
        ["[2001:db8::1]", "[numbers]"],
        ["localhost", "localhost"]
      ] as const)
        assert.strictEqual(siteOfHost(host), site)
    })
  )

  it.effect("counts what a browser opens with its fragment, which scripts of the page can read", () =>
    Effect.gen(function* () {
      const urls = [1, 2, 3, 4, 5, 6].map((at) => `https://evil.example/a#${at}`)
      const opening = (url: string, at: number) => asking("choir-web-browse", { action: "open" }, `o-${at}`, [url])
      const { effectOfOpening } = yield* effects([
        said("look"),
        ...called(2, "choir-web-fetch", urls.join(" ")),
        ...urls.map(opening)
      ])
      assert.deepStrictEqual(urls.map(effectOfOpening), ["none", "none", "none", "none", "none", "external"])
    })
  )

  it.effect("asks where the log of this process does not reach back to the message", () =>
    Effect.gen(function* () {
      const url = "https://shown.example/a"
      const { effectOf, log } = yield* effects([said("look"), ...called(2, "choir-web-fetch", url)])
      assert.strictEqual(yield* effectOf(url), "none")
      const later = [log.get(2), log.get(3)]
      log.begin({ rev: 1, hash: log.hashAt(1) })
      log.append(later)
      assert.strictEqual(yield* effectOf(url), "external")
    })
  )

  it.effect("asks nobody in a lane that has read nothing from outside, or where nobody wants to be asked", () =>
    Effect.gen(function* () {
      const url = "https://own.example/"
      assert.strictEqual(yield* (yield* effects([], { tainted: false })).effectOf(url), "none")
      assert.strictEqual(yield* (yield* effects([], { confirm: "never" })).effectOf(url), "none")
      assert.strictEqual(yield* (yield* effects([], { confirm: "always", tainted: false })).effectOf(url), "external")
    })
  )

  it.effect("labels what it brings with the site on which the page was found", () =>
    Effect.gen(function* () {
      const { asked, tool } = yield* effects([])
      const prepared = yield* tool.prepare({ url: "https://first.example/", offset: 3 }, EDGE)
      const outcome = yield* prepared.run({
        lane: EDGE,
        call_id: CallId.make("c-1-0"),
        seen: () => undefined,
        network: true
      })
      assert.deepStrictEqual(outcome.sources, ["web:site.example"])
      assert.deepStrictEqual(asked, [{ url: "https://first.example/", offset: 3 }])
    })
  )

  it.effect("says how sure it is that an address of the model's own was asked for, and nothing where nobody was", () =>
    Effect.gen(function* () {
      const page = { url: "https://own.example/", text: "hello", chars_total: 5 }
      const replies: ReadonlyArray<readonly [HostReply, Acted | undefined]> = [
        [{ status: "success", output: page }, "accepted"],
        [{ status: "error", output: { error: "own.example answered 404" } }, "unknown"],
        [{ status: "timeout", output: { error: "it took too long" } }, "unknown"],
        [{ status: "error", output: { error: "127.0.0.1 is not on the public network", ...UNASKED } }, undefined]
      ]
      for (const [reply, acted] of replies) {
        const { tool } = yield* effects([], { reply })
        const { effect, run } = yield* tool.prepare({ url: "https://own.example/?q=secret" }, EDGE)
        assert.strictEqual(effect, "external")
        const outcome = yield* run({ lane: EDGE, call_id: CallId.make("c-1-0"), seen: () => undefined, network: true })
        assert.strictEqual(outcome.acted, acted, JSON.stringify(reply))
      }
    })
  )
})
