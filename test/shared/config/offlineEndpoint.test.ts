import { assert, describe, it } from "@effect/vitest"
import { isLoopback, isServedHere, loopbackModels } from "#src/shared/config/offlineEndpoint.ts"

const models = (endpoint: string) => ({ models: { main: { provider: "offline", endpoint } } }) as never

describe("an address that only this host reaches", () => {
  it("is one of 127.0.0.0/8, ::1 or localhost, as for a secret without TLS", () => {
    for (const host of ["127.0.0.1", "127.0.0.2", "127.1", "[::1]", "localhost", "LOCALHOST"])
      assert.isTrue(isLoopback(`http://${host}:9411/v1`), host)
    for (const host of ["128.0.0.1", "127.0.0.1.example.org", "localhost.example.org", "[::2]", "0.0.0.0"])
      assert.isFalse(isLoopback(`http://${host}:9411/v1`), host)
  })

  it("is refused to agents in Docker, and means the offline model of choird itself, whatever its port", () => {
    assert.match(
      loopbackModels(models("http://127.0.0.2:9411/v1")).join(),
      /^agents in Docker cannot reach the model main at /u
    )
    assert.deepStrictEqual(loopbackModels(models("http://192.0.2.1:9411/v1")), [])
    for (const endpoint of ["http://127.0.0.1:9411/v1", "http://127.0.0.1:0/v1", "http://localhost:1/v1"])
      assert.isTrue(isServedHere({ provider: "offline", endpoint }), endpoint)
    assert.isFalse(isServedHere({ provider: "other", endpoint: "http://127.0.0.1:9411/v1" }))
    assert.isFalse(isServedHere({ provider: "offline", endpoint: "http://192.0.2.1:9411/v1" }))
  })
})
