import { assert, describe, it } from "@effect/vitest"
import { ChoirEvent } from "#schema/Event.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { Schema } from "effect"
import { agentDetail, agentTable, buildLine } from "#src/choirctl/render/agents.ts"
import { messageText, promptText } from "#src/choirctl/render/chat.ts"
import { appliedText } from "#src/choirctl/render/config.ts"
import { problemsOf } from "#src/shared/config/configProblems.ts"
import { coreList, eventLine, sessionTable, verificationText } from "#src/choirctl/render/sessions.ts"
import { statusText } from "#src/choirctl/commands/status.ts"
import { trustedLine, workspaceTable } from "#src/choirctl/commands/workspace.ts"
import { AGENT, detail, summary, systemStatus } from "../../support/fakeChoird.ts"

describe("agentTable", () => {
  it("shows of a running agent its epoch, lag, last heartbeat, crashes and what is spent (R78)", () => {
    const health = {
      epoch: 2,
      lag_revs: 3,
      heartbeat_age_ms: 1200,
      crashes: 1,
      crashes_max: 3,
      tokens: { used: 95080, limit: 2000000 },
      cost_usd: { used: 0.5, limit: null }
    }
    assert.match(
      agentTable([{ ...summary, health }], false),
      /HEALTH\n.* epoch 2, lag 3, heartbeat 1s ago, crashes 1\/3, tokens 95,080 of 2,000,000, 0\.5000 USD$/u
    )
  })
})

describe("agentDetail", () => {
  const costLine = (cost_usd: typeof detail.budgets.cost_usd & { readonly unpriced?: ReadonlyArray<ResourceName> }) =>
    /cost +(.*)/u.exec(agentDetail({ ...detail, budgets: { ...detail.budgets, cost_usd } }, false))?.[1]

  it("says once what is spent", () => {
    const spent = { tokens: { used: 95080, limit: 2000000 }, cost_usd: { used: 0.5, limit: null } }
    const health = { epoch: 2, lag_revs: 3, heartbeat_age_ms: 1200, crashes: 1, crashes_max: 3, ...spent }
    const text = agentDetail({ ...detail, health, budgets: { ...detail.budgets, ...spent } }, false)
    assert.match(text, /health +epoch 2, lag 3, heartbeat 1s ago, crashes 1\/3\n/u)
    assert.strictEqual(text.split("95,080").length, 2)
    assert.strictEqual(text.split("0.5000 USD").length, 2)
  })

  it("calls the cost unknown where a model has no price", () => {
    const unpriced = [ResourceName.make("sonnet")]
    assert.strictEqual(costLine({ used: 0, limit: null }), "0 USD")
    assert.strictEqual(costLine({ used: 0, limit: null, unpriced }), "unknown: no price for sonnet")
    assert.strictEqual(
      costLine({ used: 0.5, limit: 1, unpriced }),
      "0.5000 of 1 USD, and more that is unknown: no price for sonnet"
    )
  })
})

