import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { makeCertificate, makeCertificateFor } from "../support/certificate.ts"
import { putDatabase } from "../support/engines.ts"
import { makeInstallation } from "../support/installation.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

const withoutSandbox = ensureDebianPackages(["bubblewrap"], "agents over HTTPS")
const listening = (certificate: { readonly cert: string; readonly key: string }) => [
  "--transport=http",
  "--listen=127.0.0.1:0",
  `--tls-cert=${certificate.cert}`,
  `--tls-key=${certificate.key}`
]

describe("agents over HTTPS", () => {
  it.live.skipIf(withoutSandbox !== undefined)(
    "reach choird from inside the sandbox, trusting its certificate alone, and so does the next epoch",
    () =>
      Effect.gen(function* () {
        const provider = yield* makeProvider
        yield* provider.otherwise((request) => offlineModel(request, 0))
        const flags = listening(yield* makeCertificate)
        const choir = yield* makeInstallation({
          endpoint: provider.endpoint,
          runtime: "sandbox",
          flags,
          database: putDatabase
        })
        const choird = yield* choir.start
        yield* choir.build
        yield* choir.api.agents.start({ params: choir.params, payload: {} })
        const first = Option.getOrThrow(yield* choird.agent)
        const command = readFileSync(`/proc/${first}/cmdline`, "utf8").split("\0")
        assert.include(command, "--control-plane=http")
        assert.include(command, "--ca=/run/choir/ca.pem")
        assert.isTrue(command.some((each) => /^--endpoint=https:\/\/127\.0\.0\.1:\d+$/u.test(each)))
        const { inbox_id } = yield* choir.send("one", "hello")
        yield* choir.settled(inbox_id)
        process.kill(first, "SIGKILL")
        const again = yield* choir.send("two", "hello")
        const shown = yield* choir.settled(again.inbox_id)
        assert.lengthOf(
          shown.filter((event) => event.type === "message" && event.kind === "reply"),
          1
        )
        const next = Option.getOrThrow(yield* choird.agent)
        assert.notStrictEqual(next, first)
        assert.include(readFileSync(`/proc/${next}/cmdline`, "utf8"), "--control-plane=http")
      }).pipe(Effect.scoped)
  )

  it.live("are not started for a certificate that they would refuse: choird ends with 78 and says why", () =>
    Effect.gen(function* () {
      const missing = { cert: "/nowhere/cert.pem", key: "/nowhere/key.pem" }
      for (const [certificate, reason] of [
        [yield* makeCertificateFor("DNS:choird.internal"), /is not for 127\.0\.0\.1: make one with subjectAltName=IP/u],
        [missing, /the certificate \/nowhere\/cert\.pem cannot be read: ENOENT/u]
      ] as const) {
        const flags = listening(certificate)
        const choir = yield* makeInstallation({ endpoint: "http://127.0.0.1:1", runtime: "process", flags })
        const { message } = yield* Effect.flip(choir.start)
        assert.match(message, reason)
        assert.notMatch(message, /^\s+at /mu)
      }
    }).pipe(Effect.scoped)
  )
})
