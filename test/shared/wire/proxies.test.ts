import { assert, describe, it } from "@effect/vitest"
import { proxiesOf, proxyFor, proxyProblems } from "#src/shared/wire/proxies.ts"

describe("the proxies of a host", () => {
  it("are those of its variables, the ones in lower case first, with a scheme where none is written", () => {
    assert.deepStrictEqual(proxiesOf({}), {})
    assert.deepStrictEqual(proxiesOf({ HTTPS_PROXY: "", https_proxy: "" }), {})
    assert.deepStrictEqual(
      proxiesOf({ HTTPS_PROXY: "http://a:1", https_proxy: "b:2", HTTP_PROXY: "https://c", NO_PROXY: "x,y" }),
      { https: "http://b:2", http: "https://c", none: "x,y" }
    )
  })

  it("are refused where Choir does not know their kind, without the password in them", () => {
    assert.deepStrictEqual(proxyProblems({ http: "http://a:1", https: "https://b" }), [])
    const problems = proxyProblems({ http: "socks5://ada:hunter2@a:1", https: "http://" })
    assert.deepStrictEqual(problems, [
      "HTTP_PROXY names a proxy of socks5, and Choir knows those of http and https",
      "HTTPS_PROXY is not an address"
    ])
  })

  const proxies = { http: "http://plain:1", https: "http://tunnel:2" }
  const by = (address: string, none?: string) =>
    proxyFor(new URL(address), none === undefined ? proxies : { ...proxies, none })

  it("are taken by the scheme of a request, and never for this host itself", () => {
    assert.strictEqual(by("https://api.example/v1"), proxies.https)
    assert.strictEqual(by("http://api.example"), proxies.http)
    assert.isUndefined(proxyFor(new URL("http://api.example"), { https: "http://tunnel:2" }))
    for (const own of ["localhost:11434", "a.localhost", "127.0.0.1", "127.9.9.9:8", "[::1]:1234"])
      assert.isUndefined(by(`http://${own}/v1`), own)
  })

  it.each([
    ["api.example", true],
    ["example", true],
    [".example", true],
    ["*.example", true],
    ["*", true],
    ["EXAMPLE", true],
    ["other, example", true],
    ["other example", true],
    ["api.example:443", true],
    ["api.example:8443", false],
    ["pi.example", false],
    ["xexample", false],
    ["", false],
    [",", false]
  ])("are left out for a host that NO_PROXY covers: %j is %j", (none, isCovered) => {
    assert.strictEqual(by("https://api.example/v1", none) === undefined, isCovered)
  })
})