describe("eventLine", () => {
  const line = (event_type: string, payload: object, lane = "edge") => {
    const event = { v: 1, rev: 7, event_type, lane, payload, created_at: "2026-01-02T03:04:05.678Z" }
    const decoded = Schema.decodeUnknownSync(ChoirEvent)(event)
    return eventLine({ ...decoded, hash: "" }, false)
      .replaceAll(/\s+/gu, " ")
      .trim()
  }
  const usage = { input_tokens: 1, output_tokens: 1 }

  it("says in a phrase what each kind of event is about", () => {
    const head = (type: string, lane = "edge") => `7 03:04:05.678 ${lane} ${type}`
    assert.strictEqual(
      line("UserMsg", { inbox_id: "1", dm: "d", text: "hello\nthere", attachments: [] }),
      `${head("UserMsg")} hello there`
    )
    const output = { call_id: "s-1-2", purpose: "turn", model: "m", finish_reason: "stop", usage, latency_ms: 1 }
    assert.strictEqual(
      line("ModelOutput", { ...output, tool_calls: [{ call_id: "s-1-2-0", name: "choir.exec", input: {} }] }),
      `${head("ModelOutput")} turn: calls choir.exec`
    )
    const request = { call_id: "s-1-2-0", tool: "choir.exec", input: { command: "ls" }, effect: "workspace", locks: [] }
    assert.strictEqual(
      line("ToolCallRequested", request),
      `${head("ToolCallRequested")} s-1-2-0 choir.exec {"command":"ls"}`
    )
    assert.strictEqual(
      line("ToolResultCommitted", { call_id: "s-1-2-0", status: "error", summary: "no", duration_ms: 1 }, "core:a"),
      `${head("ToolResultCommitted", "core:a")} s-1-2-0 error: no`
    )
    const result = { call_id: "s-1-2-0", status: "success", summary: "sent", duration_ms: 1 }
    for (const [more, words] of [
      [
        { acted: "accepted", untrusted: true, sources: ["web:a.example", "file"] },
        ", accepted [from web:a.example, file]"
      ],
      [{ acted: "verified" }, ", verified"],
      [{ untrusted: true }, " [from outside]"]
    ] as const)
      assert.strictEqual(
        line("ToolResultCommitted", { ...result, ...more }),
        `${head("ToolResultCommitted")} s-1-2-0 success${words}: sent`
      )
    const stopped = { job_id: "s-1-2-0", job_name: "a", outcome: "completed", summary: "it says", usage }
    assert.include(
      line("CoreStopped", { ...stopped, sources: ["mail:a@b.example"] }),
      "a completed [from mail:a@b.example]: it says"
    )
    assert.include(
      line("UserMsg", { inbox_id: "1", dm: "d", text: "hello", attachments: [], forwarded: true }),
      "[forwarded] hello"
    )
    assert.strictEqual(
      line("ToolCallCommitted", { call_id: "s-1-2-0", locks: [{ resource: "file:a", mode: "S" }] }),
      `${head("ToolCallCommitted")} s-1-2-0 1 lock`
    )
    assert.strictEqual(
      line("ToolCallCommitted", { call_id: "s-1-2-0", locks: [], approval_id: "12", grant_id: "4" }),
      `${head("ToolCallCommitted")} s-1-2-0 0 locks, approval 12, by the standing grant 4`
    )
    assert.strictEqual(
      line("InjectedInstruction", { target: "edge", source: "user", content: "", refused: "the input does not fit" }),
      `${head("InjectedInstruction")} user to edge: refused: the input does not fit`
    )
    assert.strictEqual(
      line("Cancelled", { target: "core:a", by: "user", reason: "enough" }, "core:a"),
      `${head("Cancelled", "core:a")} core:a by user: enough`
    )
    assert.strictEqual(
      line("AgentMessage", { kind: "reply", text: "done\u001b[2J" }),
      `${head("AgentMessage")} reply: done\u{FFFD}[2J`
    )
  })

  it("shows what a later Choir wrote without knowing what it says", () => {
    const event = {
      v: 3,
      rev: 8,
      event_type: "Plan\u001b[2J",
      lane: "edge",
      payload: [],
      created_at: "2026-01-02T03:04:05.678Z"
    }
    assert.match(eventLine({ ...event, hash: "" }, false), /^ +8 {2}03:04:05\.678 {2}edge .*written by a later Choir$/u)
    assert.notInclude(eventLine({ ...event, hash: "" }, false), "\u001b")
  })

  it("cuts what is long", () => {
    assert.isBelow(line("AgentMessage", { kind: "reply", text: "x".repeat(5000) }).length, 260)
  })
})

describe("lists that are empty", () => {
  it("say so, and what to do where something helps", () => {
    assert.include(agentTable([], false), "choirctl agent init")
    assert.strictEqual(sessionTable([], 0, false), "no sessions")
    assert.strictEqual(coreList([]), "no core jobs are running; choirctl session jobs lists those that ended")
    assert.strictEqual(workspaceTable([], false), "no workspace is configured")
  })
})

