import { assert, describe, it } from "@effect/vitest"
import { formatPlace, hostOf, portOf } from "#src/shared/wire/hostPort.ts"

describe("hosts and ports", () => {
  it.each([
    ["http://127.0.0.1:8080/v1", "127.0.0.1", 8080],
    ["http://example.org", "example.org", 80],
    ["https://example.org/", "example.org", 443],
    ["https://[2001:db8::1]", "2001:db8::1", 443],
    ["http://[::1]:9400", "::1", 9400]
  ])("are read from %s", (url, host, port) => {
    assert.deepStrictEqual([hostOf(new URL(url)), portOf(new URL(url))], [host, port])
  })

  it("are written with brackets around an IPv6 address", () => {
    assert.strictEqual(formatPlace("example.org", 443), "example.org:443")
    assert.strictEqual(formatPlace("::1", 9400), "[::1]:9400")
  })
})
