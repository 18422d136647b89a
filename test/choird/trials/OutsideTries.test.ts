import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import type { HostOutcome } from "#src/choird/hosttools/HostTool.ts"
import { HostTools } from "#src/choird/hosttools/HostTools.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { FetchFailed, RefNotFound } from "#src/choird/repos/gitCalls.ts"
import { RepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { OutsideTries } from "#src/choird/trials/OutsideTries.ts"
import { TRIED_PAGE } from "#src/choird/trials/webTries.ts"
import { BrowserUnavailable, SANDBOX_FIX } from "#src/choird/workers/BrowserProcess.ts"
import { layerConfigOf } from "../../support/web.ts"

const agentWith = (web: string, more: object = {}) => ({
  workspaces: { main: { path: "/srv/main" } },
  gateways: { terminal: { type: "console" } },
  agents: {
    ada: {
      repo: { url: "https://forge.example/ada/agent.git" },
      defaults: { workspace: "main", llm: "m", ...more },
      web
    }
  }
})

/** A browser that does not start, in the words of its tool. */
const NO_BROWSER = new BrowserUnavailable({ problem: "x".repeat(300), fix: SANDBOX_FIX }).message

/** The lines of what is tried with a part of config.json, a web and a git server. */
const tries = Effect.fnUntraced(function* (
  part: object,
  {
    git = Effect.succeed({ name: "HEAD", commit: "c" }),
    hasSecret = true,
    web = { status: "success", output: {} }
  }: {
    readonly git?: ReturnType<Git["Service"]["lookup"]>
    readonly hasSecret?: boolean
    readonly web?: HostOutcome
  } = {}
) {
  const asked: Array<string> = []
  const parts = Layer.mergeAll(
    layerConfigOf({ ...part }),
    NodeFileSystem.layer,
    Layer.mock(HostTools, {
      runOnce: (_, { tool_name }) =>
        Effect.sync(() => {
          asked.push(tool_name)
          return web
        })
    }),
    Layer.mock(Git, {
      init: () => Effect.void,
      lookup: (_, { url }) =>
        Effect.andThen(
          Effect.sync(() => asked.push(url)),
          git
        )
    }),
    Layer.succeed(RepoAccess, (_, source) =>
      Effect.succeed(
        hasSecret && source.transport !== "file"
          ? {
              ...source,
              credential: { type: "password", host: "forge.example", user: "u", password: Redacted.make("p") }
            }
          : source
      )
    )
  )
  const lines = yield* Effect.provide(
    Effect.flatMap(OutsideTries, ({ all }) => all),
    Layer.provide(OutsideTries.layer, parts)
  )
  return {
    asked,
    lines: lines.map(
      ({ detail, fix = "", name, status }) => `${status} ${name}: ${detail}${fix === "" ? "" : `; ${fix}`}`
    )
  }
})

const identity = (remotes: ReadonlyArray<string> | undefined) => ({
  git_identities: {
    forge: { name: "Ada", email: "ada@example.org", secret: "forge", ...(remotes === undefined ? {} : { remotes }) }
  }
})

describe("what choird tries of the outside", () => {
  it.effect("is a page by the tools that agents have, and a warning where it cannot be read", () =>
    Effect.gen(function* () {
      const works = yield* tries(agentWith("fetch"))
      assert.deepStrictEqual(works.lines, [
        `ok page: ${TRIED_PAGE} was fetched`,
        "skip page in a browser: no agent has a browser"
      ])
      assert.deepStrictEqual(works.asked, ["choir.web.fetch"])
      const error = "example.com is not on the public network; other networks cannot be reached from here"
      const fails = yield* tries(agentWith("fetch"), { web: { status: "error", output: { error } } })
      assert.match(
        fails.lines[0] ?? "",
        /^warn page: https:\/\/example\.com\/: example\.com is not on the public network.*; Check this host's network/u
      )
      const odd = yield* tries(agentWith("fetch"), { web: { status: "timeout", output: null } })
      assert.include(odd.lines[0], "it ended with timeout")
    })
  )

  it.effect("leaves the page out where agents may not read it", () =>
    Effect.gen(function* () {
      const off = yield* tries(agentWith("off"))
      assert.strictEqual(off.lines[0], "skip page: no agent reads pages")
      const runtime = { network: "allowlist", allow: ["other.example"] }
      const listed = yield* tries({ ...agentWith("fetch"), runtime })
      assert.strictEqual(listed.lines[0], "skip page: runtime.network is allowlist, without example.com")
      assert.deepStrictEqual([off.asked, listed.asked], [[], []])
      const allowed = yield* tries({ ...agentWith("fetch"), runtime: { network: "allowlist", allow: ["example.com"] } })
      assert.strictEqual(allowed.lines[0], `ok page: ${TRIED_PAGE} was fetched`)
    })
  )

  it.effect("is an identity, by a repository of its agent, else by the first of its remotes", () =>
    Effect.gen(function* () {
      const own = yield* tries({
        ...agentWith("off", { git_identity: "forge" }),
        ...identity(["https://forge.example/ada"])
      })
      assert.strictEqual(
        own.lines[2],
        "ok git forge: https://forge.example/ada/agent.git can be read; nothing was fetched or pushed"
      )
      const other = yield* tries({ ...agentWith("off"), ...identity(["ssh://git@forge.example"]) })
      assert.deepStrictEqual(other.asked, ["ssh://git@forge.example/choir"])
      assert.match(
        (yield* tries({ ...agentWith("off"), ...identity(undefined) })).lines[2] ?? "",
        /^skip git forge: the identity has no remotes/u
      )
    })
  )

  it.effect("tells credentials that a server refuses from a repository that is not there", () =>
    Effect.gen(function* () {
      const part = { ...agentWith("off"), ...identity(["https://forge.example/ada"]) }
      const url = "https://forge.example/ada"
      const failing = (reason: string) =>
        Effect.map(
          tries(part, { git: Effect.fail(new FetchFailed({ url, reason, hint: "Check it" })) }),
          ({ lines }) => lines[2]
        )
      assert.strictEqual(
        yield* failing("fatal: Authentication failed"),
        `fail git forge: ${url}: fatal: Authentication failed; Check it`
      )
      assert.match((yield* failing("Could not resolve host: forge.example")) ?? "", /^fail /u)
      assert.match((yield* failing("fatal: repository not found")) ?? "", /^ok git forge: the server at .* answers/u)
      const empty = yield* tries(part, { git: Effect.fail(new RefNotFound({ url, ref: "HEAD" })) })
      assert.match(empty.lines[2] ?? "", /^ok /u)
      const without = yield* tries(part, { hasSecret: false })
      assert.strictEqual(
        without.lines[2],
        "fail git forge: its secret has no value that fits its remotes; choirctl secret set forge"
      )
      assert.deepStrictEqual(without.asked, [])
    })
  )

  it.effect("advises about the sandbox of a browser that does not start, and not about the network", () =>
    Effect.gen(function* () {
      const { lines } = yield* tries(agentWith("browse"), { web: { status: "error", output: { error: NO_BROWSER } } })
      const line = lines.find((one) => one.startsWith("warn page in a browser"))
      // Where Chromium is not installed nothing is tried.
      if (line === undefined) return assert.isTrue(lines.some((one) => one.startsWith("skip page in a browser")))
      assert.match(line, /: the browser does not start: x+; Allow user namespaces: sysctl -w \S+ \S+$/u)
    })
  )
})