describe("agentDetail", () => {
  it("tells why an agent is where it is, and what is not there", () => {
    const text = agentDetail(
      {
        ...detail,
        status: "crashed",
        reason: "the breaker\nopened",
        lanes: [],
        resource_bindings: null,
        session_id: null
      },
      false
    )
    for (const part of ["crashed", "the breaker opened", "bindings    none", "session     none"])
      assert.include(text, part)
    assert.notInclude(text, "LANE")
  })
})

describe("labels of a workspace", () => {
  const name = ResourceName.make("main")
  const only_in = Array.from({ length: 22 }, (_, n) => ({ path: `notes/${n}.md`, sources: ["web:a.example"] as const }))
  const label = { written_from: ["web:a.example"], only_in, received: true } as const

  it("are counted in the list", () => {
    const rows = [{ name, path: "/w/main", leased_by: null, label }]
    assert.include(workspaceTable(rows, false), "files from people, 22 labelled paths: web:a.example")
  })

  it("are shown with where the text of each file is from, up to a limit", () => {
    const text = trustedLine({ name, path: "/w/main", label })
    assert.include(text, "\n  notes/0.md: a page of a.example\n")
    assert.include(text, "\n  notes/19.md: a page of a.example\n  and 2 more\n")
    assert.notInclude(text, "notes/20.md")
    const odd = [{ path: "a\n\u202eb", sources: ["file", "file:bob"] as const }]
    const shown = trustedLine({ name, path: "/w/main", label: { written_from: ["file:bob"], only_in: odd } })
    assert.notMatch(shown, /\u202e|a\n/u)
    assert.include(shown, ": a file that bob sent\n")
  })
})

describe("statusText", () => {
  it("marks what does not work", () => {
    const text = statusText({ ...systemStatus, postgres: { ...systemStatus.postgres, ok: false } }, true)
    assert.include(text, "\u001b[31mfailed\u001b[0m, embedded")
  })

  it("says how far the commands of agents are kept apart", () => {
    const withCalls = (calls: NonNullable<(typeof systemStatus)["runtime"]["calls"]>) =>
      /^calls apart +(?<text>.*)$/mu.exec(
        statusText({ ...systemStatus, runtime: { ...systemStatus.runtime, calls } }, false)
      )?.groups?.["text"]
    assert.strictEqual(withCalls({ enforced: true, detail: "all" }), "enforced: all")
    assert.strictEqual(withCalls({ enforced: false, partly: true, detail: "some" }), "partly enforced: some")
    assert.strictEqual(withCalls({ enforced: false, detail: "none" }), "not enforced: none")
  })

  it("says where the metrics are and what holds their token", () => {
    const url = "http://127.0.0.1:9464/metrics"
    const own = statusText({ ...systemStatus, metrics: { url, token: { file: "/h/metrics.token" } } }, false)
    assert.match(own, /^metrics +http:\/\/127\.0\.0\.1:9464\/metrics, bearer token in \/h\/metrics\.token$/mu)
    const named = statusText({ ...systemStatus, metrics: { url, token: { secret: "scraper" } } }, false)
    assert.include(named, `${url}, bearer token in the secret "scraper"`)
  })
})

describe("buildLine", () => {
  it("says whether there was something to build", () => {
    const report = { agent_id: AGENT, image_version: "v1", path: "/i", built: false, warnings: [] }
    assert.strictEqual(buildLine(report), "v1 of agent-1 is up to date")
    assert.include(buildLine({ ...report, built: true }), "choirctl agent start agent-1")
  })
})

