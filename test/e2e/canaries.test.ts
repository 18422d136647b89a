import { randomInt } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { inject } from "vitest"
import { containerName, installationOf } from "#src/shared/docker/dockerInstallation.ts"
import {
  leakByModel,
  leakByTools,
  type Place,
  restart,
  startCanaries,
  useSecrets
} from "../support/canary/conversation.ts"
import * as plant from "../support/canary/plant.ts"
import { type Shown, watchProcesses } from "../support/canary/ProcessWatch.ts"
import { makeSearch } from "../support/canary/search.ts"
import { formsOf } from "../support/canary/secrets.ts"
import * as sinks from "../support/canary/sinks.ts"
import { testEngine } from "../support/docker.ts"
import { docker } from "../support/dockerImage.ts"
import { AGENT } from "../support/installation.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { lanAddress } from "../support/reachable.ts"

const TEST_MS_MAX = 900_000
const engine = testEngine("canary secrets")
const server = inject("postgres")
const leftOut =
  engine.reason ??
  (typeof server === "string" ? server : undefined) ??
  ensureDebianPackages(["openssh-server"], "canary secrets")

const BOOTSTRAP = /CHOIR_BOOTSTRAP_TOKEN=([\w-]{43})/u
/** The bootstrap tokens that containers of a session were started with. */
const bootstrapTokens = (shown: ReadonlyArray<Shown>, session_id: string) => {
  const ours = shown.filter(({ text }) => text.includes(`CHOIR_SESSION_ID=${session_id}`))
  return [...new Set(ours.flatMap(({ text }) => BOOTSTRAP.exec(text)?.[1] ?? []))]
}

const parentOf = (pid: number) => Number(/^PPid:\s*(\d+)/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])

const plantEverywhere = Effect.fnUntraced(function* (place: Place, container: string) {
  const { home, https, made, options, otlp, pid, provider, sshd, telegram } = place
  const { planted, used } = made
  const image = docker(engine.socket, "inspect", "--format", "{{.Image}}", container)
  const left = plant.plantInEngine(planted, engine.socket, home, image)
  yield* Effect.addFinalizer(() => Effect.sync(() => docker(engine.socket, "rm", "--force", left)))
  plant.plantFiles(planted, home)
  yield* plant.plantRows(planted, options)
  plant.plantInContainer(planted, engine.socket, container, parentOf(yield* pid))
  const bot = `${telegram.url}/bot${used.telegram.value}/sendMessage`
  yield* plant.plantRequests(planted, [`${provider.endpoint}/chat/completions`, bot, otlp.endpoint])
  // The planted request is of no API.
  assert.deepStrictEqual(
    (yield* provider.takeRefusals).map(({ rule }) => rule),
    ["a request has parameters that the provider knows"]
  )
  yield* plant.plantInGitServer(planted, https.host)
  yield* plant.plantInSshd(planted, lanAddress(), sshd.port)
})

const searchEverywhere = Effect.fnUntraced(function* (
  place: Place,
  tokens: ReadonlyArray<{ readonly name: string; readonly value: string; readonly needle: string }>,
  shown: ReadonlyArray<Shown>
) {
  const { bot, home, https, made, options, otlp, provider, repos, root, secrets, sshd } = place
  const search = yield* makeSearch([...secrets, made.used.replaced, made.planted, ...tokens])
  const keep = sinks.makeEvidence(join(root, "evidence"))
  const { core, edge, fallback, replaced } = made.used
  const keys = new Set([edge, replaced, core, fallback].map(({ value }) => `Bearer ${value}`))
  const asked = (yield* provider.requests.all).map(({ headers: { authorization, ...headers }, ...request }) =>
    // Where a key belongs.
    keys.has(authorization ?? "") ? { ...request, headers } : { ...request, headers, authorization }
  )
  const database = yield* sinks.searchDatabase(search, keep, options)
  const found: sinks.Found = {
    ...sinks.searchHome(search, keep, home, [...Object.values(repos), join(root, "agent.git")]),
    ...database.found,
    ...sinks.searchContainers(search, keep, engine.socket, home),
    ...sinks.searchImages(search, keep, engine.socket, home),
    ...sinks.searchMemoryFiles(search, keep, yield* place.pid),
    ...sinks.searchProcesses(search, keep, shown),
    ...sinks.searchReceived(search, keep, {
      "requests to models": asked,
      "calls to Telegram": [yield* bot.calls.all, yield* bot.sent.all],
      telemetry: otlp.sent.map(({ path, text }) => [path, JSON.parse(text)]),
      "log of the git server": https.asked,
      "log of sshd": sshd.said()
    })
  }
  return { found, looked: `${database.tables} tables, ${database.cells} cells, ${shown.length} texts of processes` }
})

