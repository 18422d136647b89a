/** Which remotes get an identity's credentials (D14). */
import { assert, describe, it } from "@effect/vitest"
import { coversHttps, coversSsh, sshAddress } from "#src/shared/git/gitRemotes.ts"

describe("coversSsh", () => {
  const REMOTES = ["ssh://git@git.example.org", "ssh://Other.example.org:2222", "https://web.example.org/x"]
  const covered = (url: string) => {
    const address = sshAddress(url)
    return address !== undefined && coversSsh(REMOTES, address)
  }

  it("takes the listed hosts, on their port and for their user", () => {
    for (const url of [
      "ssh://git@git.example.org/a.git",
      "ssh://git.example.org:22/a.git",
      "git@git.example.org:a.git",
      "GIT.example.org:a.git",
      "ssh://anyone@other.example.org:2222/a.git"
    ])
      assert.isTrue(covered(url), url)
  })

  it("takes no other host, port, user or scheme", () => {
    for (const url of [
      "ssh://git@git.example.org:2222/a.git",
      "root@git.example.org:a.git",
      "git@evil.git.example.org:a.git",
      "git@git.example.org.evil.example:a.git",
      "other.example.org:a.git",
      "ssh://web.example.org/x",
      "/srv/git.example.org"
    ])
      assert.isFalse(covered(url), url)
    assert.isFalse(coversSsh(undefined, { host: "git.example.org", port: "22", user: "git" }))
  })
})

describe("coversHttps", () => {
  it("takes a prefix of whole segments on the same host and port", () => {
    const covered = (host: string, path: string) =>
      coversHttps(["https://git.example.org/team", "https://x.example.org:8443"], { host, path })
    assert.isTrue(covered("git.example.org", "/team/a.git"))
    assert.isTrue(covered("git.example.org:443", "/team"))
    assert.isTrue(covered("x.example.org:8443", "/a"))
    for (const [host, path] of [
      ["git.example.org", "/teammates/a.git"],
      ["git.example.org", "/team/../other"],
      ["git.example.org", "/team/%2e%2e/other"],
      ["x.example.org", "/a"]
    ] as const)
      assert.isFalse(covered(host, path), path)
  })
})
