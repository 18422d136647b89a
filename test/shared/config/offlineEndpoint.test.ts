import { assert, describe, it } from "@effect/vitest"
import { isLoopback, loopbackModels, offlinePlaces } from "#src/shared/config/offlineEndpoint.ts"

const models = (endpoint: string) => ({ models: { main: { provider: "offline", endpoint } } }) as never

describe("an address that only this host reaches", () => {
  it("is one of 127.0.0.0/8, ::1 or localhost, as for a secret without TLS", () => {
    for (const host of ["127.0.0.1", "127.0.0.2", "127.1", "[::1]", "localhost", "LOCALHOST"])
      assert.isTrue(isLoopback(`http://${host}:9411/v1`), host)
    for (const host of ["128.0.0.1", "127.0.0.1.example.org", "localhost.example.org", "[::2]", "0.0.0.0"])
      assert.isFalse(isLoopback(`http://${host}:9411/v1`), host)
  })

  it("is refused to agents in Docker, and is where choird serves the offline model", () => {
    const near = models("http://127.0.0.2:9411/v1")
    assert.match(loopbackModels(near).join(), /^agents in Docker cannot reach the model main at /u)
    assert.deepStrictEqual(offlinePlaces(near), [
      { endpoint: "http://127.0.0.2:9411/v1", host: "127.0.0.2", port: 9411 }
    ])
    const far = models("http://192.0.2.1:9411/v1")
    assert.deepStrictEqual([loopbackModels(far), offlinePlaces(far)], [[], []])
  })
})