/** What of the planted canary's forms the search missed. sshd escapes backslashes and all but ASCII in what it tells. */
const missed = (found: sinks.Found, planted: { readonly name: string; readonly needle: string }) =>
  Object.entries(found).flatMap(([sink, hits]) => {
    const seen = new Set(hits.flatMap(({ canary, form }) => (canary === planted.name ? [form] : [])))
    return Object.entries(formsOf(planted.needle))
      .filter(([form, text]) => !seen.has(form) && (sink !== "log of sshd" || /^[^\\\P{ASCII}]*$/u.test(text)))
      .map(([form]) => `${sink}: ${form}`)
  })

/** A container's environment holds the token that its agent swaps at once (D12); the engine shows it while the container is there. */
const BOOTSTRAP_PLACES = ["docker inspect", "processes of the container"]

describe.skipIf(leftOut !== undefined)("An installation with a secret of every kind, in containers", () => {
  it.live(
    "shows none of 40 secrets in any form anywhere, whatever its agent and its model try (R32)",
    () =>
      Effect.gen(function* () {
        const seed = Number(process.env["CANARY_SEED"] ?? randomInt(2 ** 31))
        const watch = yield* watchProcesses
        const place = yield* startCanaries(seed, engine.socket)
        const { made, secrets } = place
        yield* useSecrets(place)
        yield* leakByTools(place)
        yield* leakByModel(place, made.used.edge.needle)
        const leases = yield* restart(place)
        yield* plantEverywhere(place, containerName(installationOf(place.home), AGENT))

        const shown = yield* watch.end
        const bootstrap = bootstrapTokens(shown, place.session_id)
        const tokens = [
          ...bootstrap.map((token) => ({ name: "bootstrap token", value: token, needle: token })),
          ...leases.flat().map((token) => ({ name: "lease token", value: token, needle: token }))
        ]
        const { found, looked } = yield* searchEverywhere(place, tokens, shown)
        const leaked = Object.entries(found).flatMap(([sink, hits]) =>
          hits.flatMap(({ canary, form }) =>
            canary === made.planted.name || (canary === "bootstrap token" && BOOTSTRAP_PLACES.includes(sink))
              ? []
              : [`${sink}: ${canary}, ${form}`]
          )
        )
        assert.deepStrictEqual(leaked, [], `seed ${seed}; ${looked}`)
        // The same search finds what was put there, in each form: nothing above is empty because nobody looked.
        assert.deepStrictEqual(missed(found, made.planted), [], `seed ${seed}; ${looked}`)
        for (const sink of BOOTSTRAP_PLACES)
          assert.isTrue(
            found[sink]?.some(({ canary }) => canary === "bootstrap token"),
            sink
          )
        assert.strictEqual(secrets.length + 1, 40)
        const collected = place.otlp.sent.map(({ authorization }) => authorization)
        assert.include(collected, `Bearer ${made.used.otlp.value}`)
        assert.strictEqual(bootstrap.length, leases.length)
        assert.deepStrictEqual(
          leases.map(({ length }) => length),
          [1, 1, 1, 1, 1]
        )
      }).pipe(Effect.scoped),
    TEST_MS_MAX
  )
})
