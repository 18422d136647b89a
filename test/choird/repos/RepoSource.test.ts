import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { cacheRef, checkSource } from "#src/choird/repos/RepoSource.ts"

describe("RepoSource", () => {
  it.each([
    ["https://git.example.org/org/choir-global.git", "https"],
    ["https://git.example.org:8443/org/x", "https"],
    ["https://[2001:db8::1]/x.git", "https"],
    ["ssh://git@git.example.org:22/org/x.git", "ssh"],
    ["git@git.example.org:org/x.git", "ssh"],
    ["git.example.org:org/x.git", "ssh"],
    ["/srv/choir/global", "file"],
    ["/srv/with space/ünïcode", "file"]
  ])("accepts %s as %s", (url, transport) => {
    const checked = checkSource({ url, ref: "main" })
    assert.strictEqual(Result.isSuccess(checked) ? checked.success.transport : "refused", transport)
  })

  it.each([
    "",
    "global",
    "./global",
    "../global",
    "file://global",
    "file:///srv/global",
    "http://git.example.org/x",
    "git://git.example.org/x",
    "ext::sh -c touch% /tmp/x",
    "ext::/tmp/x",
    "fd::17",
    "testgit::/srv/x",
    "--upload-pack=touch /tmp/x",
    "-oProxyCommand=touch",
    "ssh://-oProxyCommand=touch/x",
    "git@-oProxyCommand=touch:x",
    "git@host:-x",
    "ssh://host/-x",
    "https://user:secret@git.example.org/x",
    "https://token@git.example.org/x",
    "https://git.example.org/x\n--upload-pack=y",
    "https://git.example.org/a b",
    "/srv/a\0b",
    "/srv/a\nb",
    "/srv/a\u202eb",
    `https://git.example.org/${"x".repeat(2100)}`
  ])("refuses the url %j (R75)", (url) => {
    const checked = checkSource({ url, ref: "main" })
    assert.isTrue(Result.isFailure(checked))
    assert.notMatch(Result.isFailure(checked) ? checked.failure.message : "", /secret|token@|\n/u)
  })

  it.each([
    "main",
    "v1.0",
    "feature/x",
    "feature/a+b@c#1",
    "ünïcode/日本",
    "+x",
    "a(b)!,;=%&'$",
    "release-1_2+3",
    "a".repeat(40),
    "refs"
  ])("accepts the ref %s", (ref) => {
    assert.isTrue(Result.isSuccess(checkSource({ url: "/srv/x", ref })))
  })

  it.each([
    "",
    "-b",
    "--upload-pack=x",
    "a..b",
    "a//b",
    "/a",
    "a/",
    "a.",
    ".a",
    "a/.b",
    "a.lock",
    "a b",
    "a:b",
    "a^",
    "a~1",
    "a*",
    "@{1}",
    "a@{1}",
    "a\0",
    "@",
    "a\\b",
    "a[b",
    "a?",
    "a\u00A0b",
    "a\u202Eb",
    "a\tb",
    "a".repeat(201)
  ])("refuses the ref %j (R75)", (ref) => {
    assert.isTrue(Result.isFailure(checkSource({ url: "/srv/x", ref })))
  })

  it("names the cache by url and ref, so that another url never shows the old repository", () => {
    const name = (url: string, ref: string) => cacheRef({ url, ref, transport: "file" })
    assert.strictEqual(new Set([name("/a", "b"), name("/a", "c"), name("/b", "b"), name("/a", "b")]).size, 3)
  })
})