describe("verificationText", () => {
  it("names the head of a chain that holds", () => {
    assert.strictEqual(verificationText({ ok: true, events: 3, head: "ab" }, false), "verified 3 events, head ab")
    const newer = { rev: 2, v: 3, event_type: "PlanCommitted" }
    assert.strictEqual(
      verificationText({ ok: true, events: 3, head: "ab", forgotten: 2, newer }, false),
      `verified 3 events, head ab
the text of 2 events was forgotten, as later events record
events from revision 2 on (PlanCommitted, version 3) were written by a later Choir: their chain is valid, but what they do was not checked`
    )
  })
})

describe("promptText", () => {
  const idle = {
    up: true,
    status: "running",
    edge: "EDGE_IDLE",
    waits: false,
    reporting: false,
    cores: [],
    reports: []
  }

  it("shows what the agent does, and nothing while it is idle", () => {
    assert.strictEqual(promptText("a", idle, false), "a> ")
    assert.strictEqual(
      promptText("a", { ...idle, edge: "EDGE_WAITING_TOOL", cores: ["x", "y"] }, false),
      "a (running a tool, 2 jobs)> "
    )
    assert.strictEqual(
      promptText("a", { ...idle, edge: "EDGE_WAITING_TOOL", waits: true }, false),
      "a (waiting for your approval)> "
    )
    assert.strictEqual(promptText("a", { ...idle, cores: ["x"] }, false), "a (1 job)> ")
    for (const edge of ["EDGE_IDLE", "EDGE_REASONING"])
      assert.strictEqual(promptText("a", { ...idle, edge, reporting: true }, false), "a (reporting)> ")
    assert.strictEqual(
      promptText("a", { ...idle, edge: "EDGE_WAITING_TOOL", reporting: true }, false),
      "a (running a tool)> "
    )
    const reports = [{ job_name: "x", report: { kind: "progress", text: "t", phase: "tests", percent: 40 } as const }]
    assert.strictEqual(promptText("a", { ...idle, cores: ["x", "y"], reports }, false), "a (2 jobs: x tests 40%; y)> ")
    assert.strictEqual(promptText("a", { ...idle, status: "starting" }, false), "a (starting)> ")
    assert.strictEqual(promptText("a", { ...idle, up: false }, false), "a (choird is not reachable)> ")
  })
})

describe("messageText", () => {
  it("prints a reply as it is and says what everything else is", () => {
    const message = { type: "message", outbox_id: "1", source: "s", part: 0, in_reply_to: null, text: "x" } as const
    assert.strictEqual(messageText({ ...message, kind: "reply" }, true), "x")
    assert.strictEqual(messageText({ ...message, kind: "report" }, false), "report: x")
    assert.strictEqual(messageText({ ...message, kind: "notice" }, true), "\u001b[2mnotice: x\u001b[0m")
    assert.strictEqual(messageText({ ...message, kind: "refusal" }, false), "refused: x")
  })
})

describe("problemsOf", () => {
  it("takes paths and reasons out of a decoder's text", () => {
    assert.deepStrictEqual(
      problemsOf(['Missing key\n  at ["agents"]["a"]["repo"]\nExpected number\n  at ["x"][0]', "it is a link"]),
      [
        { path: "agents.a.repo", reason: "is missing" },
        { path: "x.0", reason: "must be a number" },
        { path: "", reason: "it is a link" }
      ]
    )
  })
})

describe("appliedText", () => {
  it("says of an agent that was restarted on its old image just that, and not that it was not restarted", () => {
    const command = "choirctl agent build ada && choirctl agent restart ada"
    const pending = [{ path: "ada repo", change: "aaaaaaa -> bbbbbbb", class: "restart-required", command } as const]
    const done = { version: 6, previous: 5, applied: [], pending, needs_restart: [] }
    const told = (outcome: "refused" | "restarted") =>
      appliedText({ ...done, restarted: [{ agent_id: AgentId.make("ada"), outcome }] })
    assert.include(told("restarted"), "ada was restarted without the new commits of its repository")
    assert.notInclude(told("restarted"), "ada was not restarted")
    assert.include(told("refused"), "ada was not restarted: its repository has new commits")
  })
})
