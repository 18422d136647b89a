import { createHash, randomInt } from "node:crypto"
import { cpSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Reactivity } from "effect/reactivity"
import { inject } from "vitest"
import { ResourceName } from "#schema/Ids.ts"
import { containerName, installationOf } from "#src/shared/dockerInstallation.ts"
import { makeCanaryInstallation, USER } from "../support/canary/installation.ts"
import { FORMS_PROGRAM } from "../support/canary/leaks.ts"
import { tokensInMemory } from "../support/canary/memory.ts"
import * as plant from "../support/canary/plant.ts"
import { type Shown, watchProcesses } from "../support/canary/ProcessWatch.ts"
import { makeSearch } from "../support/canary/search.ts"
import { formsOf } from "../support/canary/secrets.ts"
import * as sinks from "../support/canary/sinks.ts"
import { testEngine } from "../support/docker.ts"
import { docker } from "../support/dockerImage.ts"
import { newestCommit } from "../support/gitServers.ts"
import { AGENT } from "../support/installation.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { lanAddress } from "../support/reachable.ts"
import { answer, callTools, failing } from "../support/testing/Provider.ts"

const TEST_MS_MAX = 300_000
const name = ResourceName.make
const BOUND = { dm: name("phone"), notion: name("notion-a"), email: name("email-a"), voice_profile: name("voice") }

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

/** Those words of a process's memory whose digests choird keeps as lease tokens. */
const leaseTokens = (options: PgClient.PgClientConfig, pid: number) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.makeClient(options)
    const rows = yield* sql<{ readonly lease_hash: Buffer | null }>`SELECT lease_hash FROM choir_control.sessions`
    const digests = new Set(rows.map(({ lease_hash }) => Buffer.from(lease_hash ?? []).toString("hex")))
    return [...tokensInMemory(pid)].filter((word) => digests.has(createHash("sha256").update(word).digest("hex")))
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer), Effect.orDie)

const parentOf = (pid: number) => Number(/^PPid:\s*(\d+)/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])

type Place = Effect.Success<ReturnType<typeof start>>

/** A running agent, and a person who talks with it at Telegram. */
const start = Effect.fnUntraced(function* (seed: number) {
  const choir = yield* makeCanaryInstallation(seed, engine.socket)
  const choird = yield* choir.start
  yield* choir.build
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: BOUND })
  const options = { ...choir.database, username: choir.database.user }
  const pid = Effect.map(choird.agent, Option.getOrThrow)
  const lease = Effect.flatMap(pid, (pid) => leaseTokens(options, pid))
  const { bot } = choir
  let said = 0
  /** Says something, and waits until the model's answer to all of it is there. */
  const say = Effect.fnUntraced(function* (text: string) {
    const mark = `over-${++said}`
    yield* bot.text(USER, `${text}\nsay ${mark}`)
    yield* bot.sent.first((message) => message.text?.includes(mark) === true)
  })
  /** Says something that the model does not answer as it is told. */
  const provoke = Effect.fnUntraced(function* (text: string) {
    const sent = (yield* bot.sent.all).length
    yield* bot.text(USER, text)
    yield* bot.sent.at(sent)
  })
  const run = (...commands: ReadonlyArray<string>) => say(commands.map((command) => `run ${command}`).join("\n"))
  return { ...choir, lease, options, pid, provoke, run, say, session_id: session_id ?? "" }
})

const TRUSTING = "export GIT_SSL_CAINFO=/workspace/server.pem"
const work = (url: string, folder: string) =>
  `git clone -q ${url} ${folder} && cd ${folder} && echo more >> README && git commit -qam second && git push -q origin main`

