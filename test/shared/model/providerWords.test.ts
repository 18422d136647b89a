/** A provider's error in one plain sentence, whatever it is written in. */
import { assert, describe, it } from "@effect/vitest"
import { errorIn } from "#src/shared/model/Answer.ts"
import { detailOf, isSpent } from "#src/shared/model/providerWords.ts"

describe("the words of an error", () => {
  it.each([
    ["", ""],
    ['{"error":{"message":"Too long"}}', ": Too long"],
    ['{"error":"out of memory"}', ": out of memory"],
    ['{"detail":[{"loc":["body"],"msg":"str type expected"}]}', ": str type expected"],
    ['{"code":500,"msg":"404 NOT_FOUND","success":false}', ": 404 NOT_FOUND"],
    ['event: error\ndata: {"error":{"message":"overloaded"}}\n\n', ": overloaded"],
    ["data: the worker died\n\n", ": the worker died"],
    ["upstream connect error", ": upstream connect error"],
    [
      '<?xml version="1.0"?><Error><Code>x</Code><Message>Request has expired</Message></Error>',
      ": Request has expired"
    ],
    ["<html><title>502 Bad Gateway</title><center>cloudflare</center></html>", ", a page of cloudflare"],
    ["\n<!DOCTYPE html>\n<html><head><title>nginx error!</title>", ", a page of nginx"],
    ["<html><title>We are\n down</title><p>back soon</p>", ', a page with the title "We are down"'],
    ["<html><body>nothing</body></html>", ", a page of HTML"]
  ])("of %j end a sentence with %j", (body, detail) => assert.strictEqual(detailOf(body), detail))

  it("name a page by the header where the page does not", () => {
    assert.strictEqual(detailOf("<html><title>502</title></html>", "awselb/2.0"), ", a page of Amazon's load balancer")
  })

  it("are capped, on one line", () => {
    for (const body of [
      "a\n".repeat(100_000),
      `<html><title>${"b ".repeat(150)}</title>`,
      `{"error":"${"c".repeat(1e6)}"}`
    ]) {
      const detail = detailOf(body)
      assert.isAtMost(detail.length, 310)
      assert.notInclude(detail, "\n")
    }
  })
})

describe("a quota that is used up", () => {
  it.each([
    '{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","code":"insufficient_quota"}}',
    "You exceeded your current quota, please check your plan and billing details.",
    "Your credit balance is too low to access the Anthropic API.",
    '{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}',
    '{"error":{"type":"exceeded_current_quota_error","message":"Your account is not active, insufficient balance"}}'
  ])("is told from a rate: %s", (words) => assert.isTrue(isSpent(words)))

  it.each([
    "Rate limit reached for requests. Please try again in 20s. Visit https://x.example/account/billing to add a payment method",
    "You exceeded your current quota, please check your plan and billing details. Please retry in 38.5s.",
    "You exceeded your current quota. Quota exceeded for metric generate_content_free_tier_requests, limit: 10 per minute",
    "slow down",
    ""
  ])("is not what this says: %s", (words) => assert.isFalse(isSpent(words)))
})

describe("an error within an answer", () => {
  it.each<readonly [string, unknown, number | undefined]>([
    ["a text", { error: "out of memory" }, 502],
    ["the usual object", { error: { message: "no", code: 404 } }, 404],
    ["a code that is a text", { error: { message: "no", code: "503" } }, 503],
    ["a status beside it", { error: { message: "no" }, status_code: 400 }, 400],
    ["Google's list", [{ error: { message: "no", status: "RESOURCE_EXHAUSTED" } }], 429],
    ["vLLM's own", { object: "error", message: "no", code: 400 }, 400],
    ["a message in place of an answer", { message: "no", code: "server_overloaded" }, 529],
    ["MiniMax's own", { choices: null, base_resp: { status_code: 1004, status_msg: "login fail" } }, 502],
    ["none", { error: null, choices: [] }, undefined],
    ["an empty one", { error: {}, choices: [] }, undefined],
    ["an empty text", { error: "", choices: [] }, undefined],
    ["a code that says that all is well", { choices: [], base_resp: { status_code: 0, status_msg: "" } }, undefined],
    ["an answer with a message", { message: { content: "hi" } }, undefined],
    ["a piece of an answer", { choices: [{ delta: {} }], message: "x" }, undefined]
  ])("is read: %s", (_, body, status) => assert.strictEqual(errorIn(body)?.status, status))
})
