import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { GitIdentity } from "#schema/GitIdentity.ts"
import { answerRequest, readRequest } from "#src/agent/git/credentials.ts"
import { makeRandom } from "../../support/history.ts"

const identity = Schema.decodeSync(GitIdentity)({
  name: "Ada",
  email: "ada@example.org",
  secret: "git",
  remotes: ["https://git.example.org/team", "https://other.example.org:8443/", "ssh://git@git.example.org"]
})
const ask = (fields: Readonly<Record<string, string>>) =>
  Object.entries({ protocol: "https", host: "git.example.org", path: "team/app.git", ...fields })
    .map(([key, value]) => `${key}=${value}\n`)
    .join("")

describe("the credential helper's answer (D14)", () => {
  it("is the token for a remote that the operator allows, with a user of the request, the secret or git", () => {
    assert.deepStrictEqual(
      [
        answerRequest(ask({}), identity, "t0ken"),
        answerRequest(ask({ username: "ada" }), identity, "t0ken"),
        answerRequest(ask({ username: "ada" }), identity, "bot:t0ken:x"),
        answerRequest(ask({ host: "git.example.org:443", path: "team" }), identity, "t0ken"),
        answerRequest(ask({ host: "other.example.org:8443", path: "any/thing" }), identity, "t0ken"),
        answerRequest(`capability[]=authtype\ncapability[]=state\n${ask({})}`, identity, "t0ken")
      ],
      [
        "username=git\npassword=t0ken\n",
        "username=ada\npassword=t0ken\n",
        "username=bot\npassword=t0ken:x\n",
        "username=git\npassword=t0ken\n",
        "username=git\npassword=t0ken\n",
        "username=git\npassword=t0ken\n"
      ].map(Result.succeed)
    )
  })

  const REFUSED: ReadonlyArray<readonly [string, string]> = [
    ["another protocol", ask({ protocol: "http" })],
    ["another host", ask({ host: "evil.example.org" })],
    ["a host that only begins so", ask({ host: "git.example.org.evil.org" })],
    ["a host in capitals", ask({ host: "GIT.EXAMPLE.ORG" })],
    ["another port", ask({ host: "git.example.org:8443" })],
    ["no port where one is asked for", ask({ host: "other.example.org" })],
    ["a path beside the prefix", ask({ path: "team-evil/app.git" })],
    ["a path above the prefix", ask({ path: "" })],
    ["a path that climbs", ask({ path: "team/../evil/app.git" })],
    ["a path that climbs in code", ask({ path: "team/%2e%2e/evil/app.git" })],
    ["a backslash", ask({ path: "team\\..\\evil" })],
    ["an empty segment", ask({ path: "team//evil" })],
    ["an ssh remote's host over https", ask({ path: "" })],
    ["a carriage return", ask({ host: "git.example.org\r" })],
    ["NUL", ask({ path: "team/\0" })],
    ["a host named twice", `${ask({})}host=evil.example.org\n`],
    ["no host", "protocol=https\npath=team/app.git\n"],
    ["no form", "hello\n"],
    ["too much", ask({ path: `team/${"a".repeat(9000)}` })]
  ]
  for (const [what, request] of REFUSED)
    it(`is a refusal without the token for ${what}`, () => {
      const answer = answerRequest(request, identity, "t0ken")
      if (Result.isSuccess(answer)) return assert.fail(answer.success)
      assert.notInclude(answer.failure, "t0ken")
    })

  it("is a refusal for an identity without remotes, and for a secret of several lines", () => {
    const { remotes: _, ...bare } = identity
    assert.isTrue(Result.isFailure(answerRequest(ask({}), bare, "t0ken")))
    assert.isTrue(Result.isFailure(answerRequest(ask({}), identity, "a\nb=c")))
  })

  it("never holds the token for a mutated request of another host (R31)", () => {
    const random = makeRandom(7)
    const alphabet = "=\n\r\0:/@%.a[]https"
    for (let round = 0; round < 20_000; round++) {
      const text = ask({ host: "evil.example.org" }).split("")
      for (let edit = 0; edit < 3; edit++)
        text[Math.floor(random() * text.length)] = alphabet[Math.floor(random() * alphabet.length)] ?? ""
      const request = text.join("")
      const answer = answerRequest(request, identity, "t0ken")
      if (Result.isSuccess(answer)) assert.fail(JSON.stringify(request))
      assert.isTrue(Result.isFailure(answer) || Result.isSuccess(readRequest(request)))
    }
  })
})