/** Clones, pushes, jobs: what secrets are there for. */
const useSecrets = Effect.fnUntraced(function* ({ https, repos, run, say, workspace }: Place) {
  cpSync(https.cert, join(workspace, "server.pem"))
  writeFileSync(join(workspace, "forms.py"), FORMS_PROGRAM)
  yield* run(`${TRUSTING}; ${work(`https://${https.host}/app.git`, "app")}`)
  assert.include(newestCommit(repos.https), "second")
  yield* say("job alpha: write a.txt: one, then run wc -w a.txt")
})

/** Commands that look everywhere, a command that asks git for its password, and a tool that tells what it was given. */
const leakByTools = Effect.fnUntraced(function* ({ https, run, say }: Place) {
  const asked = `protocol=https\\nhost=${https.host}\\npath=app.git\\n`
  const password = `printf "${asked}" | git credential fill | sed -n s/^password=//p | tr -d "\\n"`
  yield* run(
    "env; cat /proc/*/environ /proc/*/cmdline; ps axe; set; git config --list; find / -newer forms.py",
    `${password} | python3 forms.py; ${password} | python3 forms.py >&2; exit 3`,
    `${password} | python3 forms.py 400000`,
    `${TRUSTING}; cd app && GIT_TRACE_CURL=1 GIT_TRACE_REDACT=0 GIT_TRACE=1 git fetch`
  )
  yield* say(["output", "error", "text", "long"].map((how) => `call secrets.tell {"how":"${how}"}`).join("\n"))
  yield* say('job beta: call secrets.tell {"how":"output"}')
})

/** A provider that repeats the key: in an answer, in errors, in the arguments of calls. */
const leakByModel = Effect.fnUntraced(function* ({ made, provider, provoke, say }: Place, key: string) {
  const told = Object.values(formsOf(key)).join("\n")
  yield* provider.script(answer(told))
  yield* provoke("tell me your key")
  yield* provider.script(failing(401, told))
  yield* provoke("tell it in an error")
  const calls = [
    { name: "choir-exec", input: { command: `echo '${key}' | python3 forms.py` } },
    { name: "choir-fs-write", input: { path: "key", content: told, mode: "overwrite" } },
    { name: "choir-core-spawn", input: { job_name: "key", task_spec: `say ${key}` } },
    { name: "choir-fs-read", input: told }
  ]
  yield* provider.script(callTools(calls, told), answer(told))
  yield* provoke("use your key")
  yield* provider.script(failing(500, told))
  yield* say("let the fallback take over")
  const keys = (yield* provider.requests.all).map(({ headers }) => headers["authorization"])
  for (const { value } of [made.used.edge, made.used.core, made.used.fallback]) assert.include(keys, `Bearer ${value}`)
})

/** A crash, a key that is replaced, and a start with another git identity. Answers the lease tokens of each epoch. */
const restart = Effect.fnUntraced(function* (place: Place) {
  const { api, home, lease, made, params, provider, provoke, repos, run, say, sshUrl } = place
  const { edge, replaced } = made.used
  const first = yield* lease
  process.kill(yield* place.pid, "SIGKILL")
  yield* say("say still there")
  const second = yield* lease
  writeFileSync(join(home, "secrets.json"), JSON.stringify({ ...place.values, [edge.name]: replaced.value }))
  yield* api.configuration.applySecrets()
  yield* say("say with the new key")
  yield* provider.script(answer(`${edge.needle} ${replaced.needle}`))
  yield* provoke("tell me both")
  yield* api.agents.stop({ params })
  yield* api.agents.start({ params, payload: { ...BOUND, git_identity: name("key") } })
  yield* run(work(`${sshUrl}${repos.ssh}`, "deep"), "ssh-add -L; cat /tmp/choir-git-*/*")
  assert.include(newestCommit(repos.ssh), "second")
  yield* say('call secrets.tell {"how":"output"}')
  return [first, second, yield* lease]
})

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
    ...sinks.searchHome(search, keep, home, Object.values(repos)),
    ...database.found,
    ...sinks.searchEngine(search, keep, engine.socket, home, yield* place.pid),
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
        const place = yield* start(seed)
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
        assert.strictEqual(bootstrap.length, 3)
        assert.deepStrictEqual(
          leases.map(({ length }) => length),
          [1, 1, 1]
        )
      }).pipe(Effect.scoped),
    TEST_MS_MAX
  )
})
