import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { HttpTransport, isLoopback, parseListen } from "#schema/Transport.ts"
import { hostNames } from "#src/choird/listeners/AgentTcp.ts"
import { readTlsIdentity } from "#src/choird/listeners/TlsIdentity.ts"
import { transportPlan, type TransportFlags } from "#src/choird/config/AgentTransport.ts"
import { makeCertificateFor } from "../../support/certificate.ts"
import { temporaryFolder } from "../../support/engines.ts"

const files = { tls_cert: "/c.pem", tls_key: "/k.pem" }

describe("transport.http", () => {
  const accepted = (input: unknown) => Result.isSuccess(Schema.decodeUnknownResult(HttpTransport)(input))

  it("takes host:port, [IPv6]:port and :port", () => {
    assert.deepStrictEqual(parseListen("127.0.0.1:9400"), { host: "127.0.0.1", port: 9400 })
    assert.deepStrictEqual(parseListen("[::1]:1"), { host: "::1", port: 1 })
    assert.deepStrictEqual(parseListen(":65535"), { host: "", port: 65_535 })
    assert.deepStrictEqual(parseListen("Choird.Internal:9400"), { host: "choird.internal", port: 9400 })
    for (const odd of ["", "9400", "a", "a:", "a:65536", "::1:9400", "a b:1", "http://a:1", "a:1/x", "a:-1", "[x]:1"])
      assert.isUndefined(parseListen(odd), odd)
  })

  it("needs TLS for every place but loopback, and both files or none", () => {
    for (const listen of ["127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"]) assert.isTrue(accepted({ listen }))
    for (const listen of [":1", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "choird.internal:1", "127.0.0.1.example:1"]) {
      assert.isFalse(accepted({ listen }), listen)
      assert.isTrue(accepted({ listen, ...files }), listen)
    }
    assert.isFalse(accepted({ listen: "127.0.0.1:1", tls_cert: "/c.pem" }))
    assert.isFalse(accepted({ listen: "127.0.0.1:1", tls_key: "/k.pem" }))
    assert.isFalse(isLoopback("127.0.0.1.example"))
  })
})

describe("the command line", () => {
  const plan = (configured: HttpTransport | undefined, flags: TransportFlags) =>
    Result.match(transportPlan(configured, flags), {
      onSuccess: (found) =>
        found === undefined ? "none" : `${found.host}:${found.port} ${found.files?.cert ?? "plain"} ${found.forAgents}`,
      onFailure: ({ problem }) => problem
    })
  const configured = { listen: "10.0.0.1:1", ...files }

  it("wins over config.json, and without either there are sockets alone", () => {
    assert.strictEqual(plan(undefined, {}), "none")
    assert.strictEqual(plan(configured, { transport: "uds" }), "none")
    assert.strictEqual(plan(configured, {}), "10.0.0.1:1 /c.pem false")
    assert.strictEqual(plan(configured, { transport: "http" }), "10.0.0.1:1 /c.pem true")
    assert.strictEqual(plan(configured, { listen: ":2" }), ":2 /c.pem false")
    assert.strictEqual(plan(configured, { tls_cert: "/d.pem", tls_key: "/l.pem" }), "10.0.0.1:1 /d.pem false")
    assert.strictEqual(plan(undefined, { transport: "both" }), "127.0.0.1:9400 plain false")
    assert.strictEqual(plan(undefined, { listen: "localhost:3" }), "127.0.0.1:3 plain false")
  })

  it("is refused where it makes no sense", () => {
    assert.include(plan(undefined, { transport: "uds", listen: ":1" }), "--transport=uds listens on no address")
    assert.include(plan(undefined, { listen: ":1" }), "must be a loopback address")
    assert.include(plan(configured, { tls_cert: "/d.pem" }), "belong together")
    assert.include(plan(undefined, { listen: "nonsense" }), "must be host:port")
  })
})

describe("a certificate", () => {
  it.effect("that cannot be read or does not fit its key is refused with the file and the reason", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { cert, key } = yield* makeCertificateFor("DNS:choird.internal")
      const other = yield* makeCertificateFor("DNS:choird.internal")
      const junk = join(folder, "junk.pem")
      writeFileSync(junk, "junk", { mode: 0o600 })
      const why = (files: { readonly cert: string; readonly key: string }) =>
        Effect.map(Effect.flip(readTlsIdentity(files)), ({ message }) => message)
      assert.match(yield* why({ cert: "/nowhere.pem", key }), /the certificate \/nowhere\.pem cannot be read: ENOENT/u)
      assert.match(yield* why({ cert, key: folder }), /the key .* cannot be read: EISDIR/u)
      assert.include(yield* why({ cert: junk, key }), `${junk} is not a certificate`)
      assert.include(yield* why({ cert, key: other.key }), "does not belong to the certificate")
      assert.include(yield* why({ cert, key: junk }), junk)
    })
  )

  it.live("says for whom and when it holds", () =>
    Effect.gen(function* () {
      const made = yield* makeCertificateFor("DNS:choird.internal,IP:10.0.0.1,DNS:*.wild.example")
      chmodSync(made.key, 0o600)
      const identity = yield* readTlsIdentity(made)
      assert.deepStrictEqual(identity.names, ["choird.internal", "10.0.0.1"])
      assert.isUndefined(identity.problemFor("choird.internal"))
      assert.isUndefined(identity.problemFor("10.0.0.1"))
      assert.include(identity.problemFor("127.0.0.1") ?? "", "make one with subjectAltName=IP:127.0.0.1")
      assert.include(identity.problemFor("localhost") ?? "", "subjectAltName=DNS:localhost")
      assert.strictEqual(identity.certificate.trim(), made.ca.trim())
      assert.deepStrictEqual(
        [...hostNames("", identity.names)],
        ["choird.internal", "10.0.0.1", "localhost", "127.0.0.1", "::1"]
      )
      assert.deepStrictEqual([...hostNames("10.0.0.1", [])], ["10.0.0.1"])
    })
  )

  it.effect("that is not valid yet, or not any more, says so", () =>
    Effect.gen(function* () {
      // The clock of a test stands at 1970.
      const identity = yield* readTlsIdentity(yield* makeCertificateFor("DNS:localhost"))
      assert.include(identity.problemFor("localhost") ?? "", "is not valid before")
    })
  )
})
