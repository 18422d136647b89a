import { assert, describe, it } from "@effect/vitest"
import { allowedPlace } from "#schema/AllowedHost.ts"

describe("an entry of runtime.allow", () => {
  it("is a name or an address, with port 443 unless it names another (D22)", () => {
    for (const [entry, host, is_address, port] of [
      ["api.example.org", "api.example.org", false, 443],
      ["git-1.example.org:22", "git-1.example.org", false, 22],
      ["10.0.0.5:8080", "10.0.0.5", true, 8080],
      ["xn--bcher-kva.example", "xn--bcher-kva.example", false, 443],
      ["localhost.example", "localhost.example", false, 443]
    ] as const)
      assert.deepStrictEqual(allowedPlace(entry), { host, is_address, port })
  })

  it("is nothing that could mean more, or something else, than it says", () => {
    for (const entry of [
      "",
      "*.example.org",
      "*",
      "https://example.org",
      "example.org/path",
      "user@example.org",
      "Example.org",
      "example.org.",
      "-example.org",
      "a..b",
      "example.org:0",
      "example.org:65536",
      "example.org:080",
      "example.org:443:443",
      "example.org:",
      "[::1]:443",
      "::1",
      "127.0.0.1:80",
      "0.0.0.0",
      "169.254.169.254:80",
      "224.0.0.1",
      "255.255.255.255",
      "127.1",
      "010.0.0.1",
      "0x7f000001",
      "2130706433",
      "1.2.3.256",
      "1.2.3.4.5",
      "10.0.0.0/8",
      "example.org\n-j ACCEPT",
      "x".repeat(64),
      `${"a.".repeat(130)}org`
    ])
      assert.isString(allowedPlace(entry), entry)
  })
})
