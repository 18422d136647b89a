/** Models behind a private authority, and behind the proxy of a company, asked by choirctl, by an agent and in a trial. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeAuthority } from "../support/certificate.ts"
import { spawnChoirctl } from "../support/choirctl.ts"
import { makeConnectProxy, makeTlsFront } from "../support/connectProxy.ts"
import { temporaryFolder } from "../support/engines.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { makeProvider, offlineModel, type Provider } from "../support/testing/Provider.ts"

/** A name that no server of this machine has: it is reached through the proxy alone. */
const NAME = "models.example.test"

const makeWay = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const authority = yield* makeAuthority([NAME, "localhost"])
  const front = yield* makeTlsFront(authority, Number(new URL(provider.endpoint).port))
  return { provider, authority, front, path: new URL(provider.endpoint).pathname }
})

/** A word that only the model of a trial is told. */
const TRIED = "Quillfeather"

const makeSkill = Effect.map(temporaryFolder, (place) => {
  const folder = join(place, "nibs")
  mkdirSync(folder)
  const text = `---\nname: nibs\ndescription: Nibs.\nallowed-tools: []\n---\n\nSay who ${TRIED} is.\n`
  writeFileSync(join(folder, "SKILL.md"), text)
  return folder
})

const assertTried = Effect.fnUntraced(function* ({ requests }: Provider, tried: string) {
  const asked = (yield* requests.all).filter(({ body }) => JSON.stringify(body).includes(TRIED))
  assert.isNotEmpty(asked, tried)
})

/** Asks the model by choirctl, by an agent that is built and started, and in a trial beside it. */
const asked = Effect.fnUntraced(function* (
  endpoint: string,
  env: Readonly<Record<string, string>>,
  config: Readonly<Record<string, never>> | { readonly tls: { readonly ca_file: string } }
) {
  const choir = yield* makeTestInstallation({ endpoint, env, config })
  const tested = yield* spawnChoirctl(["--home", choir.home, "model", "test", "test"], { env })
  yield* choir.start
  yield* choir.build
  yield* choir.api.agents.start({ params: choir.params, payload: {} })
  const { inbox_id } = yield* choir.send("first", "what time is it?")
  const shown = yield* choir.settled(inbox_id)
  const status = yield* choir.api.system.status()
  const { err, out } = yield* spawnChoirctl(["--home", choir.home, "skill", "try", yield* makeSkill], { env })
  return { tested, answer: JSON.stringify([...shown]), status, tried: out + err }
})

describe("a model", () => {
  it.live("of a private authority is asked once tls.ca_file names that, by choirctl, by agents and in a trial", () =>
    Effect.gen(function* () {
      const { authority, front, path, provider } = yield* makeWay
      const endpoint = `https://localhost:${front.port}${path}`
      const { answer, tested, tried } = yield* asked(endpoint, {}, { tls: { ca_file: authority.ca } })
      assert.strictEqual(tested.code, 0, tested.err + tested.out)
      assert.notInclude(answer, "could not", answer)
      assert.isAbove((yield* provider.requests.all).length, 1)
      yield* assertTried(provider, tried)
    }).pipe(Effect.scoped)
  )

  it.live("of a private authority is asked where NODE_EXTRA_CA_CERTS names that, by agents and in a trial too", () =>
    Effect.gen(function* () {
      const { authority, front, path, provider } = yield* makeWay
      const endpoint = `https://localhost:${front.port}${path}`
      const { answer, tested, tried } = yield* asked(endpoint, { NODE_EXTRA_CA_CERTS: authority.ca }, {})
      assert.strictEqual(tested.code, 0, tested.err + tested.out)
      assert.notInclude(answer, "could not", answer)
      yield* assertTried(provider, tried)
    }).pipe(Effect.scoped)
  )

  it.live("behind a proxy is asked through it, in a trial too, and status says what does not go there", () =>
    Effect.gen(function* () {
      const { authority, front, path, provider } = yield* makeWay
      const proxy = yield* makeConnectProxy(front.port, "ada:hunter2")
      const env = { HTTPS_PROXY: proxy.url, NO_PROXY: "elsewhere.test" }
      const config = { tls: { ca_file: authority.ca } }
      const { answer, status, tested, tried } = yield* asked(`https://${NAME}${path}`, env, config)
      assert.strictEqual(tested.code, 0, tested.err + tested.out)
      assert.notInclude(answer, "could not", answer)
      assert.isAbove(proxy.asked.length, 1)
      assert.deepStrictEqual(new Set(proxy.asked), new Set([`CONNECT ${NAME}:443`]))
      assert.isTrue(status.warnings.some((text) => text.includes("web pages, mail and Postgres do not")))
      assert.notInclude(JSON.stringify(status), "hunter2")
      yield* assertTried(provider, tried)
    }).pipe(Effect.scoped)
  )

  it.live("is not asked where the file of the authority is gone: choird ends at once, and doctor says the same", () =>
    Effect.gen(function* () {
      const gone = join(import.meta.dirname, "gone.pem")
      const choir = yield* makeTestInstallation({
        endpoint: "https://localhost:1/v1",
        config: { tls: { ca_file: gone } }
      })
      const error = yield* Effect.flip(choir.start)
      assert.match(
        error.message,
        /tls\.ca_file names .*gone\.pem, which cannot be used: no such file.*To fix it: name a readable file/u
      )
      const { out } = yield* spawnChoirctl(["--home", choir.home, "doctor"])
      assert.match(out, /fail +authorities +tls\.ca_file names/u)
    }).pipe(Effect.scoped)
  )
})
